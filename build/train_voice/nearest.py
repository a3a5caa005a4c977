"""Which teacher's recording sounds most like a speech: dynamic time warping of log-mels.

For languages without a recogniser. Letters in shapes: F frames, M mel bins, C candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

EVERY = 2
"""Frames of which one is looked at."""


def nearest(mel: Array, candidates: Sequence[Array]) -> int:
    """Return the index of the candidate (F, M) that is nearest to `mel` (F, M)."""
    return int(np.argmin(distances(mel, candidates)))


def distances(mel: Array, candidates: Sequence[Array]) -> npt.NDArray[np.float64]:
    """Return the mean distance (C,) along the best path to each candidate."""
    mel = mel[::EVERY]
    others = [candidate[::EVERY] for candidate in candidates]
    lengths = np.array([len(other) for other in others])
    padded = np.zeros((len(others), lengths.max(), mel.shape[1]), np.float32)
    for index, other in enumerate(others):
        padded[index, : len(other)] = other
    # column j of all candidates at once; what is behind a candidate's end is never read
    before = np.full((len(others), padded.shape[1] + 1), np.inf)
    before[:, 0] = 0
    for frame in mel:
        costs = np.abs(padded - frame).mean(axis=2)
        now = np.full_like(before, np.inf)
        for place in range(1, before.shape[1]):
            best = np.minimum(np.minimum(before[:, place], before[:, place - 1]), now[:, place - 1])
            now[:, place] = best + costs[:, place - 1]
        before = now
    ends = before[np.arange(len(others)), lengths]
    return np.asarray(ends / (len(mel) + lengths))
