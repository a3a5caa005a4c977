"""Draw a speaker vector from the statistics of ChatTTS's speakers: one seed, one vector, anywhere.

Knows no file of voices. The draw depends on nothing but this text: no generator of a library, no
global state, no device.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from voice_format import Speaker, decode_base16384

ALGORITHM = (
    "SHA-256 counter mode (label, seed and block as uint64 little-endian), Box-Muller in float64, "
    "x * std + mean rounded to float16"
)
PUBLISHED_SHA256 = "a232ea60c596a60f90f5b8fc2108a933a608858af47bbe1ed8b538b4f7176aeb"
"""Of the statistics that ChatTTS publishes, 2 x 768 float16."""
MAX_SEED = (1 << 64) - 1

_LABEL = b"chattts speaker 1\0"
_BLOCK = struct.Struct("<QQ")
_WORDS = struct.Struct("<4Q")
_UNIT = 2.0**-53


@dataclass(frozen=True, slots=True)
class Statistics:
    """Mean and standard deviation of each value of a speaker vector."""

    std: tuple[float, ...]
    mean: tuple[float, ...]
    sha256: str
    """Of the float16 that were read, std first."""

    @property
    def origin(self) -> str:
        """Where they come from, as far as their checksum tells."""
        published = "published ChatTTS speaker statistics" if self.is_published else "statistics"
        return f"{published}, {len(self.mean)} values, SHA-256 {self.sha256}"

    @property
    def is_published(self) -> bool:
        """True for those that belong to the published weights."""
        return self.sha256 == PUBLISHED_SHA256


def read_statistics(path: Path) -> Statistics:
    """Read statistics: 2 H float16 little-endian, H standard deviations before H means.

    Args:
        path: the bytes themselves, or the same as one base16384 string, as ChatTTS's configuration
            has it.

    Raises:
        ValueError: the file is neither.
    """
    data = path.read_bytes()
    with suppress(ValueError):  # no string: the bytes themselves
        data = decode_base16384(data.decode().strip())
    if len(data) < 4 or len(data) % 4:
        raise ValueError(f"{path}: {len(data)} bytes are not as many float16 for std as for mean")
    values = struct.unpack(f"<{len(data) // 2}e", data)
    std, mean = values[: len(values) // 2], values[len(values) // 2 :]
    if not all(map(math.isfinite, values)) or min(std) <= 0:
        raise ValueError(f"{path}: no statistics: a value is not finite or a deviation not above 0")
    return Statistics(std, mean, hashlib.sha256(data).hexdigest())


def normals(seed: int) -> Iterator[float]:
    """Yield independent standard normal numbers for ever.

    Args:
        seed: 0 ... 2**64 - 1.
    """
    block = 0
    while True:
        words = _WORDS.unpack(hashlib.sha256(_LABEL + _BLOCK.pack(seed, block)).digest())
        for first, second in (words[:2], words[2:]):
            # 53 bits each: the first in (0, 1], so that its logarithm exists, the second in [0, 1)
            radius = math.sqrt(-2.0 * math.log(((first >> 11) + 1) * _UNIT))
            angle = 2.0 * math.pi * ((second >> 11) * _UNIT)
            yield radius * math.cos(angle)
            yield radius * math.sin(angle)
        block += 1


def draw_speaker(statistics: Statistics, seed: int) -> Speaker:
    """Return the speaker vector (H,) float16 of a seed in 0 ... 2**64 - 1."""
    numbers = zip(normals(seed), statistics.std, statistics.mean, strict=False)
    values = [number * std + mean for number, std, mean in numbers]
    # struct rounds a double to the nearest half, ties to even
    return np.frombuffer(struct.pack(f"<{len(values)}e", *values), "<f2").astype(np.float16)
