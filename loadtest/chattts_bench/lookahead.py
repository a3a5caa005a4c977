"""What latency=low does to samples: one segment spoken with it against the same one exact."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from chattts_pipeline.streaming import AudioStream, FloatArray

SLOPE_REACH_S = 0.01
"""How far from a seam the exact waveform's own slope is looked for."""
LEAST_SLOPE = 1e-4
"""Slope per sample below which a step is not heard: three steps of 16 bit."""
WINDOW_S = 0.02
AUDIBLE_DB = -40.0
"""Windows that are this far below the loudest one are left out: pauses."""


@dataclass(frozen=True, slots=True, eq=False)
class SpokenSegment:
    """What came out of one segment."""

    pieces: tuple[FloatArray, ...]
    """Samples of each piece, none of them empty."""
    calls: tuple[int, ...]
    """Calls of the vocoder for each piece, those that brought nothing before it included."""
    first_steps: int
    """Steps that were known when the first piece came."""

    @property
    def samples(self) -> FloatArray:
        """All pieces, joined."""
        return np.concatenate(self.pieces)

    @property
    def seams(self) -> list[int]:
        """Position of the first sample of each piece but the first one."""
        lengths = [len(piece) for piece in self.pieces]
        return list(accumulate(lengths))[:-1]


@dataclass(frozen=True, slots=True)
class Difference:
    """How far one waveform is from another."""

    error: float
    """Power of the difference over power of the exact samples."""
    worst_window: float
    """The largest such ratio over 20 ms, pauses left out."""
    largest: float
    """Largest absolute difference of two samples."""
    seam_slope: float
    """Largest step at a seam over the largest slope of the exact samples around it."""


def speak_segment(
    stream: AudioStream, session: Any, hidden: FloatArray, arrivals: Iterable[int]
) -> SpokenSegment:
    """Speak one segment whose steps arrive bit by bit.

    Args:
        stream: a fresh one.
        session: onnxruntime's, of the vocoder's graph.
        hidden: (T, H) hidden states.
        arrivals: steps that arrive at a time; what is left arrives at the end.
    """
    pieces, calls, first_steps, position = [], [], 0, 0
    num_calls = 0
    for portion in [*arrivals, len(hidden)]:
        stream.append(hidden[position : position + portion])
        position = min(position + portion, len(hidden))
        while chunk := stream.next_chunk(has_ended=position == len(hidden)):
            inputs = {"hidden": chunk.hidden, "mask": chunk.mask, "state": chunk.state}
            feeds = {name: array[np.newaxis] for name, array in inputs.items()}
            audio, state = session.run(["audio", "next_state"], feeds)
            num_calls += 1
            samples = stream.accept(audio[0], state[0])
            if len(samples):
                pieces.append(samples)
                calls.append(num_calls)
                num_calls = 0
                first_steps = first_steps or stream.num_steps
        if position == len(hidden):
            break
    return SpokenSegment(tuple(pieces), tuple(calls), first_steps)


def compare(spoken: SpokenSegment, exact: FloatArray, sample_rate: int, fade: int) -> Difference:
    """Compare what was spoken with the exact samples (S,).

    Args:
        spoken: as many samples.
        exact: (S,).
        sample_rate: Hz.
        fade: samples after a seam that belong to it.
    """
    difference = spoken.samples - exact
    size = round(WINDOW_S * sample_rate)
    noise, power = (_window_powers(samples, size) for samples in (difference, exact))
    audible = power > 10 ** (AUDIBLE_DB / 10) * power.max()
    reach = round(SLOPE_REACH_S * sample_rate)
    slopes = [_seam_slope(spoken.samples, exact, seam, reach, fade) for seam in spoken.seams]
    return Difference(
        error=float(np.sum(difference**2) / np.sum(exact**2)),
        worst_window=float((noise[audible] / power[audible]).max()),
        largest=float(np.abs(difference).max()),
        seam_slope=max(slopes, default=0.0),
    )


def decibels(ratio: float) -> float:
    """Return a ratio of powers in dB, -200 at the least."""
    return 10 * math.log10(max(ratio, 1e-20))


def _window_powers(samples: FloatArray, size: int) -> FloatArray:
    """Return the mean power of each whole window of `size` samples, one at least."""
    num_windows = max(1, len(samples) // size)
    windows = samples[: num_windows * size].reshape(num_windows, -1)
    powers: FloatArray = np.mean(windows**2, axis=1)
    return powers


def _seam_slope(samples: FloatArray, exact: FloatArray, seam: int, reach: int, fade: int) -> float:
    """Return the largest step at a seam over the largest slope of the exact samples near it."""
    at_seam = np.abs(np.diff(samples[seam - 1 : seam + fade + 1])).max()
    around = exact[max(0, seam - reach) : seam + fade + reach]
    return float(at_seam / max(np.abs(np.diff(around)).max(), LEAST_SLOPE))
