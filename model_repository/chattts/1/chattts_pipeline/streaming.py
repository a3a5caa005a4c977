"""A segment on its way through the vocoder, chunk by chunk, each step once.

The vocoder lags: after K steps the samples of the first K - R are final, R being its reach to each
side in whole steps, and it keeps what it needs of earlier steps in a state that travels with the
calls. All chunks have the same number of steps C, so that Triton can merge the chunks of any
streams. The first chunk is filled up in front with steps of mask 0, which change nothing, so that a
chunk ends at R + C steps: that one brings the first C steps of audio. The last ones are filled up
behind, until the samples of the last step have come out.

With P samples per step, T steps make P * T - P / 2 samples.
"""

import copy
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]

CHUNK_STEPS = 24
"""Steps per call (0.512 s of audio), as chattts_vocoder/config.pbtxt has it."""


@dataclass(frozen=True, slots=True)
class VocoderSizes:
    """Sizes of the vocoder's tensors."""

    context_steps: int
    """R, at least 1."""
    samples_per_step: int
    """P, even."""
    hidden_size: int
    """H, the width of a hidden state."""
    state_size: int
    """Numbers in the state of one stream."""
    chunk_steps: int = CHUNK_STEPS
    """C, at least 1."""

    @property
    def first_chunk_steps(self) -> int:
        """Steps of the segment in its first chunk, 1 ... C."""
        return (self.context_steps - 1) % self.chunk_steps + 1

    def total_samples(self, num_steps: int) -> int:
        """Return the samples of a segment of `num_steps` steps."""
        return max(0, self.samples_per_step * num_steps - self.samples_per_step // 2)


@dataclass(frozen=True, slots=True, eq=False)
class VocoderChunk:
    """The inputs of one call."""

    hidden: FloatArray
    """(C, H)."""
    mask: FloatArray
    """(C,), 1 for the steps of the segment, 0 for those before and after."""
    state: FloatArray
    """(state size,), as the call before returned it."""


class AudioStream(Protocol):
    """One segment on its way through the vocoder: steps in, calls to make, samples out."""

    @property
    def num_steps(self) -> int:
        """Steps known."""

    @property
    def first_steps(self) -> int:
        """Steps to ask of the token model before anything else."""

    @property
    def chunk_steps(self) -> int:
        """Steps to ask of the token model at a time from then on."""

    @property
    def is_complete(self) -> bool:
        """Whether all samples of the steps known have come out."""

    def append(self, hidden: FloatArray) -> None:
        """Add the hidden states (T, H) of the next steps."""

    def next_chunk(self, has_ended: bool) -> VocoderChunk | None:
        """Return the next call's inputs, or None while it needs more steps or nothing is left.

        Args:
            has_ended: No more steps will come.
        """

    def accept(self, audio: FloatArray, next_state: FloatArray) -> FloatArray:
        """Take over what the call with the last chunk returned.

        Args:
            audio: (C * P,) samples.
            next_state: (state size,).

        Returns:
            The next samples of the segment, perhaps none.
        """


class SegmentStream:
    """Exact: all that comes out is final. See AudioStream.

    Args:
        sizes: Sizes of the vocoder's tensors.
        first_steps: Steps of the segment in the first chunk, 1 ... C; None: as many as bring the
            first C steps of audio soonest. No choice changes a sample.
    """

    def __init__(self, sizes: VocoderSizes, first_steps: int | None = None) -> None:
        self.num_steps = 0
        self.num_sent = 0
        """Samples that came out."""
        self.first_steps = first_steps or sizes.first_chunk_steps
        self.chunk_steps = sizes.chunk_steps
        self._sizes = sizes
        self._waiting: list[FloatArray] = []
        self._position = self.first_steps - sizes.chunk_steps
        self._state = np.zeros(sizes.state_size, np.float32)

    def fork(self) -> "SegmentStream":
        """Return an independent stream that is where this one is now."""
        other = copy.copy(self)
        other._waiting = list(self._waiting)
        return other

    def append(self, hidden: FloatArray) -> None:
        """See AudioStream."""
        if len(hidden):
            self._waiting.append(hidden)
            self.num_steps += len(hidden)

    def next_chunk(self, has_ended: bool) -> VocoderChunk | None:
        """See AudioStream."""
        sizes = self._sizes
        is_full = self.num_steps - self._position >= sizes.chunk_steps
        if not is_full and not (has_ended and not self.is_complete):
            return None
        first = max(0, -self._position)
        last = min(sizes.chunk_steps, max(first, self.num_steps - self._position))
        hidden = np.zeros((sizes.chunk_steps, sizes.hidden_size), np.float32)
        mask = np.zeros(sizes.chunk_steps, np.float32)
        hidden[first:last] = self._take(last - first)
        mask[first:last] = 1
        return VocoderChunk(hidden, mask, self._state)

    def accept(self, audio: FloatArray, next_state: FloatArray) -> FloatArray:
        """See AudioStream."""
        sizes = self._sizes
        start = sizes.samples_per_step * (self._position - sizes.context_steps)
        end = min(sizes.total_samples(self.num_steps), start + len(audio))
        self._position += sizes.chunk_steps
        self._state = next_state
        samples = audio[self.num_sent - start : max(self.num_sent, end) - start]
        self.num_sent += len(samples)
        return samples

    @property
    def is_complete(self) -> bool:
        """See AudioStream."""
        return self.num_sent == self._sizes.total_samples(self.num_steps)

    def _take(self, num_steps: int) -> FloatArray:
        if not num_steps:
            return np.zeros((0, self._sizes.hidden_size), np.float32)
        steps = np.concatenate(self._waiting)
        self._waiting = [steps[num_steps:]]
        return steps[:num_steps]
