"""Statuses become errors in one place; each error says what a caller may do."""

from __future__ import annotations

import pickle

import chattts_client
import pytest
from chattts_client import (
    ChatTTSError,
    InvalidRequestError,
    ProtocolError,
    RequestCancelledError,
    RequestTimeoutError,
    ServerError,
    ServerUnavailableError,
    _exceptions,
)
from chattts_client._exceptions import (
    code_from_http,
    error_from_status,
    error_in_stream,
    error_table,
)

STATUSES: list[tuple[str, type[ChatTTSError]]] = [
    ("INVALID_ARGUMENT", InvalidRequestError),
    ("OUT_OF_RANGE", InvalidRequestError),
    ("UNAVAILABLE", ServerUnavailableError),
    ("RESOURCE_EXHAUSTED", ServerUnavailableError),
    ("DEADLINE_EXCEEDED", RequestTimeoutError),
    ("CANCELLED", RequestCancelledError),
    ("DATA_LOSS", ProtocolError),
    ("INTERNAL", ServerError),
    ("NOT_FOUND", ServerError),
    ("UNAUTHENTICATED", InvalidRequestError),
    ("PERMISSION_DENIED", InvalidRequestError),
]


@pytest.mark.parametrize(("code", "kind"), STATUSES)
def test_each_status_has_its_error(code: str, kind: type[ChatTTSError]) -> None:
    error = error_from_status(code, "text: is empty", "r1")
    assert type(error) is kind
    assert (error.code, error.request_id, str(error)) == (code, "r1", "text: is empty")


@pytest.mark.parametrize(
    "message",
    [
        "failed: Stub process 'chattts_unary_0_1' is not healthy.",
        "Request for unknown model: 'chattts' has no available versions",
    ],
)
@pytest.mark.parametrize("code", ["INTERNAL", "UNKNOWN", "INVALID_ARGUMENT"])
def test_a_model_without_a_living_process_is_unavailable(code: str, message: str) -> None:
    error = error_from_status(code, message, "r1")
    assert type(error) is ServerUnavailableError
    assert error.code == "UNAVAILABLE"


@pytest.mark.parametrize(("code", "kind"), STATUSES)
def test_only_an_unavailable_server_is_worth_another_try(
    code: str, kind: type[ChatTTSError]
) -> None:
    error = error_from_status(code, "", "")
    assert error.retryable == (kind is ServerUnavailableError)


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        ("INVALID_ARG: top_k: 0 is outside", "INVALID_ARGUMENT", "top_k: 0 is outside"),
        ("UNAVAILABLE: 64 requests are running", "UNAVAILABLE", "64 requests are running"),
        ("INTERNAL: ", "INTERNAL", ""),
        (
            "Request for unknown model: 'chattts'",
            "NOT_FOUND",
            "Request for unknown model: 'chattts'",
        ),
        ("words of Triton's own", "UNKNOWN", "words of Triton's own"),
        ("UNAVAILABLE", "UNKNOWN", "UNAVAILABLE"),
    ],
)
def test_an_error_in_a_stream_begins_with_its_status(message: str, code: str, text: str) -> None:
    error = error_in_stream(message, "r1")
    assert (error.code, str(error), error.request_id) == (code, text, "r1")


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("temperature: 3.0 is outside 0.00001 ... 2", "temperature"),
        ("top_p: nan is outside 0 ... 1", "top_p"),
        ("unexpected shape for input 'text'", None),
    ],
)
def test_a_request_error_names_the_field(message: str, field: str | None) -> None:
    error = error_from_status("INVALID_ARGUMENT", message, "")
    assert isinstance(error, InvalidRequestError)
    assert error.field == field


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("64 requests are running; try again in 1 s", 1.0),
        ("256 requests are waiting already; try again in a second", 1.0),
        ("chattts_gpt is not ready; try again in a few seconds", 3.0),
        ("the server is shutting down; try another one", None),
    ],
)
def test_the_servers_hint_when_to_try_again_is_read(message: str, seconds: float | None) -> None:
    error = error_in_stream(f"UNAVAILABLE: {message}", "r1")
    assert (error.retry_after_s, error.retryable) == (seconds, True)


@pytest.mark.parametrize(
    ("code", "message", "word"),
    [
        ("UNAVAILABLE", "64 requests are running; try again in 1 s", "fewer"),
        ("UNAVAILABLE", "failed to connect: Connection refused", "url"),
        ("UNAVAILABLE", "DNS resolution failed for nowhere:8001", "host"),
        ("UNAVAILABLE", "Ssl handshake failed: CERTIFICATE_VERIFY_FAILED", "tls"),
        ("UNAVAILABLE", "This protocol is restricted, expecting header 'key'", "headers"),
        ("UNAUTHENTICATED", "no token", "headers"),
        ("NOT_FOUND", "Request for unknown model: 'chattts' is not found", "url"),
        ("INVALID_ARGUMENT", "model_version: 7 is not there", "argument"),
        ("INTERNAL", "a fault", "log"),
        ("DEADLINE_EXCEEDED", "Deadline Exceeded", "timeout_s"),
    ],
)
def test_the_hint_says_what_to_do(code: str, message: str, word: str) -> None:
    hint = error_from_status(code, message, "").hint
    assert word in hint
    assert hint.endswith(".")
    assert hint.count(". ") == 0


def test_what_headers_or_tls_must_mend_is_not_tried_again() -> None:
    restricted = error_from_status("UNAVAILABLE", "This protocol is restricted, expecting", "")
    assert isinstance(restricted, InvalidRequestError)
    assert (restricted.field, restricted.retryable) == ("headers", False)
    handshake = error_from_status("UNAVAILABLE", "Ssl handshake failed: SSL_ERROR_SSL", "")
    assert isinstance(handshake, ServerUnavailableError)
    assert not handshake.retryable


def test_the_table_has_every_kind_of_error() -> None:
    rows = {row.name: row for row in error_table()}
    assert set(rows) == {kind.__name__ for kind in ChatTTSError.__subclasses__()}
    assert rows["ServerUnavailableError"].codes == ("UNAVAILABLE", "RESOURCE_EXHAUSTED")
    assert [row.name for row in rows.values() if row.retryable] == ["ServerUnavailableError"]
    assert all(row.when.endswith(".") and row.hint.endswith(".") for row in rows.values())
    assert sum(row.codes == ("other",) for row in rows.values()) == 1


def test_a_version_that_is_not_served_is_a_wrong_request() -> None:
    triton = "Request for unknown model: 'chattts' version 7 is not "
    for error in (
        error_in_stream(triton + "found", "r1"),
        error_from_status("NOT_FOUND", triton + "found", "r1"),
        error_from_status("UNAVAILABLE", triton + "at ready state", "r1"),
    ):
        assert isinstance(error, InvalidRequestError)
        assert (error.field, str(error)) == ("model_version", "model_version: 7 is not served")


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "text: is empty", "INVALID_ARGUMENT"),
        (400, "request was cancelled", "CANCELLED"),
        (400, "style: 'cancelled' is no control token", "INVALID_ARGUMENT"),
        (404, "unknown model", "NOT_FOUND"),
        (500, "failure", "INTERNAL"),
        (503, "the queue is full", "UNAVAILABLE"),
        (504, "too late", "DEADLINE_EXCEEDED"),
        (418, "teapot", "UNKNOWN"),
    ],
)
def test_http_statuses_have_the_same_names(status: int, message: str, code: str) -> None:
    assert code_from_http(status, message) == code


def test_the_drawn_tree_names_every_error() -> None:
    errors = {
        name
        for name in chattts_client.__all__
        if isinstance(kind := getattr(chattts_client, name), type) and issubclass(kind, Exception)
    }
    assert _exceptions.__doc__ is not None
    drawn = {word for word in _exceptions.__doc__.split() if word.endswith("Error")}
    assert drawn == errors
    assert all(issubclass(getattr(chattts_client, name), ChatTTSError) for name in errors)


def test_an_error_survives_a_process_boundary() -> None:
    error = pickle.loads(pickle.dumps(error_from_status("INVALID_ARGUMENT", "seed: bad", "r1")))
    assert (str(error), error.field, error.request_id) == ("seed: bad", "seed", "r1")
    assert error.hint
