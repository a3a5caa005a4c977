"""One loudness for all segments: ITU-R BS.1770-4, measured over a whole segment."""

import numpy as np
from numpy.typing import NDArray

from .audio import FloatArray

TARGET_LUFS = -18.0
"""Loudness of every segment."""

CEILING = 10 ** (-1 / 20)
"""Highest sample, -1 dBFS."""

MAX_GAIN = 10 ** (30 / 20)
"""What is quieter than this can mend is hardly speech."""

_BLOCK_S, _BLOCK_STEP_S = 0.4, 0.1
_ABSOLUTE_GATE_LUFS, _RELATIVE_GATE_LU = -70.0, -10.0
_OFFSET_DB = -0.691

# Numerator and denominator of the two filters of the standard, at 48 kHz: the head, then high-pass.
_FILTER_RATE = 48000
_FILTERS = (
    (
        (1.53512485958697, -2.69169618940638, 1.19839281085285),
        (1.0, -1.69065929318241, 0.73248077421585),
    ),
    ((1.0, -2.0, 1.0), (1.0, -1.99004745483398, 0.99007225036621)),
)

_LIMITER_BLOCK_S = 0.005


class Level:
    """Brings one segment to the target; it comes out when all of it is known.

    Args:
        sample_rate: Hz, up to 48000.
    """

    def __init__(self, sample_rate: int) -> None:
        self._rate = sample_rate
        self._held: list[FloatArray] = []

    def push(self, samples: FloatArray, is_end: bool) -> FloatArray:
        """Take the next samples (S,); return the whole segment at its end, nothing before.

        Args:
            samples: (S,), perhaps none.
            is_end: No more will come.
        """
        self._held.append(samples)
        if not is_end:
            return np.zeros(0, np.float32)
        segment = np.concatenate(self._held)
        self._held.clear()
        measured = loudness(segment, self._rate)
        if measured is None:
            return segment
        gain = min(MAX_GAIN, 10 ** ((TARGET_LUFS - measured) / 20))
        return limited(segment * np.float32(gain), self._rate)


def loudness(samples: FloatArray, sample_rate: int) -> float | None:
    """Return the integrated loudness of (S,) mono samples in LUFS.

    None: nothing is louder than the absolute gate. What is shorter than a block is one block.
    """
    if not len(samples):
        return None
    weighted = _k_weighted(samples, sample_rate)
    block = min(len(samples), round(_BLOCK_S * sample_rate))
    starts = np.arange(0, len(samples) - block + 1, round(_BLOCK_STEP_S * sample_rate))
    sums = np.concatenate([[0.0], np.cumsum(weighted * weighted)])
    powers = (sums[starts + block] - sums[starts]) / block
    powers = powers[powers > _power(_ABSOLUTE_GATE_LUFS)]
    if not len(powers):
        return None
    powers = powers[powers > powers.mean() * 10 ** (_RELATIVE_GATE_LU / 10)]
    return float(_OFFSET_DB + 10 * np.log10(powers.mean()))


def limited(samples: FloatArray, sample_rate: int) -> FloatArray:
    """Turn the gain of (S,) samples down, smoothly, wherever they would exceed the ceiling."""
    size = round(_LIMITER_BLOCK_S * sample_rate)
    num_blocks = -(-len(samples) // size)
    padded = np.zeros(num_blocks * size, np.float32)
    padded[: len(samples)] = samples
    peaks = np.abs(padded.reshape(num_blocks, size)).max(axis=1)
    if not len(peaks) or peaks.max() <= CEILING:
        return samples
    # A line between the lower gains of the neighbours at each edge exceeds no block's own gain.
    gains = np.minimum(1.0, CEILING / np.maximum(peaks, CEILING))
    edges = np.minimum(np.append(gains, 1.0), np.append(1.0, gains))
    curve = np.interp(np.arange(len(samples)), np.arange(num_blocks + 1) * size, edges)
    return np.clip(samples * curve.astype(np.float32), -np.float32(CEILING), np.float32(CEILING))


def _power(lufs: float) -> float:
    return float(10 ** ((lufs - _OFFSET_DB) / 10))


def _k_weighted(samples: FloatArray, sample_rate: int) -> NDArray[np.float64]:
    """Apply the gains of the standard's filters, without their phases: power is all that counts."""
    size = 1 << len(samples).bit_length()
    frequencies = np.fft.rfftfreq(size, 1 / sample_rate)
    delay = np.exp(-2j * np.pi * frequencies / _FILTER_RATE)
    response = np.ones(len(frequencies))
    for numerator, denominator in _FILTERS:
        over, under = (a + b * delay + c * delay**2 for a, b, c in (numerator, denominator))
        response *= np.abs(over / under)
    spectrum = np.fft.rfft(samples.astype(np.float64), size) * response
    weighted: NDArray[np.float64] = np.fft.irfft(spectrum, size)[: len(samples)]
    return weighted
