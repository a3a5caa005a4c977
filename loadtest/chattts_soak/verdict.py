"""The verdict: did anything grow, is everything back, did every request end with a reason."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .outcomes import Outcome, Tally
from .traffic import LEFT_AT_THE_END
from .watch import Part, Snapshot

GROWTH_LIMIT = 1.05
GROWTH_FLOOR = 4 * 2**20
"""Bytes that a figure may always grow by. Shared memory is 10 MB and grows by steps of one."""
COUNT_FLOOR = 8
"""Threads or files that a part may always have more: connections that close a little later."""
LOST_BYTES = 25_000
"""What tritonserver 2.51 loses when a call is cancelled while it ends: it forgets the call's state
(21 kB measured; server pull request 8078, in 25.04). Not counted as growth."""
MIN_SNAPSHOTS = 8
"""Two per quarter; fewer say nothing about growth."""
_BETWEEN_QUARTERS = 0.75
"""Share of the time that lies between the middle of the first and of the last quarter."""
_TOTAL = "memory"
_SHARED = "shared memory"
_HOLD_LOST = frozenset({_TOTAL, "tritonserver"})
PARTS_FROM_S = 600.0
"""A soak from this length on has given every part its busiest moment early, so that each may be
judged by itself; a shorter one is judged by the sum."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One figure at an earlier and at a later time."""

    name: str
    first: float
    last: float
    lost: float = 0.0
    """What tritonserver is known to lose in between."""

    @property
    def ratio(self) -> float:
        """Later over earlier, without what is known to be lost."""
        return (self.last - self.lost) / self.first

    @property
    def is_within(self) -> bool:
        """Whether it grew by no more than 5 %, or than the floor."""
        return self.last - self.lost <= max(GROWTH_LIMIT * self.first, self.first + GROWTH_FLOOR)


def growth_under_load(snapshots: Sequence[Snapshot], tally: Tally) -> list[Growth]:
    """Compare means over the first quarter of the snapshots with means over the last.

    Memory of all processes together, shared memory, heaps and stacks by part; bytes.

    Args:
        snapshots: at equal distances.
        tally: of the requests meanwhile.

    Returns:
        Nothing if there are fewer than MIN_SNAPSHOTS.
    """
    if len(snapshots) < MIN_SNAPSHOTS:
        return []
    quarter = len(snapshots) // 4
    first, last = snapshots[:quarter], snapshots[-quarter:]
    lost = _BETWEEN_QUARTERS * _lost(tally)
    figures: dict[str, Callable[[Snapshot], float]] = {
        _TOTAL: lambda one: one.memory,
        _SHARED: lambda one: one.shared_memory,
    }
    for part in sorted(first[0].parts):
        figures[part] = lambda one, part=part: one.parts[part].anonymous  # type: ignore[misc]
    return [
        Growth(
            name,
            statistics.fmean(map(figure, first)),
            statistics.fmean(map(figure, last)),
            lost if name in _HOLD_LOST else 0.0,
        )
        for name, figure in figures.items()
    ]


def _lost(tally: Tally) -> float:
    return LOST_BYTES * tally.count(LEFT_AT_THE_END, Outcome.LEFT)


def growth_at_rest(before: Snapshot, after: Snapshot, tally: Tally) -> list[Growth]:
    """Compare memory at two moments without requests, with the tally of those in between."""
    return [
        Growth(_TOTAL, before.memory, after.memory, _lost(tally)),
        Growth(_SHARED, before.shared_memory, after.shared_memory),
    ]


def faults_of_growth(growths: Sequence[Growth], when: str, soak_s: float) -> Iterator[str]:
    """Say what grew too much; parts only where the soak was long."""
    for growth in growths:
        is_judged = soak_s >= PARTS_FROM_S or growth.name in (_TOTAL, _SHARED)
        if is_judged and not growth.is_within:
            yield f"{growth.name} grew {when} to {growth.ratio:.3f} times what it was"


def faults_at_rest(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """Say what should be back at the end but is not; `before` is after the warm-up."""
    if after.num_running != 0:
        yield f"{after.num_running:g} requests still run at the end"
    if after.blocks_used != 0:
        yield f"{after.blocks_used:g} KV blocks are in use at the end"
    counts = [
        {name: part.num_processes for name, part in one.parts.items()} for one in (before, after)
    ]
    if counts[0] != counts[1]:
        yield f"processes: {counts[0]} before, {counts[1]} at the end"
    for name, part in before.parts.items():
        for field, what in (("num_threads", "threads"), ("num_fds", "open files")):
            was, now = getattr(part, field), getattr(after.parts.get(name, Part()), field)
            # Pools grow to their bound as they are needed; a leak per request grows far beyond.
            if now > max(GROWTH_LIMIT * was, was + COUNT_FLOOR):
                yield f"{what} of {name} at rest: {was} before, {now} at the end"


def faults_of_traffic(tally: Tally, wanted: Sequence[str]) -> Iterator[str]:
    """Say what nothing explains, and which kinds of traffic never occurred."""
    count = tally.by_outcome()[Outcome.UNEXPLAINED]
    if count:
        first = "; ".join(f"{one.kind}: {one.what}" for one in tally.unexplained[:3])
        yield f"{count} unexplained failures, such as {first}"
    missing = set(wanted) - tally.by_kind().keys()
    if missing:
        yield f"never asked: {', '.join(sorted(missing))}"
