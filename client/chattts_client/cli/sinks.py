"""Where speech goes while it is made: a WAV file, standard output, the loudspeaker."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Protocol

from .._audio import WAV_SUFFIX, WavWriter, pcm16, sound_library
from .._extras import missing_extra
from .._files import naming
from .._types import Samples

STDOUT = "-"


class Sink(Protocol):
    """Takes samples, (S,) float32 in -1 ... 1, in order."""

    def write(self, samples: Samples) -> None:
        """Take the next samples."""


class StandardOutput:
    """Signed 16-bit little-endian samples without a header, for aplay or ffplay."""

    def write(self, samples: Samples) -> None:
        """Write the next samples; whoever reads has them at once.

        Raises:
            OSError: it is closed or full, or whoever read has left.
        """
        with naming("standard output"):
            sys.stdout.buffer.write(pcm16(samples))
            sys.stdout.buffer.flush()


class Loudspeaker:
    """Plays as it goes; leaving it waits until all has been heard."""

    def __init__(self, sample_rate: int) -> None:
        """Open the default device.

        Args:
            sample_rate: Hz.

        Raises:
            ImportError: the extra `play` is not installed.
            OSError: no sound library or device.
        """
        library = sound_library()
        try:
            self._stream = library.OutputStream(samplerate=sample_rate, channels=1, dtype="float32")
        except library.PortAudioError as error:
            raise OSError(f"the sound cannot be played: {error}") from error

    def write(self, samples: Samples) -> None:
        """Play the next samples; returns when the device has taken them."""
        if len(samples):
            self._stream.write(samples.reshape(-1, 1))

    def __enter__(self) -> Loudspeaker:
        self._stream.start()
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *rest: object) -> None:
        if exc_type is None:
            self._stream.stop()  # plays what it has taken
        self._stream.close()


def check_extras(suffix: str, play: bool) -> None:
    """Find out before anything is sent whether the files and sounds that are wanted can be made.

    Args:
        suffix: of the file, with its dot; empty: there is none.
        play: whether the loudspeaker is wanted.

    Raises:
        ImportError: an extra is not installed; the message says which.
        OSError: there is no sound library.
    """
    if suffix not in ("", WAV_SUFFIX) and find_spec("soundfile") is None:
        raise ImportError(missing_extra(f"saving {suffix}", "[audio]"))
    if play:
        sound_library()


def open_sinks(stack: ExitStack, output: str | None, play: bool, sample_rate: int) -> list[Sink]:
    """Everything that a stream is written to; `stack` closes it.

    Raises:
        ImportError: the extra `play` is not installed.
        OSError: the file cannot be written, or there is no sound.
    """
    sinks: list[Sink] = []
    if play:
        sinks.append(stack.enter_context(Loudspeaker(sample_rate)))
    if output == STDOUT:
        sinks.append(StandardOutput())
    elif output is not None:
        sinks.append(stack.enter_context(WavWriter(output, sample_rate)))
    return sinks
