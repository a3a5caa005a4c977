"""Figures of a step of load: what its records add up to."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .records import Record, ended_within
from .texts import LENGTHS


@dataclass(frozen=True, slots=True)
class Figures:
    """One step of load; times of requests that ended well, in seconds."""

    concurrency: int
    """Requests at once."""
    seconds: float
    """How long was looked at."""
    requests: int
    """Ended in that time, errors included."""
    errors: int
    qps: float
    """Requests that ended well, per second."""
    audio_s_per_s: float
    """Seconds of audio per second."""
    latency_mean_s: float
    latency_p50_s: float
    latency_p95_s: float
    latency_p99_s: float
    first_audio_p50_s: float
    first_audio_p95_s: float
    real_time_factor_p50: float
    real_time_factor_p95: float
    underruns: int
    """Streams whose listener ran dry."""
    waited_s: float
    """Seconds that these listeners waited, together."""
    memory_bytes: int
    """Most memory that the server held, as `memory.py` looks it up; 0: not known."""


def figures(
    records: Sequence[Record],
    concurrency: int,
    settle_s: float,
    seconds: float,
    memory_bytes: int = 0,
) -> Figures:
    """Add up the records that ended within `seconds` seconds, `settle_s` after the first call.

    Raises:
        ValueError: none of them ended well.
    """
    ended = ended_within(records, settle_s, seconds)
    good = [record for record in ended if record.is_ok]
    if not good:
        kinds = sorted({record.error for record in ended if record.error})
        raise ValueError(f"{concurrency} at once: of {len(ended)} requests none ended well {kinds}")
    latencies = [record.latency_s for record in good]
    first_audios = [record.first_audio_s for record in good]
    factors = [record.real_time_factor for record in good]
    return Figures(
        concurrency=concurrency,
        seconds=seconds,
        requests=len(ended),
        errors=len(ended) - len(good),
        qps=len(good) / seconds,
        audio_s_per_s=sum(record.audio_s for record in good) / seconds,
        latency_mean_s=float(np.mean(latencies)),
        latency_p50_s=float(np.percentile(latencies, 50)),
        latency_p95_s=float(np.percentile(latencies, 95)),
        latency_p99_s=float(np.percentile(latencies, 99)),
        first_audio_p50_s=float(np.percentile(first_audios, 50)),
        first_audio_p95_s=float(np.percentile(first_audios, 95)),
        real_time_factor_p50=float(np.percentile(factors, 50)),
        real_time_factor_p95=float(np.percentile(factors, 95)),
        underruns=sum(record.waits > 0 for record in good),
        waited_s=sum(record.waited_s for record in good),
        memory_bytes=memory_bytes,
    )


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """The requests of one length of text in a step; seconds."""

    concurrency: int
    length: str
    requests: int
    """Ended well."""
    latency_p50_s: float
    latency_p99_s: float
    first_audio_p50_s: float
    first_audio_p95_s: float
    real_time_factor_p50: float


def by_length(records: Sequence[Record], concurrency: int) -> list[ClassFigures]:
    """Figures of each length of text among the good records, the shortest texts first."""
    found = []
    for length in LENGTHS:
        good = [record for record in records if record.is_ok and record.length == length]
        if good:
            latencies = [record.latency_s for record in good]
            first_audios = [record.first_audio_s for record in good]
            factors = [record.real_time_factor for record in good]
            found.append(
                ClassFigures(
                    concurrency=concurrency,
                    length=length,
                    requests=len(good),
                    latency_p50_s=float(np.percentile(latencies, 50)),
                    latency_p99_s=float(np.percentile(latencies, 99)),
                    first_audio_p50_s=float(np.percentile(first_audios, 50)),
                    first_audio_p95_s=float(np.percentile(first_audios, 95)),
                    real_time_factor_p50=float(np.percentile(factors, 50)),
                )
            )
    return found


def timeline(records: Sequence[Record], bin_s: float) -> list[tuple[float, Figures]]:
    """The same figures for each stretch of `bin_s` seconds in which a request ended well.

    Returns:
        Seconds from the first call to the middle of the stretch, and its figures, whose concurrency
        is how many requests ran in that middle.
    """
    if not records:
        return []
    begin_s = min(record.started_s for record in records)
    end_s = max(record.ended_s for record in records)
    stretches = []
    for number in range(int((end_s - begin_s) / bin_s) + 1):
        middle_s = (number + 0.5) * bin_s
        running = sum(one.started_s <= begin_s + middle_s < one.ended_s for one in records)
        with contextlib.suppress(ValueError):  # nothing ended in it
            stretches.append((middle_s, figures(records, running, number * bin_s, bin_s)))
    return stretches
