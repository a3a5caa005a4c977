"""Triton's metric families, without Triton."""

from __future__ import annotations

import threading
from typing import Any, ClassVar


class FakeFamily:
    """A family; all that exist are in `made`."""

    GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"
    made: ClassVar[dict[str, FakeFamily]] = {}

    def __init__(self, name: str, description: str, kind: str) -> None:
        assert name not in self.made
        assert description
        self.kind = kind
        self.metrics: dict[tuple[str, ...], FakeMetric] = {}
        self.made[name] = self

    def Metric(self, labels: dict[str, str], **more: Any) -> FakeMetric:
        assert tuple(labels.values()) not in self.metrics
        metric = self.metrics[tuple(labels.values())] = FakeMetric()
        assert ("buckets" in more) == (self.kind == self.HISTOGRAM)
        return metric


class FakeMetric:
    """A metric; two threads that change any at once would crash server 2.51."""

    _is_changing = threading.Lock()

    def __init__(self) -> None:
        self.value = 0.0
        self.observed: list[float] = []
        self.num_calls = 0

    def set(self, value: float) -> None:
        self._change(value - self.value)

    def increment(self, value: float) -> None:
        self._change(value)

    def observe(self, value: float) -> None:
        self.observed.append(value)
        self._change(0.0)

    def _change(self, value: float) -> None:
        assert self._is_changing.acquire(blocking=False), "two changes at once"
        self.value += value
        self.num_calls += 1
        self._is_changing.release()
