"""What speaking needs from outside: the token model, the vocoder and the caller, as protocols."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .audio import FloatArray
from .pacing import LowLatency
from .streaming import VocoderChunk, VocoderSizes

Tensors = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class TokenChunk:
    """One response of the token model."""

    hidden: FloatArray
    """(T, H) of mode code."""
    codes: NDArray[np.int32]
    """(T, 4) of mode code."""
    token_ids: NDArray[np.int32]
    """(T,) of mode text."""
    finish_reason: str
    """Empty while running; then eos, length, cancelled, deadline or error."""
    queue_ms: int
    """Milliseconds spent waiting for a slot."""
    num_retries: int
    """Derived seeds tried because the end came first."""
    mean_batch: float = 0.0
    """Sequences decoded together, itself included, on average over its steps; 0: no step yet."""


class TokenModel(Protocol):
    """chattts_gpt."""

    def generate(self, inputs: Tensors) -> Iterator[TokenChunk]:
        """Run one request; raises SpeechError."""

    def cancel(self, request_id: str) -> None:
        """Stop a request; one that has ended is no error."""


class Vocoder(Protocol):
    """chattts_vocoder."""

    def decode(self, chunk: VocoderChunk) -> tuple[FloatArray, FloatArray]:
        """Return samples (C * P,) and the next state of one chunk; raises SpeechError."""


class Caller(Protocol):
    """Who asked."""

    def is_cancelled(self) -> bool:
        """Say whether the caller has gone."""

    def send(self, samples: FloatArray, metadata: Mapping[str, Any], is_final: bool) -> None:
        """Send one piece of audio; the final one is the last message."""


@dataclass(frozen=True, slots=True, eq=False)
class Services:
    """What all requests share."""

    tokens: TokenModel
    """chattts_gpt."""
    vocoder: Vocoder
    """chattts_vocoder."""
    readers: Executor
    """Threads for the segments in the token model."""
    vocoder_sizes: VocoderSizes
    """Sizes of its tensors."""
    decode_refined: Callable[[Sequence[int]], str]
    """Ids of a refine pass to text."""
    parallel_segments: int
    """Segments of one request in the token model at once."""
    sample_rate: int
    """Hz."""
    low_latency: LowLatency
    """Settings of latency=low."""
    cancel_poll_s: Callable[[], float]
    """How often a waiting request looks whether its caller has gone, in seconds."""
