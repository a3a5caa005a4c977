"""Sampling noise from a counter: the same (seed, step, codebook, token) gives the same number.

No generator state, so batch row, neighbours, pre-emption and restarts cannot change a draw.
Source: splitmix64 (Steele, Lea, Flood 2014) as the mixing function.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Noise = Callable[
    [NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    NDArray[np.float64],
]
"""(seeds, steps, codebooks, tokens), each (M,) -> (M,) exponential variates with mean 1."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_MASK = (1 << 64) - 1


def splitmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix (M,) 64-bit words; arithmetic is modulo 2**64."""
    x = values + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


def counter_noise(
    seeds: NDArray[np.uint64],
    steps: NDArray[np.int64],
    codebooks: NDArray[np.int64],
    tokens: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return (M,) exponential variates, one per (seed, step, codebook, token)."""
    place = (steps << 32) | (codebooks << 24) | tokens
    word = splitmix64(splitmix64(seeds) ^ place.astype(np.uint64))
    uniform = ((word >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    exponential: NDArray[np.float64] = -np.log(uniform)
    return exponential


def derive_seed(seed: int, attempt: int) -> int:
    """Return the seed of retry `attempt` (1, 2, ...) of a request with this seed."""
    word = np.array([(seed + attempt * int(_GOLDEN)) & _MASK], dtype=np.uint64)
    return int(splitmix64(word)[0])
