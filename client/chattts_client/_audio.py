"""Samples to 16-bit PCM and WAV files, with the standard library only.

Arrays are mono, (S,) float32; what lies outside -1 ... 1 is clipped.
"""

from __future__ import annotations

import io
import wave
from os import PathLike, fspath
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

PCM16_MAX = 32767
PCM16_BYTES = 2


def pcm16(samples: NDArray[np.float32]) -> bytes:
    """Little-endian signed 16-bit samples; 1.0 becomes 32767.

    Args:
        samples: (S,) float32 in -1 ... 1.
    """
    scaled = np.rint(np.clip(samples, -1.0, 1.0) * np.float32(PCM16_MAX))
    return bytes(scaled.astype("<i2").data)


class WavWriter:
    """Writes a WAV file chunk by chunk; after each one the file can be played."""

    def __init__(self, path: str | PathLike[str], sample_rate: int) -> None:
        """Open `path` for writing.

        Args:
            path: must end in .wav.
            sample_rate: Hz.

        Raises:
            ValueError: another suffix; nothing is written.
            OSError: the file cannot be written.
        """
        self._file = open(_checked(path), "wb")  # noqa: SIM115 # closed by close
        self._wave = wave.Wave_write(self._file)
        _set_format(self._wave, sample_rate)

    def write(self, samples: NDArray[np.float32]) -> None:
        """Append (S,) float32 samples in -1 ... 1; the file on disk is complete up to here."""
        self._wave.writeframes(pcm16(samples))
        self._file.flush()

    def close(self) -> None:
        """Finish the file; a second call does nothing."""
        self._wave.close()
        self._file.close()

    def __enter__(self) -> WavWriter:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def wav_bytes(samples: NDArray[np.float32], sample_rate: int) -> bytes:
    """A complete mono 16-bit WAV file of (S,) float32 samples in -1 ... 1."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        _set_format(file, sample_rate)
        file.writeframes(pcm16(samples))
    return buffer.getvalue()


def write_wav(path: str | PathLike[str], samples: NDArray[np.float32], sample_rate: int) -> None:
    """Write (S,) float32 samples in -1 ... 1 to a mono 16-bit WAV file.

    Raises:
        ValueError: `path` does not end in .wav; nothing is written.
        OSError: the file cannot be written.
    """
    with WavWriter(path, sample_rate) as file:
        file.write(samples)


def _set_format(file: wave.Wave_write, sample_rate: int) -> None:
    file.setnchannels(1)
    file.setsampwidth(PCM16_BYTES)
    file.setframerate(sample_rate)


def _checked(path: str | PathLike[str]) -> str:
    name = fspath(path)
    if not name.lower().endswith(".wav"):
        raise ValueError(f"path: {name!r} does not end in .wav")
    return name
