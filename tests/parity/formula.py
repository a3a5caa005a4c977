"""Weights and inputs from a formula: the published sizes without a file of a gigabyte.

A name gives a stream of numbers (CRC-32, then splitmix64); rules by tensor name scale them. The
golden vectors in tests/data/golden/vectors were made with exactly these.
"""

from __future__ import annotations

import zlib

import numpy as np
from checkpoint import Array
from layout import Shapes
from make_checkpoint import LAYER_SCALE_NAME, hann_window, mel_filters
from numpy.typing import NDArray

Integers = NDArray[np.uint64]


def stream(name: str, count: int) -> Integers:
    """The first `count` 64-bit numbers of a name."""
    base = np.uint64(zlib.crc32(name.encode()) << 32)
    x = base + np.arange(count, dtype=np.uint64)
    x += np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def uniform(name: str, *shape: int) -> Array:
    """Numbers of a name in -1 ... 1, float32."""
    numbers = stream(name, int(np.prod(shape))) >> np.uint64(40)
    values: Array = (numbers * 2.0**-23 - 1).astype(np.float32).reshape(shape)
    return values


def integers(name: str, below: int, *shape: int) -> NDArray[np.int64]:
    """Numbers of a name in 0 ... below - 1."""
    numbers = stream(name, int(np.prod(shape))) % np.uint64(below)
    return numbers.astype(np.int64).reshape(shape)


def tensor(part: str, name: str, shape: tuple[int, ...]) -> Array:
    """One weight; the first rule that matches its name wins."""
    if name.endswith("window"):
        return hann_window()
    if name.endswith("mel_scale.fb"):
        return mel_filters(shape[1])
    values = uniform(f"{part}:{name}", *shape)
    if name == "coef":
        return np.float32(1) + np.float32(0.3) * values
    if name.endswith("original0"):
        return np.float32(3) + values
    if "emb_" in name:
        return values
    if len(shape) >= 2:
        gain = {"head.out.weight": 0.3}.get(name, 4.0 if "project_in" in name else 1.0)
        return np.float32(gain * np.sqrt(3 / np.prod(shape[1:]))) * values
    if "norm" in name and name.endswith("weight"):
        return np.float32(1) + np.float32(0.2) * values
    is_layer_scale = LAYER_SCALE_NAME.search(name)
    return np.float32(0.5 if is_layer_scale else 0.1) * values


def tensors(part: str, shapes: Shapes) -> dict[str, Array]:
    """All weights of one file."""
    return {name: tensor(part, name, shape) for name, shape in shapes.items()}
