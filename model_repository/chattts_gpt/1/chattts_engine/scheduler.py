"""Scheduler: which sequences are prefilled and which decode in the next step.

It never sees a tensor. Waiting sequences are ordered by arrival plus a fixed head start per level
of priority (`priority_head_start_ms`), so a high priority overtakes, and a low one is still served
in the end. When the pool is full the sequence that is last in this order gives its blocks back and
waits again (pre-emption by recompute: its tokens stay known and are fed again). Prompts are
computed in chunks under a budget per step, so that a long one does not hold up the others.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

from .block_manager import BlockManager
from .config import EngineConfig
from .sequence import Sequence, SequenceStatus


@dataclass(frozen=True, slots=True)
class PrefillChunk:
    """Prompt positions start ... end - 1 of a sequence."""

    sequence: Sequence
    start: int
    end: int


@dataclass(slots=True)
class Schedule:
    """What the next step does."""

    prefills: list[PrefillChunk] = field(default_factory=list)
    """In this order; a sequence's chunks follow one another."""
    decodes: list[Sequence] = field(default_factory=list)
    """Every running sequence whose prompt was computed before this step."""
    preempted: list[Sequence] = field(default_factory=list)
    """Lost their blocks; the runner must forget them."""


def queue_key(arrival_s: float, priority: int, config: EngineConfig) -> float:
    """Return a request's place in the order of service; smaller is earlier."""
    return arrival_s + (priority - 1) * config.priority_head_start_ms / 1000


class Scheduler:
    """Admission, prefill budget, pre-emption and release under the slot and block limits."""

    def __init__(
        self, block_manager: BlockManager, config: EngineConfig, decode_steps: int = 1
    ) -> None:
        """Start empty.

        Args:
            block_manager: the pool.
            config: slots, prefill chunk and budget, head start of a priority.
            decode_steps: positions that a running sequence may advance per step.
        """
        self.block_manager = block_manager
        self.config = config
        self.decode_steps = decode_steps
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.num_preemptions = 0

    def add(self, sequence: Sequence) -> None:
        """Queue a new sequence, or one that was pre-empted."""
        sequence.status = SequenceStatus.WAITING
        insort(self.waiting, sequence, key=self._place)

    def schedule(self, now_s: float) -> Schedule:
        """Decide the next step; every returned sequence owns the blocks that it needs."""
        schedule = Schedule()
        self._make_room(schedule)
        schedule.decodes = [s for s in self.running if s.is_prefilled]
        budget = self.config.max_num_batched_tokens
        for sequence in self.running:
            if not sequence.is_prefilled:
                budget = self._prefill(sequence, budget, schedule)
        while budget > 0 and not schedule.preempted and self._can_admit():
            budget = self._prefill(self._admit(now_s), budget, schedule)
        return schedule

    def finish(self, sequence: Sequence) -> None:
        """Remove a sequence from wherever it is and take its blocks back."""
        queue = self.running if sequence.status is SequenceStatus.RUNNING else self.waiting
        queue.remove(sequence)
        self.block_manager.free(sequence)
        sequence.status = SequenceStatus.FINISHED

    def check_integrity(self) -> None:
        """Check the pool against the tables of all live sequences."""
        self.block_manager.check_integrity(self.running + self.waiting)

    def _place(self, sequence: Sequence) -> float:
        return queue_key(sequence.arrival_s, sequence.request.priority, self.config)

    def _make_room(self, schedule: Schedule) -> None:
        """Give each running sequence the block of its next position, pre-empting from the back."""
        for sequence in sorted(self.running, key=self._place):
            if sequence.status is not SequenceStatus.RUNNING:
                continue  # pre-empted for one before it
            needed = min(sequence.num_computed_tokens + self.decode_steps, sequence.max_num_tokens)
            while not self.block_manager.can_hold(sequence, needed):
                victim = max(self.running, key=self._place)
                self._preempt(victim, schedule)
                if victim is sequence:
                    break
            else:
                self.block_manager.grow(sequence, needed)

    def _preempt(self, sequence: Sequence, schedule: Schedule) -> None:
        self.running.remove(sequence)
        self.block_manager.free(sequence)
        sequence.num_computed_tokens = 0
        self.num_preemptions += 1
        schedule.preempted.append(sequence)
        self.add(sequence)

    def _can_admit(self) -> bool:
        """Whether the front of the queue finds a slot and its blocks."""
        if not self.waiting or len(self.running) == self.config.max_num_seqs:
            return False
        # All that is known plus one position: one that was pre-empted catches up without losing
        # its blocks on the way.
        return self.block_manager.can_hold(self.waiting[0], self.waiting[0].num_tokens + 1)

    def _admit(self, now_s: float) -> Sequence:
        sequence = self.waiting.pop(0)
        self.block_manager.grow(sequence, sequence.num_tokens + 1)
        sequence.status = SequenceStatus.RUNNING
        if sequence.first_scheduled_s is None:
            sequence.first_scheduled_s = now_s
        self.running.append(sequence)
        return sequence

    def _prefill(self, sequence: Sequence, budget: int, schedule: Schedule) -> int:
        """Take the chunks of a prompt that fit the budget; return what is left, 0 if one does not.

        Chunks lie at multiples of the chunk size whatever else runs, so that the bits of a prompt
        do not depend on its neighbours. A step's first chunk always runs.
        """
        size, length = self.config.prefill_chunk_tokens, sequence.request.num_prompt_tokens
        for start in range(sequence.num_computed_tokens, length, size):
            end = min(start + size, length)
            if schedule.prefills and end - start > budget:
                return 0
            schedule.prefills.append(PrefillChunk(sequence, start, end))
            budget -= end - start
        return max(0, budget)
