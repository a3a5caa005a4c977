"""From the vocoder to the caller: what the options trim, level and speed do to a segment's samples.

Each filter is given the samples in pieces and gives out the same samples however they were cut, so
a stream and one response stay equal bit for bit.
"""

import numpy as np

from .audio import FloatArray
from .level import Level
from .options import Options
from .tail import TailTrim
from .tempo import Tempo


class SegmentShape:
    """The filters of one segment, in order: end cut, loudness, speed, and the silence after it.

    The silence is as long as it was asked for, whatever the speed.

    Args:
        options: Of the request. Without any of the three the samples pass untouched.
        sample_rate: Hz.
        pause_ms: Milliseconds of silence after the segment.
    """

    def __init__(self, options: Options, sample_rate: int, pause_ms: int) -> None:
        self._sample_rate = sample_rate
        self._num_pause_samples = round(pause_ms * sample_rate / 1000)
        self._tail = TailTrim(sample_rate) if options.trim else None
        self._filters: list[Level | Tempo] = []
        if options.level:
            self._filters.append(Level(sample_rate))
        if options.speed != 1.0:
            self._filters.append(Tempo(options.speed, sample_rate))

    @property
    def trimmed_ms(self) -> int:
        """Milliseconds of audio cut at the end, before a change of speed."""
        return round(self._tail.num_trimmed * 1000 / self._sample_rate) if self._tail else 0

    def push(self, samples: FloatArray, finish_reason: str) -> FloatArray:
        """Take the next samples (S,) of the segment; return what can be sent.

        Args:
            samples: (S,), perhaps none.
            finish_reason: Empty while more will come. With it the rest comes out, and the silence,
                which a segment that ran into the deadline does without.
        """
        if self._tail:
            samples = self._tail.push(samples, finish_reason)
        for one in self._filters:
            samples = one.push(samples, bool(finish_reason))
        if self._num_pause_samples and finish_reason not in ("", "deadline"):
            silence = np.zeros(self._num_pause_samples, np.float32)
            samples = np.concatenate([samples, silence])
        return samples
