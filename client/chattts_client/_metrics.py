"""What the server's metrics say now; docs/metrics.md explains each of them."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

from ._exceptions import ChatTTSError, ProtocolError
from ._settings import Endpoint
from ._web import OK, Connections

_HINT: Final = "Name the port of the server's metrics in metrics_url, 8002 by default."
_MAX_SHOWN: Final = 100
"""Bytes of another answer that are looked at for a message."""
_SERVER_FAILED: Final = 500
"""The lowest status that is about a server which does have the page."""


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One line of the metrics."""

    name: str
    """Such as chattts_running_requests."""
    labels: Mapping[str, str]
    """Such as version and engine."""
    value: float
    """In the unit that the name says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSnapshot:
    """The metrics at one moment; sums over versions and engines, None where none is published."""

    url: str
    """HOST:PORT that was asked."""
    running: int | None
    """Requests that are being spoken."""
    waiting: int | None
    """Requests that wait for an engine."""
    sequences_running: int | None
    """Text segments in the engines."""
    kv_blocks_used: int | None
    """Blocks of the KV cache that they hold."""
    kv_blocks_total: int | None
    """Blocks of the KV cache."""
    samples: tuple[MetricSample, ...] = field(repr=False)
    """Everything, Triton's own metrics included, in the server's order."""

    def value(self, name: str, **labels: str) -> float | None:
        """The sum of all samples of a name that have these labels; None if there are none."""
        return _sum(self.samples, name, labels)


def fetch_metrics(url: str, timeout_s: float | None) -> MetricsSnapshot:
    """Ask for the metrics at HOST:PORT.

    Always plain HTTP, as Triton serves them, and so without a client's headers.

    Raises:
        ServerUnavailableError: nothing answers there.
        RequestTimeoutError: no complete answer within `timeout_s` seconds.
        ServerError: the metrics' own server failed.
        ProtocolError: what answers has no metrics of Triton.
    """
    try:
        return _snapshot(url, _samples(_ask(url, timeout_s)))
    except ChatTTSError as error:
        error.hint = _HINT  # theirs is about the server that speaks
        raise


def _ask(url: str, timeout_s: float | None) -> bytes:
    try:
        with closing(Connections(Endpoint(url))) as connections:
            answer = connections.ask("/metrics", timeout_s)
    except ProtocolError as error:  # not HTTP
        raise _no_metrics(error) from error
    if answer.status >= _SERVER_FAILED:
        raise answer.error()
    if answer.status != OK:
        raise _no_metrics(f"HTTP status {answer.status}, {_beginning(answer.content)}")
    return answer.content


def _samples(content: bytes) -> tuple[MetricSample, ...]:
    # not at the top: few callers need it, and it is slow to import
    from prometheus_client.parser import text_string_to_metric_families

    try:
        families = list(text_string_to_metric_families(content.decode()))
    except ValueError as error:
        raise _no_metrics(_beginning(content)) from error
    samples = tuple(
        MetricSample(sample.name, sample.labels, sample.value)
        for family in families
        for sample in family.samples
    )
    if not any(sample.name.startswith(("nv_", "chattts_")) for sample in samples):
        raise _no_metrics("none of its names is Triton's")
    return samples


def _beginning(content: bytes) -> str:
    return reprlib.repr(content[:_MAX_SHOWN].decode(errors="replace"))


def _no_metrics(reason: object) -> ProtocolError:
    message = f"metrics_url: not the metrics of Triton: {reason}"
    return ProtocolError(message, field="metrics_url")


def _snapshot(url: str, samples: tuple[MetricSample, ...]) -> MetricsSnapshot:
    def count(name: str) -> int | None:
        value = _sum(samples, name, {})
        return None if value is None else int(value)

    return MetricsSnapshot(
        url=url,
        running=count("chattts_running_requests"),
        waiting=count("chattts_requests_waiting"),
        sequences_running=count("chattts_sequences_running"),
        kv_blocks_used=count("chattts_kv_blocks_used"),
        kv_blocks_total=count("chattts_kv_blocks_total"),
        samples=samples,
    )


def _sum(samples: tuple[MetricSample, ...], name: str, labels: Mapping[str, str]) -> float | None:
    found = [
        sample.value
        for sample in samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return sum(found) if found else None
