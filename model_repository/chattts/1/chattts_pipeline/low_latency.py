"""A segment spoken a few steps behind what is known, instead of the vocoder's whole reach.

A piece is a guess: from where the exact stream is, the vocoder is fed the steps that are known and
then mask 0, as if the segment ended there, and the states that come back are dropped. What comes
out is wrong near that end only, for want of what follows, so samples with L known steps behind them
go out. The exact stream moves on by whole chunks, however many guesses were made from it.

The next piece, a better guess or exact, does not quite continue the last one. So a guess is made
half a step longer than what goes out of it, and that half step is cross-faded into the next piece.
Nothing that went out is taken back, the samples are as many as those of the exact stream, and where
its own samples have come in time, as those of the end always do, they are what goes out.
"""

import numpy as np

from .pacing import LowLatency, Pace
from .streaming import FloatArray, SegmentStream, VocoderChunk, VocoderSizes

_NOTHING: FloatArray = np.zeros(0, np.float32)


class LowLatencyStream:
    """Sends guesses when the pace asks for them. See streaming.AudioStream.

    Args:
        sizes: Sizes of the vocoder's tensors.
        low_latency: The operator's settings.
        pace: When a piece is due.
    """

    def __init__(self, sizes: VocoderSizes, low_latency: LowLatency, pace: Pace) -> None:
        self.num_sent = 0
        """Samples that came out."""
        self.first_steps = low_latency.lookahead_steps + low_latency.first_steps
        self.chunk_steps = low_latency.first_steps
        self._sizes = sizes
        self._lookahead_steps = low_latency.lookahead_steps
        self._pace = pace
        # The first piece and its half step more come out at the end of a chunk: no call too many.
        reach = sizes.context_steps + low_latency.first_steps + 1
        self._exact = SegmentStream(sizes, (reach - 1) % sizes.chunk_steps + 1)
        self._guess: SegmentStream | None = None
        self._guessed: list[FloatArray] = []
        self._held = _NOTHING
        self._fade_in = _fade_in(sizes.samples_per_step // 2)

    @property
    def num_steps(self) -> int:
        """See AudioStream."""
        return self._exact.num_steps

    @property
    def is_complete(self) -> bool:
        """See AudioStream."""
        return self.num_sent == self._sizes.total_samples(self.num_steps)

    def append(self, hidden: FloatArray) -> None:
        """See AudioStream."""
        self._exact.append(hidden)

    def next_chunk(self, has_ended: bool) -> VocoderChunk | None:
        """See AudioStream."""
        if self._guess is None:
            chunk = self._exact.next_chunk(has_ended)
            if chunk is not None or has_ended or not self._is_piece_due():
                return chunk
            self._guess = self._exact.fork()
        return self._guess.next_chunk(has_ended=True)

    def accept(self, audio: FloatArray, next_state: FloatArray) -> FloatArray:
        """See AudioStream."""
        if self._guess is None:
            start = self._exact.num_sent
            return self._join(start, self._exact.accept(audio, next_state), num_held=0)
        self._guessed.append(self._guess.accept(audio, next_state))
        num_held = len(self._fade_in)
        end = self._num_speakable + num_held
        if self._guess.num_sent < end:
            return _NOTHING
        start = self._exact.num_sent
        samples = np.concatenate(self._guessed)[: end - start]
        self._guess = None
        self._guessed.clear()
        return self._join(start, samples, num_held)

    @property
    def _num_speakable(self) -> int:
        """Samples with the look-ahead behind them."""
        return self._sizes.samples_per_step * (self.num_steps - self._lookahead_steps)

    def _is_piece_due(self) -> bool:
        wanted_steps = self._pace.wanted_steps()
        return self._num_speakable - self.num_sent >= wanted_steps * self._sizes.samples_per_step

    def _join(self, start: int, samples: FloatArray, num_held: int) -> FloatArray:
        """Return what follows the samples that went out; keep the last `num_held` back.

        Args:
            start: Position of the first sample, at most `num_sent`.
            samples: (S,).
            num_held: Samples at the end that the next ones will replace.
        """
        following = samples[self.num_sent - start :]
        if not len(following):
            return _NOTHING
        if len(self._held):
            fade = len(self._held)
            blended = self._held + self._fade_in * (following[:fade] - self._held)
            following = np.concatenate([blended, following[fade:]])
        end = len(following) - num_held
        self._held = following[end:]
        self.num_sent += end
        return following[:end]


def _fade_in(num_samples: int) -> FloatArray:
    """Return the rising half (S,) of a raised cosine, from just above 0 to just below 1."""
    phase = np.pi * (np.arange(num_samples) + 0.5) / num_samples
    fade: FloatArray = (0.5 - 0.5 * np.cos(phase)).astype(np.float32)
    return fade
