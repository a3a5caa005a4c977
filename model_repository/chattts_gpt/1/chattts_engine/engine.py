"""Engine: add requests, step, abort. Synchronous, single-threaded, knows no clock of its own.

One step computes a bounded number of prompt tokens and decodes every sequence whose prompt was
done before; a sequence that ends frees its slot and blocks within the step, and the next step gives
them to a waiting one.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from .block_manager import BlockManager
from .config import EngineConfig, GPTConfig
from .embeddings import Embeddings
from .isolation import isolated
from .noise import derive_seed
from .runner import FusedRunner, Runner
from .sampler import Sampler
from .sampling_rows import sampling_rows
from .scheduler import PrefillChunk, Scheduler
from .sequence import FinishReason, GenerationRequest, Mode, Sequence, SequenceStatus
from .stats import EngineStats, Snapshot, resident_bytes

MAX_EOS_RETRIES = 8
"""Derived seeds tried when the very first token is the end token."""
NOT_FINITE = "the network gave a non-finite value"


@dataclass(frozen=True, slots=True, eq=False)
class StepOutput:
    """What one step did to one sequence."""

    sequence: Sequence
    token: NDArray[np.int32] | None = None
    """(C,) new token of mode code, (1,) of mode text; None when the sequence only ended."""
    hidden: NDArray[np.float32] | None = None
    """(H,) hidden state that predicted the token."""
    finish_reason: FinishReason | None = None
    """Set on a sequence's last output."""


class Engine:
    """Continuous batching over one runner."""

    def __init__(
        self,
        config: EngineConfig,
        gpt: GPTConfig,
        runner: Runner,
        embeddings: Embeddings,
        end_of_text_id: int,
        sampler: Sampler | None = None,
    ) -> None:
        self.config = config
        self.gpt = gpt
        self.stats = EngineStats()
        self.block_manager = BlockManager(config.pool_blocks(), config.block_size)
        self.runner = runner
        # A sampler that was handed in must draw every token itself.
        self._fused = runner if sampler is None and isinstance(runner, FusedRunner) else None
        decode_steps = self._fused.max_fused_steps if self._fused else 1
        self.scheduler = Scheduler(self.block_manager, config, decode_steps)
        self._embeddings = embeddings
        self._end_of_text_id = end_of_text_id
        self._sampler = sampler or Sampler()
        self._sequences: dict[str, Sequence] = {}
        self._outputs: list[StepOutput] = []

    @property
    def has_unfinished(self) -> bool:
        """Whether a step has anything to do."""
        return bool(self._sequences)

    @property
    def num_unfinished(self) -> int:
        """Requests waiting or running."""
        return len(self._sequences)

    @property
    def max_num_tokens(self) -> int:
        """Longest prompt plus generation: configured, known positions, and what the pool holds."""
        block_tokens = self.block_manager.num_blocks * self.block_manager.block_size
        return min(self.config.max_model_len, self.gpt.max_position_embeddings, block_tokens)

    def add_request(self, request: GenerationRequest, now_s: float) -> None:
        """Queue a request.

        Raises:
            ValueError: it can never fit, or its id is in use.
        """
        request.check_fits(self.max_num_tokens)
        if request.id in self._sequences:
            raise ValueError(f"id: {request.id!r} is in use by a running request")
        sequence = Sequence.create(request, self.gpt.num_codebooks, now_s)
        self._sequences[request.id] = sequence
        self.scheduler.add(sequence)

    def snapshot(self) -> Snapshot:
        """Return the numbers that an operator watches."""
        gpu_used, gpu_limit = self._fused.gpu_memory() if self._fused else (0, 0)
        return Snapshot(
            num_running=len(self.scheduler.running),
            num_kv_blocks=self.block_manager.num_blocks,
            num_kv_blocks_used=self.block_manager.num_used,
            kv_fragmentation=self.block_manager.fragmentation(self.scheduler.running),
            resident_bytes=resident_bytes(),
            gpu_used_bytes=gpu_used,
            gpu_limit_bytes=gpu_limit,
            num_steps=self.stats.num_steps,
            num_generated_tokens=self.stats.num_generated_tokens,
            num_prefilled_tokens=self.stats.num_prefilled_tokens,
            num_preemptions=self.scheduler.num_preemptions,
            decode_batches=tuple(self.stats.decode_batches.items()),
        )

    def abort(self, request_id: str) -> list[StepOutput]:
        """End a request with finish reason "cancelled"; an unknown id is not an error."""
        if request_id in self._sequences:
            self._finish(self._sequences[request_id], "cancelled")
        return self._take_outputs()

    def fail_all(self, error: str) -> list[StepOutput]:
        """End every running request with an error, after a step that raised: the last resort.

        Returns:
            Also what that step had done to other requests before it raised.
        """
        for sequence in list(self.scheduler.running):
            self._finish(sequence, "error", error)
        return self._take_outputs()

    def step(self, now_s: float) -> list[StepOutput]:
        """Advance every running sequence; return what happened, in order.

        Raises:
            Exception: something that no single request is to blame for; see fail_all.
        """
        self._expire(now_s)
        schedule = self.scheduler.schedule(now_s)
        for sequence in schedule.preempted:
            self.runner.release(sequence)
        fused = [s for s in schedule.decodes if self._can_fuse(s)]
        single = [s for s in schedule.decodes if not self._can_fuse(s)]
        for some, hidden in isolated(single, self._decode, self._fail):
            self._sample(some, hidden)
        if fused:
            self._decode_fused(fused)
        for chunk in schedule.prefills:
            if chunk.sequence.status is SequenceStatus.RUNNING:  # an earlier chunk may have failed
                self._prefill(chunk)
        self.stats.num_steps += 1
        if not self._sequences:
            self.scheduler.check_integrity()
        return self._take_outputs()

    def _take_outputs(self) -> list[StepOutput]:
        outputs, self._outputs = self._outputs, []
        return outputs

    def _expire(self, now_s: float) -> None:
        """End the requests whose deadline has passed."""
        for sequence in [s for s in self._sequences.values() if s.is_late(now_s)]:
            self._finish(sequence, "deadline")

    def _prefill(self, chunk: PrefillChunk) -> None:
        """Compute a chunk of a prompt; the last one of it also draws the first token."""

        def compute(sequences: SequenceOf[Sequence]) -> NDArray[np.float32]:
            (sequence,) = sequences
            inputs = self._embeddings.prompt(sequence.request)[chunk.start : chunk.end]
            hidden = self.runner.prefill(sequence, inputs, chunk.start)
            sequence.num_computed_tokens = chunk.end
            self.stats.num_prefilled_tokens += len(inputs)
            return hidden

        for some, hidden in isolated([chunk.sequence], compute, self._fail):
            if chunk.sequence.is_prefilled:
                self._sample(some, hidden[-1:])

    def _decode(self, sequences: SequenceOf[Sequence]) -> NDArray[np.float32]:
        """Feed each sequence its next known token; return the (B, H) hidden states."""
        hidden = self.runner.decode(sequences, self._embeddings.steps(sequences))
        for sequence in sequences:
            sequence.take_decode(len(sequences))
        self.stats.add_decode_step(len(sequences))
        return hidden

    def _can_fuse(self, sequence: Sequence) -> bool:
        """Whether the runner itself draws this sequence's next tokens."""
        is_code = sequence.request.mode == "code"
        return self._fused is not None and is_code and sequence.is_caught_up

    def _decode_fused(self, sequences: SequenceOf[Sequence]) -> None:
        """Let the runner draw several tokens of each sequence, and apply them in order."""
        assert self._fused is not None
        most = max(s.max_num_tokens - s.num_tokens for s in sequences)
        num_steps = min(self._fused.max_fused_steps, most)
        end_token = self.gpt.end_of_speech
        rows = sampling_rows(sequences, self.gpt.num_codebooks, end_token)
        decoded = self._fused.decode_steps(sequences, rows, num_steps)
        for tokens, hidden in zip(decoded.tokens, decoded.hidden, strict=True):
            finite = np.isfinite(hidden).all(axis=1)
            # others ended in an earlier one of these steps
            running = [
                (row, sequence)
                for row, sequence in enumerate(sequences)
                if sequence.status is SequenceStatus.RUNNING
            ]
            if running:
                self.stats.add_decode_step(len(running))
            for row, sequence in running:
                sequence.take_decode(len(running))
                if finite[row]:
                    self._apply(sequence, tokens[row], hidden[row], end_token)
                else:
                    self._finish(sequence, "error", NOT_FINITE)

    def _sample(self, sequences: SequenceOf[Sequence], hidden: NDArray[np.float32]) -> None:
        """Draw the next token of the sequences that have computed all they know."""
        rows = {sequence.id: row for sequence, row in zip(sequences, hidden, strict=True)}

        def draw(some: SequenceOf[Sequence]) -> NDArray[np.int32]:
            return self._draw(some, np.stack([rows[sequence.id] for sequence in some]))

        for mode in get_args(Mode):
            due = [s for s in sequences if s.request.mode == mode and s.needs_sampling]
            for some, tokens in isolated(due, draw, self._fail):
                for sequence, token in zip(some, tokens, strict=True):
                    self._apply(sequence, token, rows[sequence.id], self._end_token(mode))

    def _end_token(self, mode: Mode) -> int:
        return self.gpt.end_of_speech if mode == "code" else self._end_of_text_id

    def _draw(
        self, sequences: SequenceOf[Sequence], hidden: NDArray[np.float32]
    ) -> NDArray[np.int32]:
        """Draw one token each, (B, C), for sequences of one mode from (B, H) hidden states.

        Raises:
            FloatingPointError: a logit is not finite; a hidden state that is not makes such logits.
        """
        mode = sequences[0].request.mode
        if mode == "code":
            logits = self.runner.code_logits(hidden)
        else:
            logits = self.runner.text_logits(hidden)[:, None]
        if not np.isfinite(logits).all():
            raise FloatingPointError(NOT_FINITE)
        end_token = self._end_token(mode)
        tokens = self._sample_rows(sequences, logits, end_token)
        for row, sequence in enumerate(sequences):
            for attempt in range(1, MAX_EOS_RETRIES + 1):
                if sequence.num_generated or end_token not in tokens[row]:
                    break
                sequence.noise_seed = derive_seed(sequence.request.sampling.seed, attempt)
                sequence.num_retries = attempt
                tokens[row] = self._sample_rows([sequence], logits[row : row + 1], end_token)[0]
        return tokens

    def _sample_rows(
        self, sequences: SequenceOf[Sequence], logits: NDArray[np.float32], end_token: int
    ) -> NDArray[np.int32]:
        """Sample (B, C) tokens from (B, C, V) logits."""
        batch, codebooks, vocabulary = logits.shape
        rows = sampling_rows(sequences, codebooks, end_token)
        drawn = self._sampler.sample(logits.reshape(batch * codebooks, vocabulary), rows)
        return drawn.reshape(batch, codebooks).astype(np.int32)

    def _apply(
        self,
        sequence: Sequence,
        token: NDArray[np.int32],
        hidden: NDArray[np.float32],
        end_token: int,
    ) -> None:
        """Append a drawn token, or end the sequence."""
        if end_token in token:
            if sequence.num_generated == 0:
                error = f"the model ended at once, with {MAX_EOS_RETRIES} derived seeds too"
                self._finish(sequence, "error", error)
            else:
                self._finish(sequence, "eos")
            return
        sequence.append(token)
        self.stats.num_generated_tokens += 1
        if sequence.num_generated == sequence.request.sampling.max_new_tokens:
            self._remove(sequence, "length")
        self._outputs.append(StepOutput(sequence, token, hidden, sequence.finish_reason))

    def _fail(self, sequence: Sequence, error: str) -> None:
        self._finish(sequence, "error", error)

    def _finish(self, sequence: Sequence, reason: FinishReason, error: str = "") -> None:
        """End a sequence without a further token."""
        self._remove(sequence, reason, error)
        self._outputs.append(StepOutput(sequence, finish_reason=reason))

    def _remove(self, sequence: Sequence, reason: FinishReason, error: str = "") -> None:
        """Take a sequence out of the engine, with everything it holds."""
        sequence.finish_reason = reason
        sequence.error = error
        self.scheduler.finish(sequence)
        self.runner.release(sequence)
        del self._sequences[sequence.id]
