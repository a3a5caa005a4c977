"""A voice and its file: one JSON object with the data, where it comes from and a checksum.

Knows neither folder nor request. Invariant: a VoiceFile is whole, its values have the checksum that
the file states, and nothing in the file was ignored. docs/voices.md describes the fields.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .strings import decode_audio_prompt, decode_speaker

FORMAT = 1
SUFFIX = ".json"
MAX_FILE_BYTES = 1 << 20
SPEAKER, AUDIO_PROMPT = KINDS = ("speaker", "audio_prompt")
LANGUAGES = ("zh", "en")
GENDERS = ("female", "male", "neutral", "unknown")
CUSTOM, DEFAULT = RESERVED_NAMES = ("custom", "default")
"""What the metadata calls a speaker string, and what asks for the default voice."""

_NAME = re.compile(r"\w[\w.-]{0,47}")
# A lone surrogate, which JSON can hold, could not be sent to a caller.
_PRINTABLE = r"[^\x00-\x20\x7f\ud800-\udfff]"
_LINE = re.compile(rf"(?:{_PRINTABLE}| ){{0,2000}}")
_ALIAS = re.compile(rf"{_PRINTABLE}(?:(?:{_PRINTABLE}| ){{0,62}}{_PRINTABLE})?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PROVENANCE = ("method", "tool", "date", "source")
_MAX_ITEMS = 32

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, eq=False)
class Voice:
    """Who speaks."""

    name: str
    """Registry name; "custom" for a speaker string; empty without a speaker."""
    speaker_embedding: NDArray[np.float16] | None = None
    """(H,), not normalized."""
    audio_prompt_codes: NDArray[np.int32] | None = None
    """(T, 4) in 0 ... 624."""
    transcript: str = ""
    """What the audio prompt says."""


@dataclass(frozen=True, slots=True, eq=False)
class VoiceFile:
    """What a file holds."""

    voice: Voice
    aliases: tuple[str, ...]
    """Other names for it."""
    facts: Mapping[str, Any]
    """What a list of voices tells of it: all fields but the data."""


def digest(
    speaker: NDArray[np.float16] | None = None, codes: NDArray[np.int32] | None = None
) -> str:
    """Return the checksum of a voice's values, which no compressor's version changes.

    Args:
        speaker: (H,) float16; hashed as little-endian float16.
        codes: (T, 4); hashed after the speaker as [4, T] little-endian uint16.

    Returns:
        SHA-256, 64 hexadecimal digits.
    """
    content = b"" if speaker is None else speaker.astype("<f2").tobytes()
    content += b"" if codes is None else codes.T.astype("<u2").tobytes()
    return hashlib.sha256(content).hexdigest()


def check_name(name: str) -> str:
    """Return a name that a voice may have.

    Raises:
        ValueError: it may not; the message says what is allowed.
    """
    if not _NAME.fullmatch(name) or name in RESERVED_NAMES:
        raise ValueError(
            f"name: {name!r}; allowed: 1 ... 48 letters, digits, '_', '-' and '.', none of the "
            f"last two first, none of {', '.join(RESERVED_NAMES)}"
        )
    return name


def parse_voice(content: bytes, name: str, hidden_size: int | None) -> VoiceFile:
    """Return what a voice's file holds.

    Args:
        content: The file's bytes, UTF-8 JSON.
        name: The file's name without its suffix: the voice's name must be the same.
        hidden_size: H of the checkpoint; None: any.

    Raises:
        ValueError: a field is missing, unknown or wrong; the message begins with the field.
    """
    fields = _Fields(_read_object(content))
    fields.take("format", lambda value: value == FORMAT, f"{FORMAT}")
    fields.take("name", lambda value: value == name, f"the file's name without {SUFFIX}, {name!r}")
    check_name(name)
    kind: str = fields.one_of("kind", KINDS)
    languages = fields.list_of("languages", LANGUAGES.__contains__, " and ".join(LANGUAGES))
    aliases = fields.list_of(
        "aliases",
        lambda alias: _is_text(_ALIAS, alias) and alias not in RESERVED_NAMES,
        f"1 ... 64 printable characters, none of {', '.join(RESERVED_NAMES)}",
        default=[],
    )
    facts = {
        "name": name,
        "kind": kind,
        "language": languages[0] if len(languages) == 1 else "",
        "languages": languages,
        "gender": fields.one_of("gender", GENDERS, default="unknown"),
        "styles": fields.list_of("styles", _is_line, "texts of one line", default=[]),
        "description": fields.take("description", _is_line_or_empty, "one line"),
        "aliases": aliases,
        "auditioned": fields.take("auditioned", _is_bool, "true or false", default=False),
        "license": fields.take("license", _is_line, "one line"),
        "provenance": _provenance(fields, kind),
        "sha256": fields.take(
            "sha256", lambda value: _is_text(_SHA256, value), "64 hexadecimal digits"
        ),
    }
    voice = _voice(fields, name, kind, hidden_size)
    fields.expect_no_more()
    found = digest(voice.speaker_embedding, voice.audio_prompt_codes)
    if found != facts["sha256"]:
        raise ValueError(f"sha256: {facts['sha256']!r}; allowed: that of the values, {found!r}")
    return VoiceFile(voice, tuple(aliases), facts)


def _voice(fields: _Fields, name: str, kind: str, hidden_size: int | None) -> Voice:
    speaker = codes = None
    transcript = ""
    if kind == SPEAKER or SPEAKER in fields:
        speaker = fields.decode(SPEAKER, lambda string: decode_speaker(string, hidden_size))
    if kind == AUDIO_PROMPT:
        codes = fields.decode(AUDIO_PROMPT, decode_audio_prompt)
        # it stands in the model's prompt, where brackets begin control tokens
        transcript = fields.take(
            "transcript",
            lambda value: _is_line(value) and not set("[]") & set(value),
            "what the recording says, without square brackets",
        )
    return Voice(name, speaker, codes, transcript)


def _provenance(fields: _Fields, kind: str) -> dict[str, str]:
    needed = (*_PROVENANCE, "consent") if kind == AUDIO_PROMPT else _PROVENANCE
    texts: dict[str, str] = fields.take(
        "provenance",
        lambda value: (
            isinstance(value, dict)
            and len(value) <= _MAX_ITEMS
            and all(map(_is_line, [*value, *value.values()]))
        ),
        "an object of texts of one line",
    )
    for key in needed:
        if key not in texts:
            raise ValueError(f"provenance: has no {key!r}; allowed: at least {', '.join(needed)}")
    if not _DATE.fullmatch(texts["date"]):
        raise ValueError(f"provenance: date {texts['date']!r}; allowed: YYYY-MM-DD")
    return texts


class _Fields:
    """The fields of a file that are not yet taken."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._left = content

    def __contains__(self, field: str) -> bool:
        return field in self._left

    def take(
        self, field: str, is_allowed: Callable[[Any], bool], allowed: str, default: Any = None
    ) -> Any:
        """Return a field's value, or the default if there is one and the file has none."""
        if field not in self._left and default is not None:
            return default
        if field not in self._left:
            raise ValueError(f"{field}: is missing; allowed: {allowed}")
        value = self._left.pop(field)
        if not is_allowed(value):
            raise ValueError(f"{field}: {_shown(value)}; allowed: {allowed}")
        return value

    def one_of(self, field: str, values: tuple[str, ...], default: str | None = None) -> str:
        """Return a field that is one of some texts."""
        taken: str = self.take(field, values.__contains__, ", ".join(values), default)
        return taken

    def list_of(
        self,
        field: str,
        is_allowed: Callable[[Any], bool],
        allowed: str,
        default: list[str] | None = None,
    ) -> list[str]:
        """Return a field that is a list of different texts."""
        taken: list[str] = self.take(
            field,
            lambda value: (
                isinstance(value, list)
                and len(value) <= _MAX_ITEMS
                and all(isinstance(item, str) and is_allowed(item) for item in value)
                and len(set(value)) == len(value)
            ),
            f"a list of {allowed}, none twice",
            default,
        )
        return taken

    def decode(self, field: str, decoder: Callable[[str], _Value]) -> _Value:
        """Return what a string field stands for."""
        string = self.take(field, lambda value: isinstance(value, str), "a string")
        try:
            return decoder(string)
        except ValueError as error:
            raise ValueError(f"{field}: {error}") from error

    def expect_no_more(self) -> None:
        """Raise ValueError if a field is left."""
        for field in self._left:
            raise ValueError(
                f"{_sendable(field)}: unknown or not of this kind of voice; allowed: no such key"
            )


def _read_object(content: bytes) -> dict[str, Any]:
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"more than {MAX_FILE_BYTES} bytes")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not UTF-8 JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_line_or_empty(value: Any) -> bool:
    return _is_text(_LINE, value)


def _is_line(value: Any) -> bool:
    return _is_line_or_empty(value) and bool(value.strip())


def _sendable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."
