"""Read a recording for an audio prompt: any common WAV file, as 24 kHz mono, checked.

The encoder takes samples as they are, neither trimmed nor changed in level; a recording that would
make a bad voice is refused here, with what to do about it.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path

import layout
import numpy as np
import soxr
from checkpoint import Array

MIN_SECONDS = 1.0
"""Less says too little about a voice."""
MAX_SECONDS = 30.0
"""1,406 steps: more would leave a text little of the model's 4,096 positions."""
MIN_LEVEL_DBFS = -45.0
"""Root mean square. Quieter ones are mostly noise to the encoder."""
MAX_CLIPPED = 1e-3
"""Part of the samples at full scale."""

_FULL_SCALE = 0.999
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_CHUNK = struct.Struct("<4sI")
_FORMAT = struct.Struct("<HHIIHH")
_EXTENSIBLE_BYTES = 26
"""Of a format chunk whose real format code is at its byte 24."""


def read_recording(path: Path) -> Array:
    """Return the samples (S,) of a WAV file, float32 around -1 ... 1, 24 kHz, channels averaged.

    Raises:
        ValueError: not PCM of 16, 24 or 32 bits or float of 32 or 64, or a rate below 8 kHz.
    """
    rate, samples = _read_wave(path)
    if rate < 8000:
        raise ValueError(f"{path}: {rate} Hz; at least 8000 are needed, better 24000")
    mono = samples.mean(axis=1)
    if rate != layout.SAMPLE_RATE:
        mono = soxr.resample(mono, rate, layout.SAMPLE_RATE, quality="VHQ")
    return np.ascontiguousarray(mono, dtype=np.float32)


def check_recording(samples: Array) -> None:
    """Check length and level of samples (S,) at 24 kHz in -1 ... 1.

    Raises:
        ValueError: they do not do for a voice; the message says why and what would.
    """
    seconds = len(samples) / layout.SAMPLE_RATE
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise ValueError(
            f"recording: {seconds:.2f} s; allowed: {MIN_SECONDS:g} ... {MAX_SECONDS:g} s, "
            "3 ... 10 s of calm speech are best"
        )
    if not np.isfinite(samples).all():
        raise ValueError("recording: a sample is not finite")
    level = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
    level_dbfs = 20 * math.log10(level) if level > 0 else -math.inf
    if level_dbfs < MIN_LEVEL_DBFS:
        raise ValueError(
            f"recording: its level is {level_dbfs:.0f} dBFS; allowed: {MIN_LEVEL_DBFS:g} and more, "
            "about -20 is best"
        )
    clipped = float(np.mean(np.abs(samples) >= _FULL_SCALE))
    if clipped > MAX_CLIPPED:
        raise ValueError(
            f"recording: {clipped:.1%} of the samples are clipped; allowed: at most "
            f"{MAX_CLIPPED:.1%}; record it with less gain"
        )


def _read_wave(path: Path) -> tuple[int, Array]:
    """Return the sample rate in Hz and samples (S, channels), float64 or float32.

    The standard library's reader knows neither float nor the extensible form, which recorders write
    for 24 bits.
    """
    data = path.read_bytes()
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise ValueError(f"{path}: not a WAV file")
    header, content, position = b"", None, 12
    while content is None and position + _CHUNK.size <= len(data):
        name, size = _CHUNK.unpack_from(data, position)
        body = data[position + _CHUNK.size :][:size]
        if name == b"fmt ":
            header = body
        elif name == b"data":
            content = body
        position += _CHUNK.size + size + size % 2
    if len(header) < _FORMAT.size or content is None:
        raise ValueError(f"{path}: not a WAV file: it has no format, or no samples")
    code, channels, rate, _, frame_bytes, bits = _FORMAT.unpack_from(header)
    if code == _EXTENSIBLE and len(header) >= _EXTENSIBLE_BYTES:
        (code,) = struct.unpack_from("<H", header, _EXTENSIBLE_BYTES - 2)
    if channels == 0 or frame_bytes != channels * bits // 8:
        raise ValueError(f"{path}: not a WAV file: {channels} channels of {bits} bits")
    content = content[: len(content) // frame_bytes * frame_bytes]
    samples = _decode(path, content, code, bits)
    return rate, samples.reshape(-1, channels)


def _decode(path: Path, content: bytes, code: int, bits: int) -> Array:
    if code == _FLOAT and bits in (32, 64):
        return np.frombuffer(content, f"<f{bits // 8}").astype(np.float32)
    if code != _PCM or bits not in (16, 24, 32):
        raise ValueError(
            f"{path}: format {code} of {bits} bits; allowed: PCM of 16, 24 or 32 bits, "
            "float of 32 or 64"
        )
    if bits == 24:
        # the three bytes become the upper ones of four
        wide = np.zeros((len(content) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(content, np.uint8).reshape(-1, 3)
        content, bits = wide.tobytes(), 32
    integers = np.frombuffer(content, f"<i{bits // 8}")
    return (integers / 2.0 ** (bits - 1)).astype(np.float32)
