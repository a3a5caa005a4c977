"""The published package's noise on CPU, for parity tests: one mt19937 matrix, the same every step.

Source: specification of torch.multinomial with one sample; element n of the (rows, vocabulary)
matrix takes two 32-bit outputs, high word first.
"""

from __future__ import annotations

import numpy as np
from chattts_engine.noise import Noise
from numpy.typing import NDArray


def noise_matrix(seed: int, rows: int, vocabulary: int) -> NDArray[np.float32]:
    """Return the (rows, vocabulary) exponential variates of one seed."""
    bits = np.random.MT19937()
    bits._legacy_seeding(seed)
    words = bits.random_raw(2 * rows * vocabulary).astype(np.uint64).reshape(-1, 2)
    mantissa = ((words[:, 0] << np.uint64(32)) | words[:, 1]) & np.uint64(2**53 - 1)
    uniform = mantissa.astype(np.float64) * 2.0**-53
    return (-np.log1p(-uniform)).astype(np.float32).reshape(rows, vocabulary)


def upstream_noise(seed: int, batch: int, codebooks: int, vocabulary: int) -> Noise:
    """Return a noise function that reads the matrix; a request's own seed is its batch row."""
    matrix = noise_matrix(seed, batch * codebooks, vocabulary)

    def noise(
        seeds: NDArray[np.uint64],
        steps: NDArray[np.int64],
        codebook: NDArray[np.int64],
        tokens: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        del steps
        rows = seeds.astype(np.int64) * codebooks + codebook
        return matrix[rows, tokens].astype(np.float64)

    return noise
