"""Bytes as printable characters: base16384, and the strings built on it.

Speaker string: raw LZMA2 of H float16. Audio-prompt string: two uint16 (codebooks, steps), then
raw LZMA2 of the (codebooks, steps) uint16 codes. All little-endian.
"""

from __future__ import annotations

import lzma
from typing import Any

import numpy as np
import numpy.typing as npt

GROUP_BYTES = 7
GROUP_DIGITS = 4
DIGIT_BITS = 14
FIRST_CHARACTER = 0x4E00
FIRST_MARKER = 0x3D00
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]


def num_digits(num_bytes: int) -> int:
    """Return how many characters hold 1 ... 7 bytes."""
    return -(-8 * num_bytes // DIGIT_BITS)


def encode_bytes(data: bytes) -> str:
    """Return `data` in base16384: 7 bytes are 4 characters, a tail ends with its length."""
    text = []
    for start in range(0, len(data), GROUP_BYTES):
        group = data[start : start + GROUP_BYTES]
        value = int.from_bytes(group.ljust(GROUP_BYTES, b"\0"), "big")
        shifts = range(DIGIT_BITS * (GROUP_DIGITS - 1), -1, -DIGIT_BITS)
        digits = [value >> shift & (1 << DIGIT_BITS) - 1 for shift in shifts]
        text += [chr(FIRST_CHARACTER + digit) for digit in digits[: num_digits(len(group))]]
        if len(group) < GROUP_BYTES:
            text.append(chr(FIRST_MARKER + len(group)))
    return "".join(text)


def decode_bytes(text: str) -> bytes:
    """Return the bytes of a base16384 string.

    Raises:
        ValueError: a character does not belong to the encoding.
    """
    tail = ord(text[-1]) - FIRST_MARKER if text else 0
    digits = [ord(character) - FIRST_CHARACTER for character in text]
    if 0 < tail < GROUP_BYTES:
        digits.pop()
    else:
        tail = GROUP_BYTES
    if (len(digits) - num_digits(tail)) % GROUP_DIGITS:
        raise ValueError("not a base16384 string")
    data = b""
    for start in range(0, len(digits), GROUP_DIGITS):
        value = 0
        for digit in (digits[start : start + GROUP_DIGITS] + [0] * GROUP_DIGITS)[:GROUP_DIGITS]:
            if not 0 <= digit < 1 << DIGIT_BITS:
                raise ValueError("not a base16384 string")
            value = value << DIGIT_BITS | digit
        data += value.to_bytes(GROUP_BYTES, "big")
    return data[: len(data) - GROUP_BYTES + tail] if data else data


def decode_speaker(text: str) -> npt.NDArray[np.float16]:
    """Return the (H,) float16 vector of a speaker string.

    Raises:
        ValueError: the string is broken.
    """
    try:
        data = lzma.decompress(decode_bytes(text), lzma.FORMAT_RAW, filters=FILTERS)
    except lzma.LZMAError as error:
        raise ValueError(f"not a speaker string ({error})") from error
    if len(data) % 2:
        raise ValueError(f"not a speaker string ({len(data)} bytes)")
    return np.frombuffer(data, "<f2").astype(np.float16)


def encode_speaker(vector: npt.NDArray[np.float16]) -> str:
    """Return the speaker string of a (H,) float16 vector."""
    data = vector.astype("<f2").tobytes()
    return encode_bytes(lzma.compress(data, lzma.FORMAT_RAW, filters=FILTERS))


def encode_prompt(codes: npt.NDArray[np.integer[Any]]) -> str:
    """Return the audio-prompt string of codes (T, codebooks) in 0 ... 65535."""
    steps, codebooks = codes.shape
    header = np.array([codebooks, steps], "<u2").tobytes()
    packed = lzma.compress(codes.T.astype("<u2").tobytes(), lzma.FORMAT_RAW, filters=FILTERS)
    return encode_bytes(header + packed)
