"""Where the speech of a segment ends, and the end of what comes after it.

Models often breathe, hiss or rustle between the last word and the end token. The end of speech is
the last voiced sound, plus the voiceless sounds that may follow it, consonants (bright noise) and
a voice that creaks (loud, but without a steady period), if they begin at once and are over soon.
What goes on is noise.
"""

from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from .audio import FloatArray

KEPT_S = 0.25
"""Seconds after the last voiced sound that are always kept."""

FADE_S = 0.02
"""Seconds of the fade before the cut."""

_HOP_S = 0.01
_FRAME_S = 0.05
"""A frame holds three periods of the lowest voice."""
_PITCH_HZ = (60.0, 400.0)
_MIN_PERIODICITY = 0.6
"""Autocorrelation at the best period, as a share of that at 0. Of 120 noises of 2.5 s none had more
than 0.5 in three frames in a row; nearly all frames of voices have more than 0.8."""
_MIN_VOICED_FRAMES = 3
_MIN_RMS = 10 ** (-60 / 20)
_VOICED_BELOW_LOUDEST = 10 ** (-35 / 20)
_CONSONANT_BELOW_LOUDEST = 10 ** (-40 / 20)
_CREAK_BELOW_LOUDEST = 10 ** (-20 / 20)
_MIN_BRIGHTNESS = 0.4
"""Energy of the difference of neighbouring samples, as a share of the energy at 24 kHz: 2 is white
noise, a hiss has more than 0.5, breath and hum have less."""
_LONGEST_GAP_S = 0.12
"""The closure of a stop between two sounds."""
_LONGEST_VOICELESS_S = 0.5


class TailTrim:
    """Cuts what follows the end of speech; holds back no more than what may have to be cut.

    Nothing is cut before or between voiced sounds, after a segment without any, or where the
    segment did not end by an end token. Output does not depend on how the samples are cut into
    pieces.

    Args:
        sample_rate: Hz, at least 16000.
    """

    def __init__(self, sample_rate: int) -> None:
        self.num_trimmed = 0
        """Samples cut."""
        self._rate = sample_rate
        self._hop = round(_HOP_S * sample_rate)
        self._frame = round(_FRAME_S * sample_rate)
        self._kept = round(KEPT_S * sample_rate)
        self._fade = round(FADE_S * sample_rate)
        self._periods = [round(sample_rate / frequency) for frequency in reversed(_PITCH_HZ)]
        self._fft_size = 2 * self._frame
        self._window = np.hanning(self._frame + 1)[:-1]
        self._window_correlation = self._autocorrelation(self._window)
        self._brightness_scale = (sample_rate / 24000) ** 2
        self._samples: FloatArray = np.zeros(0, np.float32)
        self._start = 0
        """Position of the first sample that is still held or looked at."""
        self._num_out = 0
        self._num_frames = 0
        self._loudest = 0.0
        self._num_periodic = 0
        """Periodic frames in a row."""
        self._voiced_end = 0
        """Position after the last voiced sound; 0: none yet."""
        self._is_voiceless: list[bool] = []
        """Of each frame after the last voiced one: whether it may be speech."""

    def push(self, samples: FloatArray, finish_reason: str) -> FloatArray:
        """Take the next samples (S,); return those that are sure to be kept.

        Args:
            samples: (S,), perhaps none.
            finish_reason: Empty: more will come. "eos": the rest comes out but for what is cut.
                Any other: the rest comes out.
        """
        self._samples = np.concatenate([self._samples, samples])
        num_in = self._start + len(self._samples)
        while self._num_frames * self._hop + self._frame <= num_in:
            self._look_at(self._num_frames * self._hop)
            self._num_frames += 1
        end = num_in
        if self._voiced_end and finish_reason == "eos":
            end = self._speech_end() + 2 * self._fade
            end = min(num_in, max(end, self._voiced_end + self._kept))
            if end < num_in:
                self._fade_out(end)
            self.num_trimmed = num_in - end
        elif self._voiced_end and not finish_reason:
            end = min(num_in, max(self._num_out, self._voiced_end + self._kept - self._fade))
        return self._release(end)

    def _release(self, end: int) -> FloatArray:
        released = self._samples[self._num_out - self._start : end - self._start]
        self._num_out = end
        unused = min(end, self._num_frames * self._hop) - self._start
        self._samples = self._samples[unused:]
        self._start += unused
        return released

    def _fade_out(self, end: int) -> None:
        """Fade the held samples out up to a position."""
        last = end - self._start
        phase = np.pi * (np.arange(self._fade) + 0.5) / self._fade
        self._samples[last - self._fade : last] *= (0.5 + 0.5 * np.cos(phase)).astype(np.float32)

    def _look_at(self, position: int) -> None:
        """Take a frame into account."""
        first = position - self._start
        frame = self._samples[first : first + self._frame].astype(np.float64)
        frame -= frame.mean()
        rms = float(np.sqrt(np.mean(frame * frame)))
        is_audible = rms > max(_MIN_RMS, _VOICED_BELOW_LOUDEST * self._loudest)
        is_periodic = is_audible and self._periodicity(frame) > _MIN_PERIODICITY
        self._num_periodic = self._num_periodic + 1 if is_periodic else 0
        if self._num_periodic >= _MIN_VOICED_FRAMES:
            self._loudest = max(self._loudest, rms)
            self._voiced_end = position + (self._frame + self._hop) // 2
            self._is_voiceless.clear()
            return
        is_heard = rms > max(_MIN_RMS, _CONSONANT_BELOW_LOUDEST * self._loudest)
        is_consonant = is_heard and self._brightness(frame) > _MIN_BRIGHTNESS
        self._is_voiceless.append(is_consonant or rms > _CREAK_BELOW_LOUDEST * self._loudest)

    def _speech_end(self) -> int:
        """Return the position after the voiceless sounds that follow the last voiced one."""
        end = position = 0
        for is_voiceless, frames in groupby(self._is_voiceless):
            first, position = position, position + len(list(frames))
            if not is_voiceless:
                continue
            if (first - end) * _HOP_S > _LONGEST_GAP_S or position * _HOP_S > _LONGEST_VOICELESS_S:
                break
            end = position
        return self._voiced_end + end * self._hop

    def _periodicity(self, frame: NDArray[np.float64]) -> float:
        """Return how much alike the periods of a frame are: 1 for a periodic one, 0 for noise."""
        correlation = self._autocorrelation(frame * self._window) / self._window_correlation
        shortest, longest = self._periods
        in_range = correlation[shortest : longest + 1] / max(correlation[0], 1e-12)
        best = int(np.argmax(in_range))
        # The slope of something slower than any voice is no period.
        return float(in_range[best]) if best > 0 else 0.0

    def _autocorrelation(self, frame: NDArray[np.float64]) -> NDArray[np.float64]:
        spectrum = np.fft.rfft(frame, self._fft_size)
        power = spectrum.real * spectrum.real + spectrum.imag * spectrum.imag
        correlation: NDArray[np.float64] = np.fft.irfft(power, self._fft_size)
        return correlation[: self._periods[1] + 1]

    def _brightness(self, frame: NDArray[np.float64]) -> float:
        difference = np.diff(frame)
        energy = max(float(np.sum(frame * frame)), 1e-12)
        return self._brightness_scale * float(np.sum(difference * difference)) / energy
