"""Chunk: what a caller receives of a running request, and the builder that collects it."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .config import GPTConfig
from .engine import StepOutput
from .sequence import FinishReason, GenerationRequest, Mode


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """New tokens of one request since its last chunk."""

    request_id: str
    mode: Mode
    tokens: NDArray[np.int32]
    """(T, C) codes of mode code, (T, 1) token ids of mode text; T may be 0 in the last chunk."""
    hidden: NDArray[np.float32]
    """(T, H), or (0, H) when the request did not ask for hidden states."""
    finish_reason: FinishReason | None
    """Set on the last chunk."""
    error: str
    """Why, when the finish reason is "error"."""
    num_prompt_tokens: int
    num_generated: int
    """Tokens generated so far."""
    queue_s: float
    """Seconds spent waiting for a slot."""
    num_retries: int = 0
    """Derived seeds tried because the end came first."""
    mean_batch: float = 0.0
    """Sequences decoded together, itself included, on average over its steps; 0: no step yet."""

    def last(self, num_tokens: int) -> Chunk:
        """Return the chunk with no more than its last tokens."""
        first = max(0, len(self.tokens) - num_tokens)
        return replace(self, tokens=self.tokens[first:], hidden=self.hidden[first:])


def join_chunks(chunks: SequenceOf[Chunk]) -> Chunk:
    """Return one chunk that holds all tokens of several, in order, and is as final as the last."""
    return replace(
        chunks[-1],
        tokens=np.concatenate([chunk.tokens for chunk in chunks]),
        hidden=np.concatenate([chunk.hidden for chunk in chunks]),
    )


def ending_chunk(
    request: GenerationRequest,
    gpt: GPTConfig,
    reason: FinishReason,
    error: str,
    num_generated: int,
    queue_s: float,
) -> Chunk:
    """Return the last chunk, without tokens, of a request that ends outside an engine."""
    return Chunk(
        request_id=request.id,
        mode=request.mode,
        tokens=np.zeros((0, gpt.num_codebooks if request.mode == "code" else 1), np.int32),
        hidden=np.zeros((0, gpt.hidden_size), np.float32),
        finish_reason=reason,
        error=error,
        num_prompt_tokens=request.num_prompt_tokens,
        num_generated=num_generated,
        queue_s=queue_s,
    )


class ChunkBuilder:
    """Collects one request's step outputs into chunks of the asked sizes."""

    def __init__(self, request: GenerationRequest, num_codebooks: int, hidden_size: int) -> None:
        self._request = request
        self._width = num_codebooks if request.mode == "code" else 1
        self._hidden_size = hidden_size
        self._next_size = request.first_chunk_tokens
        self._num_generated = 0
        self._tokens: list[NDArray[np.int32]] = []
        self._hidden: list[NDArray[np.float32]] = []

    def push(self, output: StepOutput, now_s: float) -> Chunk | None:
        """Add one step's output; return a chunk when one is due."""
        if output.token is not None:
            self._num_generated += 1
            self._tokens.append(output.token)
            if self._request.return_hidden and output.hidden is not None:
                self._hidden.append(output.hidden)
        if len(self._tokens) < self._next_size and output.finish_reason is None:
            return None
        return self._take(output, now_s)

    def _take(self, output: StepOutput, now_s: float) -> Chunk:
        sequence = output.sequence
        scheduled_s = now_s if sequence.first_scheduled_s is None else sequence.first_scheduled_s
        chunk = Chunk(
            request_id=sequence.id,
            mode=self._request.mode,
            tokens=np.array(self._tokens, dtype=np.int32).reshape(-1, self._width),
            hidden=np.array(self._hidden, dtype=np.float32).reshape(-1, self._hidden_size),
            finish_reason=output.finish_reason,
            error=sequence.error,
            num_prompt_tokens=self._request.num_prompt_tokens,
            num_generated=self._num_generated,
            queue_s=scheduled_s - sequence.arrival_s,
            num_retries=sequence.num_retries,
            mean_batch=sequence.mean_batch,
        )
        self._next_size = self._request.chunk_tokens
        self._tokens.clear()
        self._hidden.clear()
        return chunk
