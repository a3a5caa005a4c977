"""Which steps to vocode when, so that streamed samples equal the one-shot samples.

The vocoder pads with zeros at both ends of its input, at every layer, so samples near an end of a
window are only right if that end is an end of the segment. With P samples per step and R context
steps (the vocoder's reach to each side, rounded up to whole steps):

- T steps make P * T - P / 2 samples.
- Step t touches samples P * (t - R) + 1 ... P * (t + R) + P / 2 - 1 at most.
- So with K steps known and more to come, the first P * (K - R) + 1 samples are final.
- And a window from step s > 0 is right from sample P * (s + R) - P / 2 on.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]

FIRST_CHUNK_STEPS = 24
"""Steps whose samples the first chunk of a segment holds (about half a second)."""

CHUNK_STEPS = 24
"""Steps in each later chunk; a chunk is a multiple of it when the vocoder lags behind."""

MAX_CHUNK_STEPS = 96
"""Most steps in one chunk but the last; bounds a window to this plus twice the context."""


@dataclass(frozen=True, slots=True)
class Window:
    """Steps to vocode, and which of the window's samples to send."""

    start: int
    """First step."""
    end: int
    """One past the last step."""
    skip_samples: int
    """Samples of the window's audio before the first one to send."""
    num_samples: int
    """Samples to send."""
    is_last: bool
    """Whether the segment's audio ends with this window."""


@dataclass(frozen=True, slots=True)
class WindowPlanner:
    """Decides the windows of one segment; keeps no state."""

    context_steps: int
    """R, at least 1."""
    samples_per_step: int
    """P, even."""
    first_chunk_steps: int = FIRST_CHUNK_STEPS
    """At least 1."""
    chunk_steps: int = CHUNK_STEPS
    """At least 1."""
    max_chunk_steps: int = MAX_CHUNK_STEPS
    """At least chunk_steps."""

    @property
    def first_window_steps(self) -> int:
        """Steps that must be known before the first window, if the segment goes on."""
        return self.context_steps + self.first_chunk_steps

    def total_samples(self, num_steps: int) -> int:
        """Return the samples of a segment of `num_steps` steps."""
        return max(0, self.samples_per_step * num_steps - self._hop)

    def final_samples(self, steps_known: int) -> int:
        """Return how many samples more steps cannot change."""
        return max(0, self.samples_per_step * (steps_known - self.context_steps) + 1)

    def next_window(self, steps_known: int, samples_sent: int, has_ended: bool) -> Window | None:
        """Return the next window to vocode, or None while more steps are needed.

        Args:
            steps_known: Steps generated so far.
            samples_sent: Samples of the windows before, as returned by this planner.
            has_ended: No more steps will come.
        """
        end = self._next_end(steps_known, samples_sent)
        if has_ended and (end is None or steps_known - end < self.chunk_steps):
            return self._window(samples_sent, steps_known, self.total_samples(steps_known), True)
        if end is None:
            return None
        return self._window(samples_sent, end, self.final_samples(end), False)

    def whole_window(self, num_steps: int) -> Window:
        """Return the one window of a segment that is not streamed."""
        return self._window(0, num_steps, self.total_samples(num_steps), True)

    @property
    def _hop(self) -> int:
        return self.samples_per_step // 2

    def _next_end(self, steps_known: int, samples_sent: int) -> int | None:
        if samples_sent:
            before = (samples_sent - 1) // self.samples_per_step + self.context_steps
            smallest = before + self.chunk_steps
        else:
            smallest = self.first_window_steps
        if steps_known < smallest:
            return None
        most = max(0, self.max_chunk_steps - self.chunk_steps)
        spare = min(steps_known - smallest, most)
        return smallest + spare // self.chunk_steps * self.chunk_steps

    def _window(self, samples_sent: int, end: int, until: int, is_last: bool) -> Window:
        reach = (samples_sent + self._hop) // self.samples_per_step - self.context_steps
        start = max(0, reach)
        skip = samples_sent - self.samples_per_step * start
        return Window(start, end, skip, until - samples_sent, is_last)


class StepBuffer:
    """Hidden states of one segment; those that no later window needs are dropped."""

    def __init__(self) -> None:
        self._chunks: list[FloatArray] = []
        self._first = 0
        self.num_steps = 0

    def append(self, hidden: FloatArray) -> None:
        """Add the hidden states of the next steps.

        Args:
            hidden: (T, H) float32, kept.
        """
        if len(hidden):
            self._chunks.append(hidden)
            self.num_steps += len(hidden)

    def take(self, window: Window) -> FloatArray:
        """Return the hidden states of a window and drop those before it.

        Args:
            window: Its start must not be before the start of an earlier call.

        Returns:
            (end - start, H) float32.
        """
        while self._first + len(self._chunks[0]) <= window.start:
            self._first += len(self._chunks.pop(0))
        steps = np.concatenate(self._chunks)
        return steps[window.start - self._first : window.end - self._first]
