"""The verdict: did anything grow, is everything back, did every request end with a reason."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .outcomes import Outcome, Tally
from .watch import Snapshot

GROWTH_LIMIT = 1.05
MIN_SNAPSHOTS = 8
"""Two per quarter; fewer say nothing about growth."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One figure at an earlier and at a later time."""

    name: str
    first: float
    last: float

    @property
    def ratio(self) -> float:
        """Later over earlier."""
        return self.last / self.first

    @property
    def is_within(self) -> bool:
        """Whether it grew by no more than 5 %."""
        return self.ratio <= GROWTH_LIMIT


def growth_under_load(snapshots: Sequence[Snapshot]) -> list[Growth]:
    """Compare means over the first quarter of the snapshots with means over the last.

    Memory and threads of all processes together, shared memory, and resident memory by part.

    Returns:
        Nothing if there are fewer than MIN_SNAPSHOTS.
    """
    if len(snapshots) < MIN_SNAPSHOTS:
        return []
    quarter = len(snapshots) // 4
    first, last = snapshots[:quarter], snapshots[-quarter:]
    figures: dict[str, Callable[[Snapshot], float]] = {
        "rss": lambda one: one.total("rss"),
        "pss": lambda one: one.total("pss"),
        "shared memory": lambda one: one.shared_memory,
        "threads": lambda one: one.total("num_threads"),
    }
    for part in sorted(first[0].parts):
        figures[f"rss of {part}"] = lambda one, part=part: one.parts[part].rss  # type: ignore[misc]
    return [
        Growth(name, statistics.fmean(map(figure, first)), statistics.fmean(map(figure, last)))
        for name, figure in figures.items()
    ]


def faults_under_load(growths: Sequence[Growth]) -> Iterator[str]:
    """Say what grew."""
    for growth in growths:
        if not growth.is_within:
            yield f"{growth.name} grew under load to {growth.ratio:.3f} times what it was"


def faults_at_rest(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """Say what differs between two moments without requests: after warm-up and at the end."""
    if after.num_running != 0:
        yield f"{after.num_running:g} requests still run at the end"
    if after.blocks_used != 0:
        yield f"{after.blocks_used:g} KV blocks are in use at the end"
    counts = [
        {name: part.num_processes for name, part in one.parts.items()} for one in (before, after)
    ]
    if counts[0] != counts[1]:
        yield f"processes: {counts[0]} before, {counts[1]} at the end"
    for name, what in (("num_threads", "threads"), ("num_fds", "open files")):
        was, now = before.total(name), after.total(name)
        if now > was:
            yield f"{what} at rest: {was} before, {now} at the end"
    for growth in (
        Growth("rss", before.total("rss"), after.total("rss")),
        Growth("pss", before.total("pss"), after.total("pss")),
        Growth("shared memory", before.shared_memory, after.shared_memory),
    ):
        if not growth.is_within:
            yield f"{growth.name} at rest grew to {growth.ratio:.3f} times what it was"


def faults_of_traffic(tally: Tally, wanted: Sequence[str]) -> Iterator[str]:
    """Say what nothing explains, and which kinds of traffic never occurred."""
    count = tally.by_outcome()[Outcome.UNEXPLAINED]
    if count:
        first = "; ".join(f"{one.kind}: {one.what}" for one in tally.unexplained[:3])
        yield f"{count} unexplained failures, such as {first}"
    missing = set(wanted) - tally.by_kind().keys()
    if missing:
        yield f"never asked: {', '.join(sorted(missing))}"
