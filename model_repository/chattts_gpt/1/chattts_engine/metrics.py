"""EngineMetrics: the numbers of all engines as metrics of the server.

Knows no Triton: it is handed Triton's metric families. To be used by one thread, since two that
change metrics at the same time crash server 2.51.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .stats import Snapshot

_GAUGES = {
    "num_running": ("chattts_sequences_running", "Sequences that hold KV blocks"),
    "num_kv_blocks": ("chattts_kv_blocks_total", "KV blocks in the pool"),
    "num_kv_blocks_used": ("chattts_kv_blocks_used", "KV blocks that sequences hold"),
}
_COUNTERS = {
    "num_steps": ("chattts_engine_steps_total", "Engine steps"),
    "num_generated_tokens": ("chattts_generated_tokens_total", "Tokens generated"),
    "num_preemptions": (
        "chattts_preemptions_total",
        "Times that a sequence lost its KV blocks",
    ),
}
_WAITING = ("chattts_requests_waiting", "Requests that wait for an engine")
_DEATHS = ("chattts_engine_deaths_total", "Engine processes that died and were replaced")


class EngineMetrics:
    """One set of metrics per engine, and the queue before all of them."""

    def __init__(self, family: type[Any], version: str) -> None:
        """Create the families.

        Args:
            family: pb_utils.MetricFamily.
            version: of the model; the label that all metrics carry.
        """
        self._version = version
        self._gauges = {key: family(*words, family.GAUGE) for key, words in _GAUGES.items()}
        self._counters = {key: family(*words, family.COUNTER) for key, words in _COUNTERS.items()}
        self._deaths = family(*_DEATHS, family.COUNTER)
        self._waiting_family = family(*_WAITING, family.GAUGE)
        self._waiting = self._waiting_family.Metric(labels={"version": version})
        self._metrics: dict[tuple[str, int], Any] = {}
        self._values: dict[tuple[str, int], float] = {}
        self._num_waiting = 0

    def take_snapshot(self, index: int, snapshot: Snapshot) -> None:
        """Show an engine's numbers; counters go on when a new engine counts from 0 again."""
        for key in self._gauges:
            self._set(key, index, getattr(snapshot, key))
        for key in self._counters:
            self._count(key, index, getattr(snapshot, key))

    def take_queue(self, num_waiting: int, num_deaths: Mapping[int, int]) -> None:
        """Show how many requests wait, and how many engines of each index died."""
        if num_waiting != self._num_waiting:
            self._waiting.set(num_waiting)
            self._num_waiting = num_waiting
        for index, number in num_deaths.items():
            self._count("num_deaths", index, number)

    def _set(self, key: str, index: int, value: float) -> None:
        if self._values.get((key, index)) != value:
            self._metric(key, index).set(value)
            self._values[key, index] = value

    def _count(self, key: str, index: int, value: float) -> None:
        before = self._values.get((key, index), 0)
        growth = value - before if value >= before else value
        if growth or (key, index) not in self._values:
            self._metric(key, index).increment(growth)
            self._values[key, index] = value

    def _metric(self, key: str, index: int) -> Any:
        if (key, index) not in self._metrics:
            family = (self._gauges | self._counters | {"num_deaths": self._deaths})[key]
            labels = {"version": self._version, "engine": str(index)}
            self._metrics[key, index] = family.Metric(labels=labels)
        return self._metrics[key, index]
