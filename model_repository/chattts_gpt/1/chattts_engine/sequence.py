"""Sequence: one request on its way through the engine.

A sequence changes in three places only: the scheduler (status, blocks), the run (computed tokens)
and the post-processing (tokens, finish).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .sampling_params import SamplingParams

Mode = Literal["code", "text"]
FinishReason = Literal["eos", "length", "cancelled", "deadline", "error"]

PENALTY_WINDOW = 16
"""Generated tokens that the repetition penalty looks back at (published behaviour)."""


class SequenceStatus(Enum):
    """Where a sequence is."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True, eq=False)
class GenerationRequest:
    """What a caller asks of the engine, already validated."""

    id: str
    mode: Mode
    prompt_token_ids: NDArray[np.int64]
    """(T,) text token ids of the decorated prompt."""
    sampling: SamplingParams
    speaker_embedding: NDArray[np.float16] | None = None
    """(H,) as given, not yet normalised."""
    audio_prompt_codes: NDArray[np.int32] | None = None
    """(P, C) codes in [0, num_audio_tokens - 1) that follow the text prompt."""
    priority: int = 2
    """1 first ... 3 last."""
    deadline_s: float | None = None
    """When the request ends with finish reason "deadline", on the engine's clock."""
    queue_deadline_s: float | None = None
    """When it ends so if it still waits for its first slot."""
    first_chunk_tokens: int = 24
    chunk_tokens: int = 24
    """Steps per delivered chunk."""
    return_hidden: bool = True

    @property
    def num_prompt_tokens(self) -> int:
        """Positions that the prefill computes."""
        num_codes = 0 if self.audio_prompt_codes is None else len(self.audio_prompt_codes)
        return len(self.prompt_token_ids) + num_codes

    def check_fits(self, max_num_tokens: int) -> None:
        """Refuse a request that could never finish, however empty the engine is.

        Args:
            max_num_tokens: longest prompt plus generation.

        Raises:
            ValueError: the prompt plus max_new_tokens exceeds it.
        """
        room = max_num_tokens - self.num_prompt_tokens
        if room < 1:
            raise ValueError(
                f"prompt: {self.num_prompt_tokens} tokens are outside 1 ... {max_num_tokens - 1}"
            )
        if self.sampling.max_new_tokens > room:
            raise ValueError(
                f"max_new_tokens: {self.sampling.max_new_tokens} is outside 1 ... {room} "
                f"for a prompt of {self.num_prompt_tokens} tokens"
            )

    def is_late(self, now_s: float, *, has_had_slot: bool) -> bool:
        """Whether a deadline has passed; the queue's counts until the first slot."""
        deadlines = (self.deadline_s, None if has_had_slot else self.queue_deadline_s)
        return any(deadline is not None and now_s >= deadline for deadline in deadlines)


@dataclass(slots=True, eq=False)
class Sequence:
    """A request plus everything the engine knows about it."""

    request: GenerationRequest
    arrival_s: float
    tokens: NDArray[np.int32]
    """(max_new_tokens, C) for code, (max_new_tokens, 1) for text; the first num_generated count."""
    status: SequenceStatus = SequenceStatus.WAITING
    num_generated: int = 0
    num_computed_tokens: int = 0
    """Positions whose keys and values are in the cache."""
    block_table: list[int] = field(default_factory=list)
    noise_seed: int = 0
    """The seed in use: the request's, or one derived from it after an immediate end of speech."""
    num_retries: int = 0
    """Derived seeds tried because the end came first."""
    num_decodes: int = 0
    """Steps of the network that decoded it."""
    num_decoded_rows: int = 0
    """Sequences decoded in all of them, itself included."""
    first_scheduled_s: float | None = None
    finish_reason: FinishReason | None = None
    error: str = ""
    """Why, when the finish reason is "error"."""

    @classmethod
    def create(cls, request: GenerationRequest, num_codebooks: int, arrival_s: float) -> Sequence:
        """Make a waiting sequence."""
        width = num_codebooks if request.mode == "code" else 1
        tokens = np.zeros((request.sampling.max_new_tokens, width), dtype=np.int32)
        return cls(request, arrival_s, tokens, noise_seed=request.sampling.seed)

    @property
    def id(self) -> str:
        """The request's id."""
        return self.request.id

    @property
    def mean_batch(self) -> float:
        """Sequences decoded together, itself included, on average over its steps; 0: no step."""
        return self.num_decoded_rows / self.num_decodes if self.num_decodes else 0.0

    def take_decode(self, num_rows: int) -> None:
        """Count one position that was decoded together with others, num_rows in all."""
        self.num_computed_tokens += 1
        self.num_decodes += 1
        self.num_decoded_rows += num_rows

    @property
    def num_tokens(self) -> int:
        """Prompt positions plus generated tokens."""
        return self.request.num_prompt_tokens + self.num_generated

    @property
    def max_num_tokens(self) -> int:
        """Prompt positions plus the most tokens that it may generate."""
        return self.request.num_prompt_tokens + self.request.sampling.max_new_tokens

    @property
    def is_prefilled(self) -> bool:
        """Whether the whole prompt is computed."""
        return self.num_computed_tokens >= self.request.num_prompt_tokens

    @property
    def is_caught_up(self) -> bool:
        """Whether only the last token is still to be fed: false while pre-empted work is redone."""
        return self.num_computed_tokens == self.num_tokens - 1

    @property
    def needs_sampling(self) -> bool:
        """Whether everything known is computed, so that the next token is to be drawn."""
        return self.num_computed_tokens == self.num_tokens

    def is_late(self, now_s: float) -> bool:
        """Whether a deadline of the request has passed."""
        return self.request.is_late(now_s, has_had_slot=self.first_scheduled_s is not None)

    def next_input(self) -> NDArray[np.int32]:
        """Return the (C,) token to feed at position num_computed_tokens."""
        step = self.num_computed_tokens - self.request.num_prompt_tokens
        assert 0 <= step < self.num_generated
        row: NDArray[np.int32] = self.tokens[step]
        return row

    def append(self, token: NDArray[np.int32]) -> None:
        """Add a drawn token, (C,)."""
        self.tokens[self.num_generated] = token
        self.num_generated += 1

    def recent_tokens(self) -> NDArray[np.int32]:
        """Return the last generated tokens that the repetition penalty counts, (<= 16, C)."""
        recent: NDArray[np.int32] = self.tokens[
            max(0, self.num_generated - PENALTY_WINDOW) : self.num_generated
        ]
        return recent
