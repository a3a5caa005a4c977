"""FrontMetrics: what the requests for speech came to, as metrics of the server.

Knows no Triton: it is handed Triton's metric families. Two threads that change metrics at the same
time crash server 2.51, so one lock is around every change. A change is a message to the server
(0.05 ms), so all but the gauge of running requests are made by one thread, after a request's end.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .outcome import Outcome
from .quality import REASONS

Kind = Literal["gauge", "counter", "histogram"]

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One family, as docs/metrics.md lists it; `version` is its first label."""

    name: str
    kind: Kind
    description: str
    labels: tuple[str, ...] = ()
    """The labels after `version`."""
    buckets: tuple[float, ...] = ()
    """Upper bounds, of a histogram."""


RUNNING = MetricSpec("chattts_running_requests", "gauge", "Requests that chattts is speaking")
REQUESTS = MetricSpec(
    "chattts_requests_total",
    "counter",
    "Requests for speech that have ended, by error code and the worst of their finish reasons",
    ("code", "finish_reason"),
)
LATENCY = MetricSpec(
    "tts_latency_seconds",
    "histogram",
    "Seconds from the arrival of a request to its last audio, of requests that ended OK",
    ("quant",),
    (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 120),
)
FIRST_AUDIO = MetricSpec(
    "chattts_time_to_first_audio_seconds",
    "histogram",
    "Seconds from the arrival of a request to its first audio, of all that got any",
    ("mode",),
    (0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60),
)
REAL_TIME_FACTOR = MetricSpec(
    "chattts_real_time_factor",
    "histogram",
    "Seconds from arrival to last audio per second of audio, of requests that ended OK with audio",
    buckets=(0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 2, 4, 8),
)
CHUNK_GAP = MetricSpec(
    "chattts_chunk_gap_seconds",
    "histogram",
    "Seconds between two pieces of audio of a stream, as they were sent",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10),
)
UNDERRUNS = MetricSpec(
    "chattts_underruns_total",
    "counter",
    "Streams whose listener, who began with the first piece, would have run dry",
)
UNDERRUN_SECONDS = MetricSpec(
    "chattts_underrun_seconds_total", "counter", "Seconds that such listeners would have waited"
)
AUDIO_SECONDS = MetricSpec("chattts_audio_seconds_total", "counter", "Seconds of audio sent")
CHARACTERS = MetricSpec(
    "chattts_characters_total", "counter", "Characters of the texts of requests that ended OK"
)
WARNINGS = MetricSpec(
    "chattts_warnings_total",
    "counter",
    "Warnings about texts, of requests that ended OK",
    ("code",),
)
QUALITY = MetricSpec(
    "chattts_quality_total", "counter", "Utterances with a fault that was found", ("reason",)
)
INFO = MetricSpec(
    "chattts_info",
    "gauge",
    "Processes of chattts that serve this; 0 once the version is unloaded",
    ("checkpoint", "precision", "untrained"),
)
MEMORY = MetricSpec(
    "chattts_front_resident_memory_bytes", "gauge", "Resident memory of the process of chattts"
)
RESTARTS = MetricSpec(
    "chattts_server_restarts", "gauge", "Times that the supervisor has started the server again"
)
SPECS = (
    RUNNING,
    REQUESTS,
    LATENCY,
    FIRST_AUDIO,
    REAL_TIME_FACTOR,
    CHUNK_GAP,
    UNDERRUNS,
    UNDERRUN_SECONDS,
    AUDIO_SECONDS,
    CHARACTERS,
    WARNINGS,
    QUALITY,
    INFO,
    MEMORY,
    RESTARTS,
)

# What exists from the start with 0, so that the first one is seen as a rise.
_ENDS = (
    *(("OK", reason) for reason in ("eos", "length", "deadline", "none")),
    *((code, "none") for code in ("INVALID_ARG", "UNAVAILABLE", "CANCELLED", "INTERNAL")),
)


class MetricTable:
    """The families of one version and their metrics, one change at a time.

    Metrics outlive their process until the server starts again: to delete a family crashes server
    2.51. What a process shows of itself it therefore takes back when it ends. It adds its share to
    the gauge, since the process that follows it may show the same version already.

    Args:
        family: pb_utils.MetricFamily.
        version: Of the model; the label that all metrics carry.
        specs: Families to create.
    """

    def __init__(self, family: type[Any], version: str, specs: Sequence[MetricSpec]) -> None:
        kinds = {"gauge": family.GAUGE, "counter": family.COUNTER, "histogram": family.HISTOGRAM}
        self._version = version
        self._families = {
            spec.name: family(spec.name, spec.description, kinds[spec.kind]) for spec in specs
        }
        self._metrics: dict[tuple[str, ...], Any] = {}
        self._shares: dict[tuple[MetricSpec, tuple[str, ...]], float] = {}
        self._lock = threading.Lock()

    def increment(self, spec: MetricSpec, change: float, *labels: str) -> None:
        """Change a counter or a gauge."""
        with self._lock:
            self._metric(spec, labels).increment(change)

    def set(self, spec: MetricSpec, value: float, *labels: str) -> None:
        """Set a gauge."""
        with self._lock:
            self._metric(spec, labels).set(value)

    def hold(self, spec: MetricSpec, value: float, *labels: str) -> None:
        """Set this process's share of a gauge; nothing is sent where it has not changed."""
        with self._lock:
            self._hold(spec, labels, value)

    def close(self) -> None:
        """Take back all shares; the last change."""
        with self._lock:
            for spec, labels in self._shares:
                self._hold(spec, labels, 0)

    def observe(self, spec: MetricSpec, value: float, *labels: str) -> None:
        """Add a value to a histogram."""
        with self._lock:
            self._metric(spec, labels).observe(value)

    def create(self, spec: MetricSpec, *labels: str) -> None:
        """Show a metric although nothing has happened yet."""
        with self._lock:
            self._metric(spec, labels)

    def _hold(self, spec: MetricSpec, labels: tuple[str, ...], value: float) -> None:
        if change := value - self._shares.get((spec, labels), 0):
            self._metric(spec, labels).increment(change)
            self._shares[spec, labels] = value

    def _metric(self, spec: MetricSpec, labels: tuple[str, ...]) -> Any:
        key = (spec.name, *labels)
        if key not in self._metrics:
            names = ("version", *spec.labels)
            named = dict(zip(names, (self._version, *labels), strict=True))
            buckets = {"buckets": list(spec.buckets)} if spec.buckets else {}
            self._metrics[key] = self._families[spec.name].Metric(labels=named, **buckets)
        return self._metrics[key]


class RunningGauge:
    """Requests that are being spoken, as a metric.

    Whoever stops the server reads it: server 2.51 refuses BLS calls from SIGTERM on, so running
    requests have to end before. So it is changed at once, by whichever thread.
    """

    def __init__(self, table: MetricTable) -> None:
        self._table = table
        self._lock = threading.Lock()
        self.count = 0
        """Requests that run now."""
        table.create(RUNNING)

    def add(self, change: int) -> None:
        """Count requests that begin (positive) or end."""
        with self._lock:
            self.count += change
            self._table.increment(RUNNING, change)


class FrontMetrics:
    """Counts outcomes. One thread at a time.

    Args:
        table: With all SPECS.
        facts: checkpoint, precision and untrained, of what is served.
        num_restarts: Times that the supervisor has started the server again.
    """

    def __init__(self, table: MetricTable, facts: Mapping[str, Any], num_restarts: int) -> None:
        self._table = table
        self._precision = str(facts["precision"])
        self._counted: dict[tuple[MetricSpec, tuple[str, ...]], float] = defaultdict(float)
        untrained = str(facts["untrained"]).lower()
        table.hold(INFO, 1, str(facts["checkpoint"]), self._precision, untrained)
        table.set(RESTARTS, num_restarts)
        for end in _ENDS:
            table.create(REQUESTS, *end)
        for reason in REASONS:
            table.create(QUALITY, reason)
        table.create(LATENCY, self._precision)
        for mode in ("stream", "unary"):
            table.create(FIRST_AUDIO, mode)
        for spec in SPECS:
            if not spec.labels and spec.kind != "gauge":
                table.create(spec)
        self.show()

    def show(self) -> None:
        """Show what was counted since the last time, and how much memory this process has.

        Once for many requests, since each change costs a message.
        """
        for (spec, labels), number in self._counted.items():
            self._table.increment(spec, number, *labels)
        self._counted.clear()
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        self._table.hold(MEMORY, int(pages) * _PAGE_BYTES)

    def take(self, outcome: Outcome) -> None:
        """Count one request that has ended; its times are shown at once."""
        table, progress = self._table, outcome.progress
        self._count(REQUESTS, 1, outcome.code, outcome.finish_reason)
        if outcome.first_audio_s is not None:
            table.observe(FIRST_AUDIO, outcome.first_audio_s, outcome.mode)
            self._count(AUDIO_SECONDS, outcome.audio_s)
        for gap_s in outcome.gaps_s:
            table.observe(CHUNK_GAP, gap_s)
        if outcome.underrun_s:
            self._count(UNDERRUNS, 1)
            self._count(UNDERRUN_SECONDS, outcome.underrun_s)
        for reason in progress.quality:
            self._count(QUALITY, 1, reason)
        if outcome.code != "OK":
            return
        table.observe(LATENCY, outcome.latency_s, self._precision)
        self._count(CHARACTERS, outcome.text_len)
        if outcome.audio_s:
            table.observe(REAL_TIME_FACTOR, outcome.latency_s / outcome.audio_s)
        for code in progress.warnings:
            self._count(WARNINGS, 1, code)

    def _count(self, spec: MetricSpec, number: float, *labels: str) -> None:
        self._counted[spec, labels] += number
