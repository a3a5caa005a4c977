"""Scheduler: which sequences are prefilled and which decode in the next step.

It never sees a tensor. Waiting sequences are ordered by arrival plus a fixed head start per
priority, so a high priority overtakes and a low one is still served in the end. When the pool is
full the sequence that is last in this order gives its blocks back and waits again (pre-emption by
recompute: its tokens stay known and are fed again).
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

from .block_manager import BlockManager
from .sequence import Sequence, SequenceStatus

PRIORITY_HEAD_START_S = 30.0
"""Seconds by which one priority level overtakes the next: also the longest it can starve it."""


@dataclass(slots=True)
class Schedule:
    """What the next step does."""

    prefills: list[Sequence] = field(default_factory=list)
    """Newly admitted; their prompts are computed now, and they decode in the same step."""
    decodes: list[Sequence] = field(default_factory=list)
    """Every running sequence, the newly admitted ones included."""
    preempted: list[Sequence] = field(default_factory=list)
    """Lost their blocks; the runner must forget them."""


def queue_key(sequence: Sequence) -> float:
    """Return the place in the order of service; smaller is earlier."""
    return sequence.arrival_s + (sequence.request.priority - 1) * PRIORITY_HEAD_START_S


class Scheduler:
    """Admission, pre-emption and release of sequences under the slot and block limits."""

    def __init__(
        self, block_manager: BlockManager, max_num_seqs: int, max_num_batched_tokens: int
    ) -> None:
        self.block_manager = block_manager
        self.max_num_seqs = max_num_seqs
        self.max_num_batched_tokens = max_num_batched_tokens
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.num_preemptions = 0

    def add(self, sequence: Sequence) -> None:
        """Queue a new sequence, or one that was pre-empted."""
        sequence.status = SequenceStatus.WAITING
        insort(self.waiting, sequence, key=queue_key)

    def schedule(self, now_s: float) -> Schedule:
        """Decide the next step; every returned sequence owns the blocks that it needs."""
        schedule = Schedule()
        self._make_room(schedule)
        if not schedule.preempted:
            self._admit(schedule, now_s)
        schedule.decodes = list(self.running)
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

    def _make_room(self, schedule: Schedule) -> None:
        """Give each running sequence the block of its next position, pre-empting from the back."""
        for sequence in sorted(self.running, key=queue_key):
            if sequence.status is not SequenceStatus.RUNNING:
                continue  # pre-empted for one before it
            needed = sequence.num_computed_tokens + 1
            while not self.block_manager.can_hold(sequence, needed):
                victim = max(self.running, key=queue_key)
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

    def _admit(self, schedule: Schedule, now_s: float) -> None:
        """Admit from the front of the queue while slots, blocks and the token budget last."""
        num_batched_tokens = 0
        while self.waiting and len(self.running) < self.max_num_seqs:
            sequence = self.waiting[0]
            num_batched_tokens += sequence.request.num_prompt_tokens
            over_budget = schedule.prefills and num_batched_tokens > self.max_num_batched_tokens
            # All that is known plus one position: the sequence decodes in the same step, and one
            # that was pre-empted catches up without losing its blocks on the way.
            needed = sequence.num_tokens + 1
            if over_budget or not self.block_manager.can_hold(sequence, needed):
                return
            self.waiting.pop(0)
            self.block_manager.grow(sequence, needed)
            sequence.status = SequenceStatus.RUNNING
            if sequence.first_scheduled_s is None:
                sequence.first_scheduled_s = now_s
            self.running.append(sequence)
            schedule.prefills.append(sequence)
