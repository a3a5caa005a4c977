"""Faults of an utterance that can be found without a reference, from its samples, codes and length.

Cheap: one pass over the samples of a segment as they come, and one over its codes at its end. The
thresholds are far from what good speech does (docs/metrics.md has the figures), so that a fault
that is reported is one; a bad utterance need not be found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .audio import FloatArray

Reason = Literal["silent", "clipped", "too_short", "too_long", "loop", "not_finite"]
REASONS: tuple[Reason, ...] = ("silent", "clipped", "too_short", "too_long", "loop", "not_finite")
"""What can be found, in the order of reports."""

Codes = NDArray[np.int32]

LOUD = 10 ** (-40 / 20)
"""A sample beyond -40 dBFS is loud."""
MIN_LOUD_S = 0.05
"""Speech has more loud samples than this, in seconds; a click or hum has fewer."""

FULL_SCALE = 0.999
MAX_CLIPPED_SHARE = 0.001
"""Of the samples at full scale: a few peaks are not heard, a hundredth crackles."""

SHORTEST_RATIO = 0.5
SHORTEST_MARGIN_S = 0.1
LONGEST_RATIO = 2.5
LONGEST_MARGIN_S = 2.0
"""Speech takes between SHORTEST_RATIO * estimate - SHORTEST_MARGIN_S and LONGEST_RATIO * estimate +
LONGEST_MARGIN_S seconds. People read twice as fast as others; control tokens that ask for pauses
and laughter, which the estimate does not know, take the margin."""

MIN_LOOP_S = 1.0
"""All codebooks repeat for so long: no sound of speech is that steady at the level of codes."""
MAX_PERIOD = 48
"""Longest stretch, in steps, whose repetition is looked for: about a second, a few words."""
MIN_REPEATS = 2
"""Times that a stretch follows itself."""

_CODE_BITS = 10


class SegmentQuality:
    """Looks at one segment.

    Args:
        sample_rate: Hz.
        samples_per_step: Samples that one step of codes stands for.
        estimated_s: How long its text should take; 0: unknown.
    """

    def __init__(self, sample_rate: int, samples_per_step: int, estimated_s: float) -> None:
        self._sample_rate = sample_rate
        self._steps_per_s = sample_rate / samples_per_step
        self._estimated_s = estimated_s
        self._num_samples = 0
        self._num_loud = 0
        self._num_clipped = 0
        self._is_finite = True

    def push(self, samples: FloatArray) -> None:
        """Look at the next samples (S,), as the vocoder made them."""
        sizes = np.abs(samples)
        self._num_samples += len(samples)
        self._num_loud += int(np.count_nonzero(sizes > LOUD))
        self._num_clipped += int(np.count_nonzero(sizes >= FULL_SCALE))
        self._is_finite = self._is_finite and bool(np.isfinite(samples).all())

    def reasons(self, codes: Codes, finish_reason: str, min_new_tokens: int) -> tuple[Reason, ...]:
        """Return what is wrong with the segment, which has ended.

        Args:
            codes: (T, C), each 0 ... 1023; no end token.
            finish_reason: eos, length or deadline. What was cut off is not too short.
            min_new_tokens: Steps that the caller asked for; as many are not too long.
        """
        seconds = len(codes) / self._steps_per_s
        estimated_s = self._estimated_s
        shortest_s = SHORTEST_RATIO * estimated_s - SHORTEST_MARGIN_S
        longest_s = LONGEST_RATIO * estimated_s + LONGEST_MARGIN_S
        found: dict[Reason, bool] = {
            "silent": self._is_silent,
            "clipped": self._num_clipped > MAX_CLIPPED_SHARE * self._num_samples,
            "too_short": finish_reason == "eos" and seconds < shortest_s,
            "too_long": estimated_s > 0 and seconds > longest_s and len(codes) > min_new_tokens,
            "loop": has_loop(codes, round(MIN_LOOP_S * self._steps_per_s)),
            "not_finite": not self._is_finite,
        }
        return tuple(reason for reason in REASONS if found[reason])

    @property
    def _is_silent(self) -> bool:
        """Whether what was made, if anything, holds no speech."""
        least = min(MIN_LOUD_S * self._sample_rate, self._num_samples / 2)
        return self._num_loud < least


def joined(reasons: Sequence[Sequence[Reason]]) -> tuple[Reason, ...]:
    """Return each reason that any segment has, in the order of REASONS."""
    found = {reason for segment in reasons for reason in segment}
    return tuple(reason for reason in REASONS if reason in found)


def has_loop(codes: Codes, min_steps: int) -> bool:
    """Say whether a stretch of codes follows itself again and again.

    Args:
        codes: (T, C), each 0 ... 1023.
        min_steps: Steps that must equal those one period before, at least; for long periods
            MIN_REPEATS of them.
    """
    if len(codes) <= min_steps:
        return False
    keys = codes.astype(np.int64) @ (1 << _CODE_BITS * np.arange(codes.shape[1], dtype=np.int64))
    if len(keys) - len(np.unique(keys)) < min_steps:
        return False  # whatever repeats so often leaves as many duplicates
    for period in range(1, min(MAX_PERIOD, len(keys) // (MIN_REPEATS + 1)) + 1):
        breaks = np.flatnonzero(keys[period:] != keys[:-period])
        edges = np.concatenate([[-1], breaks, [len(keys) - period]])
        if np.diff(edges).max() - 1 >= max(min_steps, MIN_REPEATS * period):
            return True
    return False
