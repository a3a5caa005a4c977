"""Samples to files and loudspeakers; WAV needs the standard library only.

Arrays are mono, (S,) float32; in files what lies outside -1 ... 1 is clipped, infinities too, and
NaN is silence.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Callable, Mapping
from contextlib import closing
from os import PathLike, fspath
from pathlib import PurePath
from types import ModuleType, TracebackType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ._extras import missing_extra
from ._files import naming, replacing

PCM16_MAX = 32767
PCM16_BYTES = 2
WAV_SUFFIX: Final = ".wav"
_SOUNDFILE_FORMATS: Final[Mapping[str, tuple[str, str]]] = {
    ".flac": ("FLAC", "PCM_16"),
    ".ogg": ("OGG", "VORBIS"),
    ".mp3": ("MP3", "MPEG_LAYER_III"),
}
"""Suffix to the names that soundfile has for file and coding."""
SUFFIXES: Final = (WAV_SUFFIX, *_SOUNDFILE_FORMATS)
"""What `save_audio` can write."""
_MAX_RATE_HZ: Final = 0xFFFFFFFF // PCM16_BYTES
"""The header of a WAV file has 32 bits for the bytes per second."""
_BLOCK_SAMPLES: Final = 1 << 16
"""libsndfile keeps a whole call's Vorbis output on the stack: long utterances go in pieces."""


def pcm16(samples: NDArray[np.float32]) -> bytes:
    """Little-endian signed 16-bit samples; 1.0 becomes 32767.

    Args:
        samples: (S,) float32 in -1 ... 1; what is no number becomes silence.
    """
    numbers = np.nan_to_num(samples, nan=0.0)
    scaled = np.rint(np.clip(numbers, -1.0, 1.0) * np.float32(PCM16_MAX))
    return bytes(scaled.astype("<i2").data)


class WavWriter:
    """Writes a WAV file chunk by chunk; after each one the file can be played."""

    def __init__(self, path: str | PathLike[str], sample_rate: int) -> None:
        """Open `path` for writing.

        Args:
            path: must end in .wav.
            sample_rate: Hz.

        Raises:
            ValueError: another suffix or no such rate; nothing is written.
            OSError: the file cannot be written.
        """
        is_whole = isinstance(sample_rate, int) and not isinstance(sample_rate, bool)
        if not is_whole or not 1 <= sample_rate <= _MAX_RATE_HZ:
            raise ValueError(f"sample_rate: {sample_rate!r} is not a whole number of Hz from 1")
        self._path = _checked(path)
        self._file = open(self._path, "wb")  # noqa: SIM115 # closed by close
        self._wave = wave.Wave_write(self._file)
        _set_format(self._wave, sample_rate)

    def write(self, samples: NDArray[np.float32]) -> None:
        """Append (S,) float32 samples in -1 ... 1; the file on disk is complete up to here.

        Raises:
            ValueError: the file is closed.
            OSError: the file cannot be written.
        """
        if self._file.closed:
            raise ValueError(f"{self._path!r} is closed: nothing more can be written")
        with naming(self._path):
            self._wave.writeframes(pcm16(samples))
            self._file.flush()

    def close(self) -> None:
        """Finish the file; a second call does nothing.

        Raises:
            OSError: the file cannot be written; it is closed all the same.
        """
        with naming(self._path), closing(self._file):
            self._wave.close()

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


def save_audio(path: str | PathLike[str], samples: NDArray[np.float32], sample_rate: int) -> None:
    """Write (S,) float32 samples in -1 ... 1 to a mono file; the suffix of `path` says which kind.

    .wav and .flac hold the same 16-bit samples; .ogg is Vorbis, .mp3 is MPEG layer III.

    Raises:
        ValueError: an unknown suffix, or no samples for another one than .wav; nothing is written.
        ImportError: another one than .wav without the `audio` extra; nothing is written.
        OSError: the file cannot be written; what was there before still is.
    """
    suffix = checked_suffix(path)
    encode = wav_bytes if suffix == WAV_SUFFIX else _encoder(suffix)
    content = encode(samples, sample_rate)
    with replacing(path) as file:
        file.write(content)


def _encoder(suffix: str) -> Callable[[NDArray[np.float32], int], bytes]:
    try:
        import soundfile
    except (ImportError, OSError) as error:  # OSError: no libsndfile
        raise ImportError(missing_extra(f"saving {suffix}", "[audio]")) from error
    kind, coding = _SOUNDFILE_FORMATS[suffix]

    def encode(samples: NDArray[np.float32], sample_rate: int) -> bytes:
        if not len(samples):
            raise ValueError(f"path: there is no audio, which only {WAV_SUFFIX} can hold")
        values = np.frombuffer(pcm16(samples), dtype="<i2").astype(np.int16, copy=False)
        buffer = io.BytesIO()
        with soundfile.SoundFile(buffer, "w", sample_rate, 1, coding, format=kind) as file:
            for start in range(0, len(values), _BLOCK_SAMPLES):
                file.write(values[start : start + _BLOCK_SAMPLES])
        return buffer.getvalue()

    return encode


def checked_suffix(path: str | PathLike[str]) -> str:
    """The suffix of `path` in lower case, one of `SUFFIXES`.

    Raises:
        ValueError: another one.
    """
    suffix = PurePath(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"path: {fspath(path)!r} ends in none of {', '.join(SUFFIXES)}")
    return suffix


def play_audio(samples: NDArray[np.float32], sample_rate: int) -> None:
    """Play (S,) float32 samples in -1 ... 1 on the default output; returns at their end.

    Raises:
        ImportError: the `play` extra is not installed.
        OSError: there is no PortAudio library, no output, or it fails.
    """
    library = sound_library()
    if not len(samples):
        return
    try:
        library.play(samples, sample_rate, blocking=True)
    except library.PortAudioError as error:
        raise OSError(f"the sound cannot be played: {error}") from error
    finally:
        library.stop()  # whoever is interrupted hears nothing more


def sound_library() -> ModuleType:
    """The module sounddevice.

    Raises:
        ImportError: the `play` extra is not installed.
        OSError: there is no PortAudio library.
    """
    try:
        import sounddevice
    except ImportError as error:
        raise ImportError(missing_extra("playing", "[play]")) from error
    except OSError as error:
        message = f"playing needs the PortAudio library (libportaudio2, portaudio): {error}"
        raise OSError(message) from error
    library: ModuleType = sounddevice
    return library


def _set_format(file: wave.Wave_write, sample_rate: int) -> None:
    file.setnchannels(1)
    file.setsampwidth(PCM16_BYTES)
    file.setframerate(sample_rate)


def _checked(path: str | PathLike[str]) -> str:
    name = fspath(path)
    if not name.lower().endswith(WAV_SUFFIX):
        raise ValueError(f"path: {name!r} does not end in {WAV_SUFFIX}")
    return name
