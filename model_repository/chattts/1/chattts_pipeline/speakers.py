"""Voices: the registry of names, and the speaker and audio-prompt strings of ChatTTS.

Invariant: a Voice fits this checkpoint; a wrong string is an error, never a silent fallback.
"""

import json
import lzma
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUM_CODEBOOKS = 4
NUM_AUDIO_CODES = 625
LIST_VOICES_HINT = 'options={"list_voices": true} or the client command `voices` lists them'

_FIRST_CHARACTER = 0x4E00
_BITS_PER_CHARACTER = 14
_GROUP_BYTES = 7
_TAIL_MARKER = 0x3D00
_TAIL_CHARACTERS = (0, 1, 2, 2, 3, 3, 4)

# A name is shorter; a speaker string of any real checkpoint is longer.
_MIN_SPEAKER_STRING = 24
# Distances inside the few kilobytes of a voice string; saves the 64 MiB of the encoder's setting.
_LZMA_DICTIONARY_BYTES = 1 << 20
_MAX_PROMPT_STEPS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Voice:
    """Who speaks."""

    name: str
    """Registry name; "custom" for a speaker string; empty without a speaker."""
    speaker_embedding: NDArray[np.float16] | None = None
    """(H,), not normalised."""
    audio_prompt_codes: NDArray[np.int32] | None = None
    """(T, 4) in 0 ... 624."""
    transcript: str = ""
    """What the audio prompt says."""


class VoiceRegistry:
    """The voices of a checkpoint by name.

    Args:
        path: voices.json.
        hidden_size: H.
        default_voice: Name for requests that give none; empty: they get no speaker.

    Raises:
        ValueError: The file is malformed, a voice does not fit, or the default is not in it.
    """

    def __init__(self, path: Path, hidden_size: int, default_voice: str) -> None:
        self._hidden_size = hidden_size
        self._listing: list[dict[str, str]] = []
        self._voices: dict[str, Voice] = {}
        for entry in _read_entries(path):
            self._add(path, entry)
        if default_voice and default_voice not in self._voices:
            raise ValueError(f"default_voice: {default_voice!r} is not in {path}")
        self._default = self._voices[default_voice] if default_voice else Voice("")

    def listing(self) -> list[dict[str, str]]:
        """Return name, language and description of each voice."""
        return [dict(entry) for entry in self._listing]

    def find(self, voice: str) -> Voice:
        """Return the voice of a name or of a speaker string.

        Raises:
            ValueError: Unknown name, or a speaker string that does not fit this checkpoint.
        """
        if not voice:
            return self._default
        if voice in self._voices:
            return self._voices[voice]
        if _looks_like_string(voice):
            return Voice("custom", decode_speaker(voice, self._hidden_size))
        shown = voice if len(voice) <= _MIN_SPEAKER_STRING else voice[:_MIN_SPEAKER_STRING] + "..."
        raise ValueError(
            f"voice: {shown!r} is unknown; allowed: a registry name ({LIST_VOICES_HINT}), "
            "a speaker string, or empty"
        )

    def _add(self, path: Path, entry: dict[str, str]) -> None:
        name = entry.get("name", "")
        if not name or name in self._voices:
            raise ValueError(f"{path}: voice name {name!r} is empty or given twice")
        speaker, prompt = entry.get("speaker"), entry.get("audio_prompt")
        try:
            self._voices[name] = Voice(
                name,
                decode_speaker(speaker, self._hidden_size) if speaker else None,
                decode_audio_prompt(prompt) if prompt else None,
                entry.get("transcript", ""),
            )
        except ValueError as error:
            raise ValueError(f"{path}: {name}: {error}") from error
        shown = ("name", "language", "description")
        self._listing.append({key: entry.get(key, "") for key in shown})


def decode_speaker(string: str, hidden_size: int) -> NDArray[np.float16]:
    """Decode a speaker string: base16384 of a raw LZMA2 stream of H float16.

    Args:
        string: The speaker string.
        hidden_size: H.

    Returns:
        (H,) float16, finite, not all zero.

    Raises:
        ValueError: Broken, of another length, non-finite or all zero.
    """
    expected = f"a speaker string of {hidden_size} float16 values"
    raw = _decompress(_decode_base16384(string, expected), 2 * hidden_size, expected)
    vector = np.frombuffer(raw, dtype="<f2").astype(np.float16)
    if not np.isfinite(vector).all() or not vector.any():
        raise ValueError(f"voice: values are not finite or all zero; expected {expected}")
    return vector


def decode_audio_prompt(string: str) -> NDArray[np.int32]:
    """Decode an audio-prompt string: base16384 of rows, T and a raw LZMA2 stream of [4, T] codes.

    Args:
        string: The audio-prompt string.

    Returns:
        (T, 4) int32 in 0 ... 624.

    Raises:
        ValueError: Broken, or codes out of range.
    """
    expected = f"an audio-prompt string of {NUM_CODEBOOKS} x T codes in 0 ... {NUM_AUDIO_CODES - 1}"
    content = _decode_base16384(string, expected)
    rows, steps = struct.unpack_from("<HH", content.ljust(4, b"\0"))
    if rows != NUM_CODEBOOKS or not 1 <= steps <= _MAX_PROMPT_STEPS:
        raise ValueError(f"voice: {rows} x {steps} codes; expected {expected}")
    raw = _decompress(content[4:], 2 * rows * steps, expected)
    codes = np.frombuffer(raw, dtype="<u2").reshape(rows, steps)
    if codes.max() >= NUM_AUDIO_CODES:
        raise ValueError(f"voice: code {codes.max()}; expected {expected}")
    return np.ascontiguousarray(codes.T, dtype=np.int32)


def _read_entries(path: Path) -> Sequence[dict[str, str]]:
    content: Any = json.loads(path.read_text(encoding="utf-8"))
    entries = content.get("voices") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f'{path}: expected {{"voices": [{{"name": ..., "speaker": ...}}, ...]}}')
    return entries


def _looks_like_string(voice: str) -> bool:
    start = voice[: _MIN_SPEAKER_STRING // 2]
    return len(voice) >= _MIN_SPEAKER_STRING and all(_value(mark) is not None for mark in start)


def _value(character: str) -> int | None:
    value = ord(character) - _FIRST_CHARACTER
    return value if 0 <= value < 1 << _BITS_PER_CHARACTER else None


def _decode_base16384(string: str, expected: str) -> bytes:
    tail = ord(string[-1]) - _TAIL_MARKER if string else 0
    has_tail = 1 <= tail < _GROUP_BYTES
    values = [_value(character) for character in (string[:-1] if has_tail else string)]
    per_group = _TAIL_CHARACTERS[-1]
    whole = len(values) - (_TAIL_CHARACTERS[tail] if has_tail else 0)
    if not values or None in values or whole < 0 or whole % per_group:
        raise ValueError(f"voice: broken characters; expected {expected}")
    padding = -len(values) % per_group
    bits = 0
    for value in values:
        bits = bits << _BITS_PER_CHARACTER | (value or 0)
    bits <<= _BITS_PER_CHARACTER * padding
    content = bits.to_bytes((len(values) + padding) // per_group * _GROUP_BYTES, "big")
    return content[: len(content) - _GROUP_BYTES + tail] if has_tail else content


def _decompress(content: bytes, num_bytes: int, expected: str) -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": _LZMA_DICTIONARY_BYTES}]
    decoder = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)
    try:
        raw = decoder.decompress(content, max_length=num_bytes + 1)
    except lzma.LZMAError as error:
        raise ValueError(f"voice: broken LZMA2 stream; expected {expected}") from error
    if len(raw) != num_bytes:
        raise ValueError(f"voice: {len(raw)} bytes (or more) of values; expected {expected}")
    return raw
