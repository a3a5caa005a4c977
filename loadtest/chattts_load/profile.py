"""What one server can do, measured: how long a request takes among how many others.

With n requests at once, a request for s seconds of audio takes about fixed(n) + s · slope(n)
seconds; both are fitted to the records of a step with n users who never pause. Between measured
numbers of requests they are interpolated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .records import Record

FEWEST_RECORDS = 8
"""A line through fewer says nothing."""


class ProfileError(ValueError):
    """A profile that says nothing about the question; the message says why."""


@dataclass(frozen=True, slots=True)
class Point:
    """One measured number of requests at once."""

    concurrency: int
    fixed_s: float
    """Seconds of any request, however short."""
    s_per_audio_s: float
    """Seconds per second of audio."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One server: a GPU, or the cores of one machine."""

    what: Mapping[str, Any]
    """Machine, checkpoint, precision and date, for people."""
    max_num_seqs: int
    """Requests that the token model works on at once; others wait their turn."""
    max_streams: int
    """Requests that the server takes at once; one more is refused."""
    points: tuple[Point, ...]
    """By concurrency, at least one."""
    lengths: Mapping[str, Sequence[tuple[int, float]]]
    """By language: characters of a text, and seconds of audio that it became."""

    def service_s(self, concurrency: int, audio_s: float) -> float:
        """Seconds that a request takes when so many run at once all the time, itself included.

        Beyond the last measured number the server is taken to be full: twice the requests take
        twice as long.
        """
        fixed_s, s_per_audio_s = _between(self.points, concurrency)
        return fixed_s + audio_s * s_per_audio_s

    def audio_lengths(self, characters: int, language: str) -> list[float]:
        """Seconds of audio that a text of this length may become, equally likely.

        A line through the language's measured texts, times how far each of them was off it.

        Raises:
            ProfileError: the profile has too few texts of this language.
        """
        pairs = self.lengths.get(language, ())
        if len(pairs) < FEWEST_RECORDS:
            raise ProfileError(f"the profile has only {len(pairs)} texts in {language!r}")
        written, spoken = np.array(pairs, dtype=np.float64).T
        fixed, slope = _line(written, spoken)
        ratios = spoken / np.maximum(fixed + slope * written, 1e-3)
        return [float((fixed + slope * characters) * ratio) for ratio in ratios]


def fit(steps: Mapping[int, Sequence[Record]]) -> tuple[Point, ...]:
    """Fit one point to the good records of each number of requests at once.

    Raises:
        ProfileError: a step has too few of them.
    """
    points = []
    for concurrency, records in sorted(steps.items()):
        good = [record for record in records if record.is_ok]
        if len(good) < FEWEST_RECORDS:
            raise ProfileError(f"{concurrency} at once: only {len(good)} requests ended well")
        audio_s = np.array([record.audio_s for record in good])
        latency_s = np.array([record.latency_s for record in good])
        points.append(Point(concurrency, *_line(audio_s, latency_s)))
    return tuple(points)


def lengths_of(records: Sequence[Record]) -> dict[str, list[tuple[int, float]]]:
    """Characters and seconds of audio of the good records, by language."""
    lengths: dict[str, list[tuple[int, float]]] = {}
    for record in records:
        if record.is_ok:
            lengths.setdefault(record.language, []).append(
                (record.characters, round(record.audio_s, 3))
            )
    return lengths


def save(profile: Profile, path: Path) -> None:
    """Write a profile as one line of JSON."""
    path.write_text(json.dumps(asdict(profile)) + "\n", encoding="utf-8")


def load(path: Path) -> Profile:
    """Read a profile.

    Raises:
        ProfileError: the file is none.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        points = tuple(Point(**point) for point in values.pop("points"))
        if not points:
            raise ProfileError(f"{path}: no step was measured")
        return Profile(points=points, **values)
    except (OSError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise ProfileError(f"{path}: no profile: {error}") from error


@cache
def _between(points: tuple[Point, ...], concurrency: int) -> tuple[float, float]:
    """Fixed seconds and seconds per second of audio at some number of requests at once."""
    counts = [point.concurrency for point in points]
    fixed_s = np.interp(concurrency, counts, [point.fixed_s for point in points])
    slope = np.interp(concurrency, counts, [point.s_per_audio_s for point in points])
    over = max(1.0, concurrency / counts[-1])
    return over * float(fixed_s), over * float(slope)


def _line(x: Any, y: Any) -> tuple[float, float]:
    """Intercept and slope of the best line, neither of them negative."""
    slope, fixed = np.polyfit(x, y, 1) if np.ptp(x) > 0 else (0.0, float(np.mean(y)))
    if fixed < 0:
        fixed, slope = 0.0, float(np.sum(x * y) / np.sum(x * x))
    elif slope < 0:
        fixed, slope = float(np.mean(y)), 0.0
    return float(fixed), float(slope)
