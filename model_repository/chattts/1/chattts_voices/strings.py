"""The strings in which voices travel: a speaker vector or an audio prompt as printable characters.

Both are base16384: 7 bytes as 4 characters from U+4E00 on, a tail ends with its length from U+3D00
on. Speaker string: raw LZMA2 of H float16. Audio-prompt string: two uint16 (codebooks, steps), raw
LZMA2 of the [4, T] uint16 codes. All little-endian.

Knows no file and no request. Invariant: what is decoded is whole, finite and in range.
"""

import lzma
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUM_CODEBOOKS = 4
NUM_AUDIO_CODES = 625

MAX_PROMPT_STEPS = 4096
MAX_SPEAKER_VALUES = 8192
"""More than the hidden size of any checkpoint."""

_FIRST_CHARACTER = 0x4E00
_BITS_PER_CHARACTER = 14
_GROUP_BYTES = 7
_GROUP_CHARACTERS = 4
_TAIL_MARKER = 0x3D00
_TAIL_CHARACTERS = (0, 1, 2, 2, 3, 3, 4)
_CHARACTER_MASK = (1 << _BITS_PER_CHARACTER) - 1
_SHIFTS = np.arange(_GROUP_CHARACTERS - 1, -1, -1) * _BITS_PER_CHARACTER

# Distances inside the kilobytes of a voice; the usual 64 MiB would cost ten times that to write.
_FILTERS = [
    {
        "id": lzma.FILTER_LZMA2,
        "preset": 9 | lzma.PRESET_EXTREME,
        "dict_size": 1 << 20,
    }
]
_PROMPT_HEADER = struct.Struct("<HH")


def is_character(character: str) -> bool:
    """Return True for a character of base16384 that stands for bits."""
    return 0 <= ord(character) - _FIRST_CHARACTER < 1 << _BITS_PER_CHARACTER


def encode_base16384(content: bytes) -> str:
    """Return bytes as characters; the empty string for none."""
    tail = len(content) % _GROUP_BYTES
    padded = content + bytes(-len(content) % _GROUP_BYTES)
    # a group is the lower seven bytes of a number of eight
    groups = np.zeros((len(padded) // _GROUP_BYTES, 8), np.uint8)
    groups[:, 1:] = np.frombuffer(padded, np.uint8).reshape(-1, _GROUP_BYTES)
    values = groups.view(">i8").astype(np.int64) >> _SHIFTS & _CHARACTER_MASK
    points = (values + _FIRST_CHARACTER).astype("<u4").reshape(-1)
    if tail:
        points = points[: len(points) - _GROUP_CHARACTERS + _TAIL_CHARACTERS[tail]]
    text = points.tobytes().decode("utf-32-le")
    return text + chr(_TAIL_MARKER + tail) if tail else text


def decode_base16384(string: str) -> bytes:
    """Return the bytes of a string.

    Raises:
        ValueError: it is empty, a character does not belong to the encoding or some are missing.
    """
    tail = ord(string[-1]) - _TAIL_MARKER if string else 0
    has_tail = 1 <= tail < _GROUP_BYTES
    body = string[:-1] if has_tail else string
    num_whole = len(body) - (_TAIL_CHARACTERS[tail] if has_tail else 0)
    if not body or num_whole < 0 or num_whole % _GROUP_CHARACTERS:
        raise ValueError(f"broken characters: {len(string)} of them hold no whole bytes")
    points = np.frombuffer(body.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
    values = points - _FIRST_CHARACTER
    foreign = np.flatnonzero((values < 0) | (values > _CHARACTER_MASK))
    if foreign.size:
        first = int(foreign[0])
        raise ValueError(f"broken characters: U+{points[first]:04X} at {first}")
    values = np.pad(values, (0, -len(values) % _GROUP_CHARACTERS)).reshape(-1, _GROUP_CHARACTERS)
    groups = (values << _SHIFTS).sum(axis=1).astype(">i8")
    content: bytes = groups[:, None].view(np.uint8)[:, 1:].tobytes()
    return content[: len(content) - _GROUP_BYTES + tail] if has_tail else content


def encode_speaker(vector: NDArray[np.float16]) -> str:
    """Return the speaker string of a (H,) float16 vector."""
    return encode_base16384(_compress(vector.astype("<f2").tobytes()))


def decode_speaker(string: str, hidden_size: int | None = None) -> NDArray[np.float16]:
    """Return the vector of a speaker string.

    Args:
        string: The speaker string.
        hidden_size: H; None: any.

    Returns:
        (H,) float16, finite, not all zero.

    Raises:
        ValueError: Broken, of another length, non-finite or all zero; the message says what is
            allowed.
    """
    allowed = "a speaker string of " + (f"{hidden_size} " if hidden_size else "") + "float16 values"
    try:
        raw = _decompress(decode_base16384(string), 2 * MAX_SPEAKER_VALUES)
        if len(raw) % 2 or hidden_size not in (None, len(raw) // 2):
            raise ValueError(f"{len(raw)} bytes, which are {len(raw) / 2:g} values")
        vector = np.frombuffer(raw, dtype="<f2").astype(np.float16)
        if not np.isfinite(vector).all() or not vector.any():
            raise ValueError("values are not finite or all zero")
    except ValueError as error:
        raise ValueError(f"{error}; allowed: {allowed}") from error
    return vector


def encode_audio_prompt(codes: NDArray[np.integer[Any]]) -> str:
    """Return the audio-prompt string of codes (T, C) in 0 ... 65535."""
    steps, codebooks = codes.shape
    raw = codes.T.astype("<u2").tobytes()
    return encode_base16384(_PROMPT_HEADER.pack(codebooks, steps) + _compress(raw))


def decode_audio_prompt(string: str) -> NDArray[np.int32]:
    """Return the codes of an audio-prompt string.

    Args:
        string: The audio-prompt string.

    Returns:
        (T, 4) int32 in 0 ... 624.

    Raises:
        ValueError: Broken, or codes out of range; the message says what is allowed.
    """
    allowed = (
        f"an audio-prompt string of {NUM_CODEBOOKS} x T codes in 0 ... {NUM_AUDIO_CODES - 1}, "
        f"T at most {MAX_PROMPT_STEPS}"
    )
    try:
        content = decode_base16384(string)
        rows, steps = _PROMPT_HEADER.unpack_from(content.ljust(_PROMPT_HEADER.size, b"\0"))
        if rows != NUM_CODEBOOKS or not 1 <= steps <= MAX_PROMPT_STEPS:
            raise ValueError(f"{rows} x {steps} codes")
        raw = _decompress(content[_PROMPT_HEADER.size :], 2 * rows * steps)
        if len(raw) != 2 * rows * steps:
            raise ValueError(f"{len(raw)} bytes of {rows} x {steps} codes")
        codes = np.frombuffer(raw, dtype="<u2").reshape(rows, steps)
        if codes.max() >= NUM_AUDIO_CODES:
            raise ValueError(f"code {codes.max()}")
    except ValueError as error:
        raise ValueError(f"{error}; allowed: {allowed}") from error
    return np.ascontiguousarray(codes.T, dtype=np.int32)


def is_audio_prompt(string: str) -> bool:
    """Return True if a string is a whole audio prompt; no speaker string is one."""
    try:
        decode_audio_prompt(string)
    except ValueError:
        return False
    return True


def _compress(raw: bytes) -> bytes:
    return lzma.compress(raw, lzma.FORMAT_RAW, filters=_FILTERS)


def _decompress(content: bytes, max_bytes: int) -> bytes:
    """Return the bytes of a raw LZMA2 stream that ends; never more than `max_bytes` are made.

    Raises:
        ValueError: it is broken, does not end, something follows it, or it holds more.
    """
    decoder = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_FILTERS)
    try:
        raw = decoder.decompress(content, max_length=max_bytes + 1)
    except lzma.LZMAError as error:
        raise ValueError(f"broken LZMA2 stream ({error})") from error
    if len(raw) > max_bytes:
        raise ValueError(f"more than {max_bytes} bytes")
    if not decoder.eof:
        raise ValueError(f"broken LZMA2 stream (it does not end; {len(raw)} bytes so far)")
    if decoder.unused_data:
        raise ValueError(f"broken LZMA2 stream ({len(decoder.unused_data)} bytes after its end)")
    return raw
