"""How much audio the next piece of a low-latency request should hold.

Small pieces reach the listener sooner, but each costs several calls of the vocoder whatever its
size. So pieces begin small and grow while the listener is ahead of playback; where calls take long,
they are never smaller than what the calls for them can keep up with.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from .streaming import VocoderSizes

WAIT_SHARE = 0.75
"""Share of the time until the listener runs dry, less the calls for the next piece, that its steps
may take. They come no slower than they are spoken, or nothing helps; the rest is for jitter."""

CALL_SHARE = 0.75
"""Share of a piece's own duration that the calls for it may take; the rest is for their jitter."""

SMOOTHING = 0.25
"""Weight of the newest call in the mean duration of a call."""


@dataclass(frozen=True, slots=True)
class LowLatency:
    """The operator's settings for latency=low."""

    lookahead_steps: int
    """L, at least 1: steps that must be known beyond those that are spoken."""
    first_steps: int
    """Steps of audio in the first piece, at least 1; also how many come from the token model at a
    time."""


class Pace:
    """The pace of one request.

    Args:
        low_latency: The operator's settings.
        sizes: Sizes of the vocoder's tensors.
        sample_rate: Hz.
        clock: Monotonic seconds.
        speed: How much faster than it was made the audio is played.
    """

    def __init__(
        self,
        low_latency: LowLatency,
        sizes: VocoderSizes,
        sample_rate: int,
        clock: Callable[[], float] = time.monotonic,
        speed: float = 1.0,
    ) -> None:
        # From at most C - 1 steps before the last known one to R steps after what is spoken.
        reach = sizes.context_steps - low_latency.lookahead_steps + sizes.chunk_steps
        self._calls_per_piece = max(1, -(-reach // sizes.chunk_steps))
        self._first_steps = low_latency.first_steps
        self._step_s = sizes.samples_per_step / sample_rate / speed
        self._sample_rate = sample_rate
        self._clock = clock
        self._call_s: float | None = None
        self._played_at: float | None = None

    def wanted_steps(self) -> int:
        """Return how many steps of audio should be ready before the next piece is made."""
        if self._played_at is None:
            return self._first_steps
        calls_s = (self._call_s or 0.0) * self._calls_per_piece
        can_wait_s = WAIT_SHARE * (self._played_at - self._clock() - calls_s)
        piece_s = max(can_wait_s, calls_s / CALL_SHARE)
        return max(self._first_steps, math.ceil(piece_s / self._step_s))

    def add_call(self, elapsed_s: float) -> None:
        """Tell how long a call of the vocoder took, its wait included."""
        mean_s = elapsed_s if self._call_s is None else self._call_s
        self._call_s = mean_s + SMOOTHING * (elapsed_s - mean_s)

    def add_sent(self, num_samples: int) -> None:
        """Tell that samples went out; playback begins with the first and waits when it must."""
        now = self._clock()
        starts_at = now if self._played_at is None else max(now, self._played_at)
        self._played_at = starts_at + num_samples / self._sample_rate
