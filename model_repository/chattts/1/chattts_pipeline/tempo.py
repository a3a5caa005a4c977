"""Speech faster or slower at the same pitch: WSOLA (Verhelst and Roelands, 1993), in a stream.

Output is made in blocks. Each one fades from what followed the last one in the input to a passage
near the place in the input that is due now: of all passages within reach the one that looks most
like what it replaces. So periods line up, and a skip or a repetition is a whole number of them.
"""

import numpy as np

from .audio import FloatArray

BLOCK_S = 0.0125
"""Seconds of a block, and how far from its due place a passage may be. Both sides together hold
two periods of the lowest voice (80 Hz)."""

_SILENCE = 1e-6
"""Energy (sum of squares) below which passages no longer differ in how well they fit."""


class Tempo:
    """Plays one segment at another speed; N samples become N / speed, rounded.

    What comes out does not depend on how the samples are cut into pieces. It lags by up to four
    blocks. At speed 1 nothing changes.

    Args:
        speed: 0.5 ... 2.
        sample_rate: Hz.
    """

    def __init__(self, speed: float, sample_rate: int) -> None:
        self._speed = speed
        self._block = round(BLOCK_S * sample_rate)
        self._reach = self._block
        self._compared = 2 * self._block
        self._fade_in = np.arange(self._block, dtype=np.float32) / np.float32(self._block)
        self._input: FloatArray = np.zeros(0, np.float32)
        self._start = 0
        """Position of the first sample that is still held."""
        self._num_in = 0
        self._num_out = 0
        self._next = 0
        """Position that follows the last passage."""

    def push(self, samples: FloatArray, is_end: bool) -> FloatArray:
        """Take the next samples (S,); return what can be played now.

        Args:
            samples: (S,), perhaps none.
            is_end: No more will come; the rest comes out.
        """
        self._num_in += len(samples)
        parts = [self._input, samples]
        num_out = round(self._num_in / self._speed)
        if is_end:
            parts.append(np.zeros(self._wanted_end(num_out) - self._num_in, np.float32))
        self._input = np.concatenate(parts)
        blocks = [np.zeros(0, np.float32)]
        available = self._start + len(self._input)
        while self._num_out < num_out and self._wanted_end(self._num_out) <= available:
            blocks.append(self._next_block())
        played = np.concatenate(blocks)
        return played[: len(played) + min(0, num_out - self._num_out)] if is_end else played

    def _due(self, num_out: int) -> int:
        """Return the place in the input that is due after `num_out` samples."""
        return round(num_out * self._speed)

    def _wanted_end(self, num_out: int) -> int:
        """Return up to where the input must be known for the block after `num_out` samples."""
        return self._due(num_out) + 2 * self._reach + self._compared

    def _next_block(self) -> FloatArray:
        position = self._best_position()
        before = self._passage(self._next, self._block)
        after = self._passage(position, self._block)
        self._next = position + self._block
        self._num_out += self._block
        unused = min(self._next, self._due(self._num_out) - self._reach) - self._start
        if unused > 0:
            self._input = self._input[unused:]
            self._start += unused
        mixed: FloatArray = before + self._fade_in * (after - before)
        return mixed

    def _best_position(self) -> int:
        """Return where, near the due place, the input looks most like the natural continuation."""
        due = self._due(self._num_out)
        first = max(0, due - self._reach)
        wanted = self._passage(self._next, self._compared).astype(np.float64)
        region = self._passage(first, due + self._reach + self._compared - first)
        region = region.astype(np.float64)
        size = 2 * self._reach + self._compared
        spectrum = np.fft.rfft(region, size) * np.conj(np.fft.rfft(wanted, size))
        likeness = np.fft.irfft(spectrum, size)[: len(region) - self._compared]
        energy = np.concatenate([[0.0], np.cumsum(region * region)])
        energy = energy[self._compared : -1] - energy[: -1 - self._compared]
        likeness /= np.sqrt(np.maximum(energy, 0.0) + _SILENCE)
        best = int(np.argmax(likeness))
        return first + best if likeness[best] > 0 else due

    def _passage(self, position: int, length: int) -> FloatArray:
        first = position - self._start
        return self._input[first : first + length]
