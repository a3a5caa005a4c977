"""Runner: the seam between deciding (scheduler, engine) and computing (onnxruntime or torch)."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .sampler import SamplingRows
from .sequence import Sequence


class RunnerDeadError(Exception):
    """The runner cannot compute any more, for no sequence: its device is lost."""


class Runner(Protocol):
    """Computes the network over a paged KV cache.

    A row's result depends on its own sequence only, bit for bit. The runner reads a sequence's id,
    block table and computed positions, and changes nothing in it. A call that raised may be
    repeated, with fewer sequences too: what it had written is written again.
    """

    def prefill(
        self, sequence: Sequence, inputs: NDArray[np.float32], start: int
    ) -> NDArray[np.float32]:
        """Compute positions start ... start + T - 1 and keep their keys and values.

        Args:
            sequence: owns blocks for the positions; those before `start` are computed.
            inputs: (T, H) embeddings.
            start: first position; 0 begins the sequence.

        Returns:
            (T, H) hidden states after the final norm.
        """

    def decode(
        self, sequences: SequenceOf[Sequence], inputs: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Compute one position, num_computed_tokens, of each sequence.

        Args:
            sequences: B sequences that were prefilled, each owning the block of its position.
            inputs: (B, H) embeddings, in the same order.

        Returns:
            (B, H) hidden states after the final norm, in the same order.
        """

    def release(self, sequence: Sequence) -> None:
        """Forget a sequence's keys and values; unknown sequences are ignored."""

    def code_logits(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (N, C, A) logits of the codebooks for (N, H) hidden states."""

    def text_logits(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (N, V) logits of the text head for (N, H) hidden states."""


@dataclass(frozen=True, slots=True, eq=False)
class DecodedSteps:
    """What K fused steps drew for B sequences."""

    tokens: NDArray[np.int32]
    """(K, B, C)"""
    hidden: NDArray[np.float32]
    """(K, B, H) hidden states that predicted the tokens; NaN where the logits were not finite."""


@runtime_checkable
class FusedRunner(Runner, Protocol):
    """A Runner that also draws tokens and feeds them back itself, several steps per call."""

    max_fused_steps: int
    """Most steps per call, at least 1."""

    def gpu_memory(self) -> tuple[int, int]:
        """Return the bytes that it has taken of its GPU and may take; zeros without a GPU."""

    def decode_steps(
        self, sequences: SequenceOf[Sequence], rows: SamplingRows, num_steps: int
    ) -> DecodedSteps:
        """Compute num_steps positions of each sequence, from num_computed_tokens on.

        A sequence that draws the end token or has max_new_tokens may go on with anything; the
        caller drops what follows.

        Args:
            sequences: B sequences of mode code whose next input is their last token, each owning
                the blocks of its positions up to max_new_tokens.
            rows: B * C rows for the first step; the runner advances steps, history and end masks.
            num_steps: K, in 1 ... max_fused_steps.
        """
