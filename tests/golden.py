"""Golden values: what the published package computes from given weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "data" / "golden"
TINY = FOLDER / "tiny"
TINY_ARRAYS: Any = np.load(TINY / "golden.npz")
TINY_CASES: dict[str, Any] = json.loads((TINY / "golden.json").read_text(encoding="utf-8"))
NUM_TEXTS = 4
GREEDY_TEMPERATURE = 1e-4
"""With it the likeliest token wins, unless another logit lies within 0.001 of its own."""
VECTOR_ARRAYS: Any = np.load(FOLDER / "vectors" / "chattts_golden.npz")
VECTOR_CASES: dict[str, Any] = json.loads(
    (FOLDER / "vectors" / "chattts_golden.json").read_text(encoding="utf-8")
)
RELATIVE_TOLERANCE = 1e-4
"""Of the largest value: float32 sums in another order, over the depth of the network."""


def assert_close(actual: Any, golden: Any) -> None:
    """Compare two arrays within RELATIVE_TOLERANCE of the golden array's largest value."""
    assert actual.shape == golden.shape
    assert np.abs(actual - golden).max() <= RELATIVE_TOLERANCE * np.abs(golden).max()
