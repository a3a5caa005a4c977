"""EngineMetrics: the numbers of all engines as metrics of the server.

Knows no Triton: it is handed Triton's metric families. To be used by one thread, since two that
change metrics at the same time crash server 2.51. Changing one costs a message to the server, so
what has not changed is not set again, and nothing here is in an engine's way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .stats import Snapshot

Kind = Literal["gauge", "counter", "histogram"]
PRIORITIES = (1, 2, 3)
SNAPSHOTS_PER_SHOW = 5
"""Of an engine that works, so many come in about half a second; what grows or drifts with every
step is shown with the last of them, and with the one of an engine that has nothing to do."""
STEPS_PER_OBSERVATION = 16
"""Steps with so many sequences for each observation of that number: hundreds come in a second, and
each would cost as much as a request's whole record."""
_PER_ENGINE = ("version", "engine")


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One family, as docs/metrics.md lists it."""

    name: str
    kind: Kind
    description: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...] = ()
    """Upper bounds, of a histogram."""


def _gauge(name: str, description: str, labels: tuple[str, ...] = _PER_ENGINE) -> MetricSpec:
    return MetricSpec(name, "gauge", description, labels)


def _counter(name: str, description: str) -> MetricSpec:
    return MetricSpec(name, "counter", description, _PER_ENGINE)


GAUGES = {
    "num_running": _gauge("chattts_sequences_running", "Sequences that hold KV blocks"),
    "num_kv_blocks": _gauge("chattts_kv_blocks_total", "KV blocks in the pool"),
    "num_kv_blocks_used": _gauge("chattts_kv_blocks_used", "KV blocks that sequences hold"),
}
"""What requests that begin and end change."""
DRIFTING_GAUGES = {
    "kv_fragmentation": _gauge(
        "chattts_kv_fragmentation_ratio",
        "Share of the positions of used KV blocks that hold no token, 0 to 1",
    ),
    "resident_bytes": _gauge(
        "chattts_engine_resident_memory_bytes", "Resident memory of the engine's process"
    ),
}
GPU_GAUGES = {
    "gpu_used_bytes": _gauge(
        "chattts_gpu_memory_used_bytes", "GPU memory that the engine has taken; only on a GPU"
    ),
    "gpu_limit_bytes": _gauge(
        "chattts_gpu_memory_limit_bytes",
        "GPU memory up to which the engine may fill its device; only on a GPU",
    ),
}
"""Gauges that an engine on a CPU does not have."""
COUNTERS = {
    "num_steps": _counter("chattts_engine_steps_total", "Engine steps"),
    "num_generated_tokens": _counter("chattts_generated_tokens_total", "Tokens generated"),
    "num_prefilled_tokens": _counter(
        "chattts_prefilled_tokens_total", "Prompt positions computed, pre-empted ones again"
    ),
    "num_preemptions": _counter(
        "chattts_preemptions_total", "Times that a sequence lost its KV blocks"
    ),
}
DEATHS = _counter("chattts_engine_deaths_total", "Engine processes that died and were replaced")
BATCH = MetricSpec(
    "chattts_decode_batch_size",
    "histogram",
    "Sequences decoded together in one step of the network, of every 16th step",
    _PER_ENGINE,
    (1, 2, 4, 8, 12, 16, 24, 32, 48, 64),
)
WAITING = _gauge(
    "chattts_requests_waiting", "Requests that wait for an engine", ("version", "priority")
)
SPECS = (
    *GAUGES.values(),
    *DRIFTING_GAUGES.values(),
    *GPU_GAUGES.values(),
    *COUNTERS.values(),
    DEATHS,
    BATCH,
    WAITING,
)


def take_switch(parameters: dict[str, str]) -> bool:
    """Take the key `metrics` out of the `parameters` of config.pbtxt; say whether it is on.

    Raises:
        ValueError: it is neither true nor false.
    """
    value = parameters.pop("metrics", "true")
    if value not in ("true", "false"):
        raise ValueError(f"metrics: {value!r} is neither true nor false")
    return value == "true"


class EngineMetrics:
    """One set of metrics per engine, and the queue before all of them.

    Metrics outlive the model until the server starts again: to delete a family crashes server 2.51.
    So its gauges go down to 0 when it ends. They change by differences, since the process that
    follows this one may show the same version already.
    """

    def __init__(self, family: type[Any], version: str) -> None:
        """Create the families.

        Args:
            family: pb_utils.MetricFamily.
            version: of the model; the label that all metrics carry.
        """
        kinds = {"gauge": family.GAUGE, "counter": family.COUNTER, "histogram": family.HISTOGRAM}
        self._version = version
        self._families = {
            spec.name: family(spec.name, spec.description, kinds[spec.kind]) for spec in SPECS
        }
        self._metrics: dict[tuple[str, str], Any] = {}
        self._values: dict[tuple[str, str], float] = {}
        self._gauges: dict[tuple[MetricSpec, str], float] = {}
        self._num_unshown: dict[int, int] = defaultdict(int)
        self._unobserved: dict[tuple[str, int], float] = defaultdict(float)
        for priority in PRIORITIES:
            self._set(WAITING, str(priority), 0)

    def take_snapshot(self, index: int, snapshot: Snapshot) -> None:
        """Show an engine's numbers; counters go on when a new engine counts from 0 again."""
        engine = str(index)
        for key, spec in GAUGES.items():
            self._set(spec, engine, getattr(snapshot, key))
        self._num_unshown[index] += 1
        if not snapshot.num_running or self._num_unshown[index] == SNAPSHOTS_PER_SHOW:
            self._num_unshown[index] = 0
            self._show_the_rest(engine, snapshot)

    def take_queue(self, num_waiting: Mapping[int, int], num_deaths: Mapping[int, int]) -> None:
        """Show how many requests of each priority wait, and how many engines died by index."""
        for priority in PRIORITIES:
            self._set(WAITING, str(priority), num_waiting.get(priority, 0))
        for index, number in num_deaths.items():
            self._count(DEATHS, str(index), number)

    def close(self) -> None:
        """Take back what the gauges show; the last change."""
        for spec, label in self._gauges:
            self._set(spec, label, 0)

    def _show_the_rest(self, engine: str, snapshot: Snapshot) -> None:
        gpu_gauges = GPU_GAUGES if snapshot.gpu_limit_bytes else {}
        for key, spec in (DRIFTING_GAUGES | gpu_gauges).items():
            self._set(spec, engine, getattr(snapshot, key))
        self._metric(DEATHS, engine)
        self._metric(BATCH, engine)
        for key, spec in COUNTERS.items():
            self._count(spec, engine, getattr(snapshot, key))
        for size, number in snapshot.decode_batches:
            seen = self._unobserved[engine, size] + self._growth(f"batch {size}", engine, number)
            num_due, self._unobserved[engine, size] = divmod(seen, STEPS_PER_OBSERVATION)
            for _ in range(int(num_due)):
                self._metric(BATCH, engine).observe(size)

    def _set(self, spec: MetricSpec, label: str, value: float) -> None:
        key = (spec, label)
        change = value - self._gauges.get(key, 0.0)
        if change or key not in self._gauges:
            self._metric(spec, label).increment(change)
            # what the server has now, rounded alike: what is lost of a ratio is in the next change
            self._gauges[key] = self._gauges.get(key, 0.0) + change

    def _count(self, spec: MetricSpec, label: str, value: float) -> None:
        growth = self._growth(spec.name, label, value)
        if growth or (spec.name, label) not in self._metrics:
            self._metric(spec, label).increment(growth)

    def _growth(self, name: str, label: str, value: float) -> float:
        """Return by how much a number has grown; one that is smaller began anew."""
        before = self._values.get((name, label), 0)
        self._values[name, label] = value
        return value - before if value >= before else value

    def _metric(self, spec: MetricSpec, label: str) -> Any:
        """Return the metric of an engine (or a priority), made when it is first needed."""
        if (spec.name, label) not in self._metrics:
            labels = dict(zip(spec.labels, (self._version, label), strict=True))
            buckets = {"buckets": list(spec.buckets)} if spec.buckets else {}
            made = self._families[spec.name].Metric(labels=labels, **buckets)
            self._metrics[spec.name, label] = made
        return self._metrics[spec.name, label]
