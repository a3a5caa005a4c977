"""Requests to tensors, for gRPC and HTTP alike, and the names of all tensors.

With _answers.py the only file that knows them; `config.pbtxt` is the contract and a test compares
the two.
"""

from __future__ import annotations

import difflib
import json
import math
import reprlib
import uuid
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._exceptions import InvalidRequestError

STREAMING_MODEL: Final = "chattts"
"""Many responses per request; gRPC only."""
UNARY_MODEL: Final = "chattts_unary"
"""The same inputs and outputs, one response per request; what HTTP needs."""
MODELS: Final = (STREAMING_MODEL, UNARY_MODEL, "chattts_gpt", "chattts_vocoder")
"""All models of a server, those behind included."""
CONTRACT: Final = 1
"""The version of inputs, outputs and metadata that this client is written for."""

INPUTS: Final[Mapping[str, str]] = {
    "text": "BYTES",
    "voice": "BYTES",
    "language": "BYTES",
    "style": "BYTES",
    "refine": "BOOL",
    "temperature": "FP32",
    "top_p": "FP32",
    "top_k": "INT32",
    "repetition_penalty": "FP32",
    "min_new_tokens": "INT32",
    "max_new_tokens": "INT32",
    "seed": "UINT64",
    "stream": "BOOL",
    "latency": "BYTES",
    "encoding": "BYTES",
    "priority": "INT32",
    "deadline_ms": "INT32",
    "queue_deadline_ms": "INT32",
    "options": "BYTES",
}
"""Input name to data type; each has the shape [1]."""
OUTPUTS: Final[Mapping[str, str]] = {
    "audio": "FP32",
    "audio_bytes": "BYTES",
    "sample_rate": "INT32",
    "is_final": "BOOL",
    "metadata": "BYTES",
}
"""Output name to data type; each has the shape [1], but for `audio`, which is [S]."""
OWN_INPUTS: Final = frozenset({"text", "stream", "encoding"})
"""Inputs that the client sets itself: they are not options. Samples travel as float32."""
MODEL_VERSION: Final = "model_version"
"""The one option that is no input: Triton itself chooses the version of the model."""

HEALTH_JSON: Final = json.dumps({"text": "", "options": json.dumps({"health": True})}).encode()
"""The question of `health_request` as Triton's HTTP `/generate` takes it."""

CODE_IN_ERRORS: Final = "code_in_errors"
"""Request parameter: begin error messages with the status, which a stream does not carry."""

STOP_KEY: Final = "stop_key"
STOP: Final = "stop"
"""Request parameters: a secret name of a request, and in another request the name of the one to
stop."""

STOP_LIMIT_S: Final = 2.0
"""How long the server may take to end a stopped request; then the call is cancelled."""

DEADLINE_MARGIN_S: Final = 1.0
"""How long the server works on after the caller's time limit, so that the limit is what is seen."""

_OTHER_ANSWERS: Final[Mapping[str, tuple[str, str]]] = {
    "list_voices": ("voices", "voices"),
    "dry_run": ("normalize", "normalize"),
    "health": ("health", "health"),
}
"""Options that a server answers otherwise than by speech: method and command that ask for it."""
SWITCHES: Final = frozenset(
    {"speed", "trim", "level", "carry_over", "retry_quality", "split", "normalize", "input_format"}
    | {"on_unsupported", "links", "footnotes", "telephone_one", "stages", "lexicon"}
)
"""Keys of the input `options` that shape speech."""
_INTEGERS: Final[Mapping[str, type[np.integer[Any]]]] = {"INT32": np.int32, "UINT64": np.uint64}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InputTensor:
    """One input of a request."""

    name: str
    """A key of INPUTS."""
    data: NDArray[Any]
    """(1,); BYTES as an object array of bytes."""

    @property
    def datatype(self) -> str:
        """The KServe name of the data type."""
        return INPUTS[self.name]


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """One request, ready for either transport."""

    request_id: str
    """Sent with the request; the server's log and metadata carry it."""
    tensors: tuple[InputTensor, ...]
    """Inputs that are not left to their defaults."""
    model_version: str = ""
    """Which version of the model is asked; empty: the highest that is served."""

    @property
    def is_repeatable(self) -> bool:
        """Whether it names all that decides the samples: asked twice, it is answered the same."""
        return bool(self.model_version) and any(tensor.name == "seed" for tensor in self.tensors)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a server or a model; the answer is an object with one key or more.

    live: `live`. server: `version` of Triton. model: `versions` that are served. ready: `ready`.
    facts: what the speech model says once all models behind have answered.
    """

    about: Literal["live", "server", "model", "ready", "facts"]
    model: str = ""
    """For model and ready."""
    version: str = ""
    """For ready and facts; empty: the highest."""


def speech_request(text: str, options: Mapping[str, object], *, stream: bool) -> SpeechRequest:
    """Encode a text and its options (the keys of `SpeechOptions`).

    Args:
        text: what to say.
        options: values of the other inputs; None counts as not given.
        stream: false asks for one response with the whole utterance.

    Raises:
        InvalidRequestError: a value has the wrong type or does not fit the input's data type.
        TypeError: an unknown option.
    """
    known = INPUTS.keys() - OWN_INPUTS | {MODEL_VERSION}
    for name in options:
        if name not in known:
            raise TypeError(f"unknown option {name!r}{_meant(name, known)}")
    given = {name: value for name, value in options.items() if value is not None}
    model_version = _version(given.pop(MODEL_VERSION, ""))
    for key, (method, command) in _OTHER_ANSWERS.items():
        if key in _keys(given.get("options")):
            message = f"options: {key} is no speech; use {method}() or the command `{command}`"
            raise InvalidRequestError(message, field="options")
    values = {"text": text, "stream": stream, **given}
    tensors = tuple(_encode(name, value) for name, value in values.items())
    return SpeechRequest(_new_request_id(), tensors, model_version)


def _meant(name: str, known: Set[str]) -> str:
    near = difflib.get_close_matches(name, known | SWITCHES, n=1)
    if not near:
        return ""
    place = f"options={{{near[0]!r}: ...}}" if near[0] in SWITCHES else repr(near[0])
    return f"; did you mean {place}?"


def _version(value: object) -> str:
    version = _expect(MODEL_VERSION, value, str)
    if version and not version.isdecimal():
        message = f"{MODEL_VERSION}: {version!r} is not a whole number"
        raise InvalidRequestError(message, field=MODEL_VERSION)
    return version


def _keys(options: object) -> frozenset[object]:
    return frozenset(options) if isinstance(options, Mapping) else frozenset()


def voices_request(model_version: str = "") -> SpeechRequest:
    """Encode the request for the list of voices."""
    return _switch_request("list_voices", model_version)


def health_request(model_version: str = "") -> SpeechRequest:
    """Encode the question whether the models behind answer."""
    return _switch_request("health", model_version)


def _switch_request(switch: str, model_version: str) -> SpeechRequest:
    text, options = _encode("text", ""), _encode("options", {switch: True})
    return SpeechRequest(_new_request_id(), (text, options), _version(model_version))


def dry_run_request(text: str, options: Mapping[str, object]) -> SpeechRequest:
    """Encode the question how a text would be spoken; `options` as in `speech_request`.

    Raises:
        InvalidRequestError: as in `speech_request`.
        TypeError: an unknown option.
    """
    request = speech_request(text, options, stream=False)
    given = options.get("options")
    switches = {**given, "dry_run": True} if isinstance(given, Mapping) else {"dry_run": True}
    others = (tensor for tensor in request.tensors if tensor.name != "options")
    return replace(request, tensors=(*others, _encode("options", switches)))


def with_deadline(request: SpeechRequest, timeout_s: float | None) -> SpeechRequest:
    """Let the server stop soon after the caller has given up, unless a deadline is set already."""
    if timeout_s is None or any(tensor.name == "deadline_ms" for tensor in request.tensors):
        return request
    deadline_ms = math.ceil(min((timeout_s + DEADLINE_MARGIN_S) * 1000, np.iinfo(np.int32).max))
    tensors = (*request.tensors, _encode("deadline_ms", deadline_ms))
    return replace(request, tensors=tensors)


def _new_request_id() -> str:
    return uuid.uuid4().hex


def _encode(name: str, value: object) -> InputTensor:
    datatype = INPUTS[name]
    if datatype == "BYTES":
        data = np.array([_encode_bytes(name, value)], dtype=np.object_)
    elif datatype == "BOOL":
        data = np.array([_expect(name, value, bool)])
    elif datatype == "FP32":
        data = np.array([_encode_float(name, value)])
    else:
        data = np.array([_encode_integer(name, value, datatype)])
    return InputTensor(name, data)


def _encode_bytes(name: str, value: object) -> bytes:
    text = _encode_options(value) if name == "options" else _expect(name, value, str)
    try:
        return text.encode()
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise InvalidRequestError(f"{name}: {error}", field=name) from error


def _encode_options(value: object) -> str:
    if not isinstance(value, Mapping):
        message = f"options: {reprlib.repr(value)} is not a mapping, such as {{'split': False}}"
        raise InvalidRequestError(message, field="options")
    for key in value:
        if not isinstance(key, str):
            raise InvalidRequestError(f"options: the key {key!r} is not a str", field="options")
    try:
        return json.dumps(dict(value), ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequestError(f"options: {error}", field="options") from error


def _plain(value: object) -> object:
    """What JSON has for a value that it does not know by itself."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{reprlib.repr(value)} is neither text, a number, a list nor a mapping")


def _encode_float(name: str, value: object) -> np.float32:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidRequestError(f"{name}: {reprlib.repr(value)} is not a number", field=name)
    try:
        with np.errstate(over="ignore"):  # what overflows becomes infinite: the server refuses it
            return np.float32(value)
    except OverflowError:  # an int beyond every float
        return np.float32(math.inf if value > 0 else -math.inf)


def _encode_integer(name: str, value: object, datatype: str) -> np.integer[Any]:
    kind = _INTEGERS[datatype]
    limits = np.iinfo(kind)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InvalidRequestError(
            f"{name}: {reprlib.repr(value)} is not a whole number", field=name
        )
    number = int(value)
    if not limits.min <= number <= limits.max:
        message = f"{name}: {number} is outside {limits.min} ... {limits.max}"
        raise InvalidRequestError(message, field=name)
    return kind(number)


def _expect(name: str, value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        message = f"{name}: {reprlib.repr(value)} is not a {kind.__name__}"
        raise InvalidRequestError(message, field=name)
    return value
