"""One request, from NumPy inputs to checked values. The only place that judges user input.

Does not know Triton, the model or the voices. Invariant: a SpeechRequest holds plain Python values
in their documented ranges, and its text holds no token that would change the prompt's structure.
"""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from chattts_text import Language, Switches
from chattts_text.switches import shown
from numpy.typing import NDArray

from . import tokens
from .options import Options

Latency = Literal["exact", "low"]
Encoding = Literal["f32", "pcm16", "wav_base64"]
Inputs = Mapping[str, NDArray[Any] | None]

LANGUAGES = ("auto", "zh", "en")
LATENCIES = ("exact", "low")
ENCODINGS = ("f32", "pcm16", "wav_base64")
DEFAULT_STYLE = "[speed_5]"
DEFAULT_MAX_NEW_TOKENS = 2048

_MAX_UTF8_BYTES = 4
_MAX_BYTES = {"voice": 65536, "style": 1024, "options": 65536}
_MAX_BYTES_OTHERS = 64

# Field: lowest, highest, whether the lowest itself is allowed.
_FLOAT_RANGES = {
    "temperature": ("0.00001", "2", True),
    "top_p": ("0", "1", False),
    "repetition_penalty": ("0.5", "2", True),
}
_INT_RANGES = {
    "top_k": (1, 626),
    "max_new_tokens": (1, DEFAULT_MAX_NEW_TOKENS),
    "min_new_tokens": (0, DEFAULT_MAX_NEW_TOKENS),
    "priority": (1, 3),
    "deadline_ms": (0, 2**31 - 1),
    "queue_deadline_ms": (0, 2**31 - 1),
    "seed": (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """One utterance to speak. Field names, units and ranges are those of config.pbtxt."""

    text: str
    """What to say, as the caller wrote it."""
    voice: str = ""
    """Registry name or speaker string; empty: the model's choice."""
    style: str = DEFAULT_STYLE
    """Control tokens before the text."""
    refine: bool = False
    """Rewrite the text with pauses first."""
    temperature: float = 0.3
    """0.00001 ... 2."""
    top_p: float = 0.7
    """0 < p <= 1."""
    top_k: int = 20
    """1 ... 626."""
    repetition_penalty: float = 1.05
    """0.5 ... 2."""
    min_new_tokens: int | None = None
    """Steps, 0 ... max_new_tokens; None: 0, more for a segment of a few letters."""
    max_new_tokens: int | None = None
    """Steps per segment, 1 ... 2048; None: 2048, or as many as the token model has room for."""
    seed: int | None = None
    """0 ... 2**64 - 1; None: to be drawn."""
    stream: bool = True
    """One response per chunk, or one in all."""
    latency: Latency = "exact"
    """Streamed samples equal the one-shot samples, or come sooner."""
    encoding: Encoding = "f32"
    """Form of the audio."""
    priority: int = 2
    """1 (first) ... 3 (last)."""
    deadline_ms: int = 0
    """Milliseconds; 0 = none."""
    queue_deadline_ms: int = 0
    """Milliseconds until the token model must have begun; 0 = none."""
    options: Options = field(default_factory=Options)
    """Rarely used switches."""
    switches: Switches = field(default_factory=Switches)
    """How the text is read: `language`, and what comes in `options` too."""

    @property
    def effective_latency(self) -> Latency:
        """What `latency` comes down to: what comes whole has nothing to gain from guesses."""
        return self.latency if self.stream and not self.options.level else "exact"

    @classmethod
    def from_inputs(
        cls, inputs: Inputs, max_text_characters: int, special_tokens: Sequence[str]
    ) -> "SpeechRequest":
        """Check the inputs and copy them out.

        Args:
            inputs: Input name to array of shape (1,), or None for an input that was not sent.
            max_text_characters: Longest text accepted.
            special_tokens: The control tokens of the vocabulary.

        Raises:
            ValueError: A value is missing, malformed or out of range. The message starts with the
                field's name and says what is allowed.
        """
        values = _read_numbers(inputs) | _read_switches(inputs) | _read_choices(inputs)
        options, switches = _read_options(inputs, values.pop("language", "auto"))
        text = _read_text(inputs, max_text_characters)
        if not (options.list_voices or options.health):
            _check_text(unicodedata.normalize("NFC", text), special_tokens)
        request = cls(text=text, options=options, switches=switches, **values)
        most = request.max_new_tokens or DEFAULT_MAX_NEW_TOKENS
        if (request.min_new_tokens or 0) > most:
            allowed = f"0 ... {most} (max_new_tokens)"
            raise ValueError(f"min_new_tokens: {request.min_new_tokens} is outside {allowed}")
        if options.retry_quality and request.stream:
            raise ValueError("options: retry_quality is True; needs stream false: one response")
        return request


def _read_numbers(inputs: Inputs) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, (low, high, closed) in _FLOAT_RANGES.items():
        number = _scalar(inputs, name, np.float32)
        if number is not None:
            above = number >= np.float32(low) if closed else number > np.float32(low)
            if not (above and number <= np.float32(high)):
                excluded = "" if closed else " (excluded)"
                raise ValueError(f"{name}: {number} is outside {low}{excluded} ... {high}")
            values[name] = float(number)
    for name, (lowest, highest) in _INT_RANGES.items():
        number = _scalar(inputs, name, np.uint64 if name == "seed" else np.int32)
        if number is not None:
            if not lowest <= int(number) <= highest:
                raise ValueError(f"{name}: {number} is outside {lowest} ... {highest}")
            values[name] = int(number)
    return values


def _read_switches(inputs: Inputs) -> dict[str, Any]:
    switches = {name: _scalar(inputs, name, np.bool_) for name in ("refine", "stream")}
    return {name: bool(value) for name, value in switches.items() if value is not None}


def _read_choices(inputs: Inputs) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, allowed in (("language", LANGUAGES), ("latency", LATENCIES), ("encoding", ENCODINGS)):
        choice = _string(inputs, name)
        if choice is None:
            continue
        if choice not in allowed:
            raise ValueError(f"{name}: {shown(choice)} is not allowed; allowed: {_list(allowed)}")
        values[name] = choice
    style = _string(inputs, "style")
    if style is not None:
        if not tokens.is_style(style):
            allowed_style = tokens.STYLE_TOKENS
            raise ValueError(f"style: {shown(style)} is not allowed; allowed: {allowed_style}")
        values["style"] = style
    voice = _string(inputs, "voice")
    return values if voice is None else values | {"voice": voice}


def _read_options(inputs: Inputs, language: Language) -> tuple[Options, Switches]:
    content = _string(inputs, "options") or "{}"
    try:
        values: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError("options: not JSON; allowed: one JSON object") from error
    if not isinstance(values, dict):
        raise ValueError("options: not a JSON object; allowed: one JSON object")
    return Options.from_json(values), Switches.from_options(values, language)


def _read_text(inputs: Inputs, max_characters: int) -> str:
    allowed = f"1 ... {max_characters} characters"
    text = _string(inputs, "text", max_bytes=max_characters * _MAX_UTF8_BYTES, allowed=allowed)
    if text is None:
        raise ValueError(f"text: missing; allowed: {allowed}")
    if len(text) > max_characters:
        raise ValueError(f"text: {len(text)} characters; allowed: {allowed}")
    return text


def _check_text(text: str, special_tokens: Sequence[str]) -> None:
    forbidden = (set(special_tokens) | set(tokens.BASE_TOKENS)) - set(tokens.TEXT_TOKENS)
    found = [token for token in forbidden if token in text]
    if found:
        first = min(found, key=text.index)
        allowed = _list(tokens.TEXT_TOKENS)
        raise ValueError(f"text: control token {first} is not allowed; allowed: {allowed}")
    if not any(unicodedata.category(character)[0] not in "ZC" for character in text):
        raise ValueError(f"text: {shown(text)} is blank; allowed: at least one visible character")


def _scalar(inputs: Inputs, name: str, dtype: type[np.generic]) -> Any:
    array = inputs.get(name)
    if array is None:
        return None
    if array.dtype != np.dtype(dtype):
        allowed = "bytes" if dtype is np.object_ else np.dtype(dtype).name
        raise ValueError(f"{name}: type {array.dtype} is not allowed; allowed: {allowed}")
    if array.shape != (1,):
        raise ValueError(f"{name}: shape {array.shape} is not allowed; allowed: (1,)")
    return array[0]


def _string(
    inputs: Inputs, name: str, max_bytes: int | None = None, allowed: str | None = None
) -> str | None:
    raw = _scalar(inputs, name, np.object_)
    if raw is None:
        return None
    if not isinstance(raw, bytes):
        raise ValueError(f"{name}: {type(raw).__name__} is not allowed; allowed: bytes in UTF-8")
    limit = max_bytes or _MAX_BYTES.get(name, _MAX_BYTES_OTHERS)
    if len(raw) > limit:
        raise ValueError(f"{name}: {len(raw)} bytes; allowed: {allowed or f'0 ... {limit} bytes'}")
    try:
        return raw.decode("utf-8", errors="strict")
    except UnicodeDecodeError as error:
        where = f"byte {error.start} is not UTF-8"
        raise ValueError(f"{name}: {where}; allowed: text in UTF-8") from error


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)
