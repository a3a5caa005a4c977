"""Requests with a fault, each of which must be refused with the error that names it."""

from __future__ import annotations

import http.client
import json
from random import Random
from typing import Any

from chattts_client import InvalidRequestError, SpeechOptions
from tritonclient.utils import InferenceServerException

from .callers import LIMIT_S, UNARY, Target, tensors
from .outcomes import Outcome, WrongAnswerError
from .utterances import Repertoire

_TEXT = "the server is working"
_TEXTS = (
    "",
    " \n ",
    "x" * 5001,
    "[laugh]",
    "[Stts]hello[Ptts]",
    "...!?",
    "<speak>one<audio/></speak>",
    "one<break time='11s'/>",
)
_OPTIONS: tuple[tuple[str, SpeechOptions], ...] = (
    ("voice", {"voice": "nobody"}),
    ("style", {"style": "slowly"}),
    ("temperature", {"temperature": float("nan")}),
    ("temperature", {"temperature": 3.0}),
    ("top_p", {"top_p": 0.0}),
    ("top_k", {"top_k": 0}),
    ("repetition_penalty", {"repetition_penalty": -1.0}),
    ("min_new_tokens", {"min_new_tokens": 61, "max_new_tokens": 60}),
    ("max_new_tokens", {"max_new_tokens": 0}),
    ("priority", {"priority": 9}),
    ("deadline_ms", {"deadline_ms": -1}),
    ("options", {"options": {"volume": 11}}),
    ("options", {"options": {"speed": 3}}),
    ("options", {"options": {"lexicon": {"": "x"}}}),
)
_SHAPES: tuple[dict[str, Any], ...] = (
    {"seed": [1, 2]},
    {"temperature": [[0.3]]},
    {"text": [b"one", b"two"]},
)
_BODIES: tuple[bytes, ...] = (
    b"",
    b"{",
    b"\xff\xfe",
    json.dumps({"inputs": []}).encode(),
    json.dumps(
        {"inputs": [{"name": "text", "shape": [1], "datatype": "FP32", "data": [1.0]}]}
    ).encode(),
    json.dumps(
        {"inputs": [{"name": "text", "shape": [2], "datatype": "BYTES", "data": ["a"]}]}
    ).encode(),
    json.dumps(
        {"inputs": [{"name": "volume", "shape": [1], "datatype": "INT32", "data": [11]}]}
    ).encode(),
)
_HTTP_ERRORS = range(400, 600)
"""Triton calls some of these bodies an internal error."""


def bad_text(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Send a text that cannot be spoken."""
    return _expect_refusal(target, chance, "text", chance.choice(_TEXTS), {})


def bad_option(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Send an option outside its range."""
    field, options = chance.choice(_OPTIONS)
    return _expect_refusal(target, chance, field, _TEXT, options)


def bad_shape(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Send a tensor of a wrong shape, which Triton refuses itself."""
    inputs = {"text": _TEXT, **chance.choice(_SHAPES)}
    try:
        target.raw.infer(UNARY, tensors(inputs), client_timeout=LIMIT_S)
    except InferenceServerException as error:
        if error.status() == "StatusCode.INVALID_ARGUMENT":
            return Outcome.REFUSED
        raise
    raise WrongAnswerError(f"taken: {inputs}")


def bad_body(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Send an HTTP body that is no request."""
    body = chance.choice(_BODIES)
    connection = http.client.HTTPConnection(target.http_url, timeout=LIMIT_S)
    try:
        connection.request("POST", f"/v2/models/{UNARY}/infer", body)
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    if response.status in _HTTP_ERRORS and "error" in json.loads(answer):
        return Outcome.REFUSED
    raise WrongAnswerError(f"{body!r} got status {response.status}")


def _expect_refusal(
    target: Target, chance: Random, field: str, text: str, options: SpeechOptions
) -> Outcome:
    client = chance.choice((target.grpc, target.http))
    try:
        client.synthesize(text, **options)
    except InvalidRequestError as error:
        if error.field == field:
            return Outcome.REFUSED
        raise
    raise WrongAnswerError(f"taken: {text[:20]!r}, {options}")
