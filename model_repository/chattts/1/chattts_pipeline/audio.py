"""Forms of the audio: float32 samples, 16-bit PCM bytes, WAV in base64."""

import base64
import struct

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]

_MAX_PCM16 = 32767
_BYTES_PER_SAMPLE = 2
_WAV_HEADER_BYTES = 44
# What a WAV header says while its length is not known yet.
_UNKNOWN_BYTES = 0xFFFFFFFF


def pcm16(samples: FloatArray) -> bytes:
    """Convert samples to 16-bit PCM.

    Args:
        samples: (S,) float32; values outside -1 ... 1 are clipped.

    Returns:
        2 * S bytes, little-endian.
    """
    scaled = np.rint(np.clip(samples, -1.0, 1.0) * np.float32(_MAX_PCM16))
    return bytes(scaled.astype("<i2").tobytes())


def wav_header(sample_rate: int, num_samples: int | None) -> bytes:
    """Build the header of a mono 16-bit WAV file.

    Args:
        sample_rate: Hz.
        num_samples: None while it is not known: both sizes are then 0xFFFFFFFF.
    """
    data_bytes = riff_bytes = _UNKNOWN_BYTES
    if num_samples is not None:
        data_bytes = num_samples * _BYTES_PER_SAMPLE
        riff_bytes = data_bytes + _WAV_HEADER_BYTES - 8
    byte_rate = sample_rate * _BYTES_PER_SAMPLE
    chunk = struct.pack("<IHHIIHH", 16, 1, 1, sample_rate, byte_rate, _BYTES_PER_SAMPLE, 16)
    return b"".join(
        [b"RIFF", struct.pack("<I", riff_bytes), b"WAVEfmt ", chunk, b"data"]
        + [struct.pack("<I", data_bytes)]
    )


class AudioEncoder:
    """Encodes the pieces of one request in order.

    Encoding f32 gives samples. pcm16 gives bytes. wav_base64 gives base64 text: of a complete WAV
    file if the only piece is given at once, else of a header without sizes and the first samples,
    then of the samples alone; the decoded pieces joined are one WAV file.

    Args:
        encoding: f32, pcm16 or wav_base64.
        sample_rate: Hz.
        is_streamed: Whether more than one piece may come.
    """

    def __init__(self, encoding: str, sample_rate: int, is_streamed: bool) -> None:
        self._encoding = encoding
        self._sample_rate = sample_rate
        self._is_streamed = is_streamed
        self._has_header = False

    def encode(self, samples: FloatArray) -> tuple[FloatArray, bytes]:
        """Encode the next piece.

        Args:
            samples: (S,) float32.

        Returns:
            Samples and bytes; the one that the encoding does not use is empty.
        """
        if self._encoding == "f32":
            return samples, b""
        content = pcm16(samples)
        if self._encoding == "wav_base64":
            content = base64.b64encode(self._header(len(samples)) + content)
        return np.zeros(0, np.float32), content

    def _header(self, num_samples: int) -> bytes:
        if self._has_header:
            return b""
        self._has_header = True
        return wav_header(self._sample_rate, None if self._is_streamed else num_samples)
