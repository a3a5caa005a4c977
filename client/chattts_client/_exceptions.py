"""Everything the client raises about a request, and the one place where statuses become errors.

ChatTTSError
├── InvalidRequestError     the request itself is wrong: change it (`field` names the argument)
├── ServerUnavailableError  nobody answers, or the server is full: try again later
├── RequestTimeoutError     no complete answer within the time limit
├── RequestCancelledError   stopped, by this side or by the server
├── ServerError             the server failed at a good request
└── ProtocolError           the answer is not what this client understands
"""

from __future__ import annotations

import re
from typing import ClassVar


class ChatTTSError(Exception):
    """Any failure of a request; the message is one sentence for people."""

    default_code: ClassVar[str] = "UNKNOWN"
    is_worth_retrying: ClassVar[bool] = False

    def __init__(self, message: str, *, code: str = "", request_id: str = "") -> None:
        super().__init__(message)
        self.code = code or self.default_code
        """Name of the gRPC status, also for HTTP."""
        self.request_id = request_id
        """Names the request in the server's log; empty if none was sent."""
        self.retryable = self.is_worth_retrying
        """True: the same request may succeed later, and no audio was handed over yet."""


class InvalidRequestError(ChatTTSError):
    """An argument is wrong; sending it again cannot help."""

    default_code = "INVALID_ARGUMENT"

    def __init__(
        self, message: str, *, field: str | None = None, code: str = "", request_id: str = ""
    ) -> None:
        super().__init__(message, code=code, request_id=request_id)
        self.field = field
        """The argument at fault, if it is known."""


class ServerUnavailableError(ChatTTSError):
    """The server cannot be reached, is not ready, or takes no more requests now."""

    default_code = "UNAVAILABLE"
    is_worth_retrying = True


class RequestTimeoutError(ChatTTSError):
    """The time limit passed before the answer was complete."""

    default_code = "DEADLINE_EXCEEDED"


class RequestCancelledError(ChatTTSError):
    """The request was stopped before its end."""

    default_code = "CANCELLED"


class ServerError(ChatTTSError):
    """The server failed; its log tells more under the request id."""

    default_code = "INTERNAL"


class ProtocolError(ChatTTSError):
    """The answer does not follow the model's contract: another version, or another service."""

    default_code = "DATA_LOSS"


_ERRORS: dict[str, type[ChatTTSError]] = {
    "INVALID_ARGUMENT": InvalidRequestError,
    "OUT_OF_RANGE": InvalidRequestError,
    "UNAVAILABLE": ServerUnavailableError,
    "RESOURCE_EXHAUSTED": ServerUnavailableError,
    "DEADLINE_EXCEEDED": RequestTimeoutError,
    "CANCELLED": RequestCancelledError,
    "DATA_LOSS": ProtocolError,
}
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_TRITON_CODES = {
    "INVALID_ARG": "INVALID_ARGUMENT",
    "UNSUPPORTED": "UNIMPLEMENTED",
    "NOT_FOUND": "NOT_FOUND",
    "ALREADY_EXISTS": "ALREADY_EXISTS",
    "UNAVAILABLE": "UNAVAILABLE",
    "CANCELLED": "CANCELLED",
    "INTERNAL": "INTERNAL",
    "UNKNOWN": "UNKNOWN",
}
# The server's messages about an argument start with its name and a colon.
_FIELD = re.compile(r"([a-z][a-z0-9_]*): ")
# Triton's messages where the process of a model has died or hangs, and where the model is loading
# or, at the end of a drain, unloaded; their status varies.
_ABSENT = re.compile(r"\bStub process .* is not healthy\b|\bhas no available versions\b")
# Triton's message where a version was named that is not there, or on its way out.
_NOT_SERVED = re.compile(r"Request for unknown model: '\w+' version (\d+) is not \w")
_CANCELLED = re.compile(r"\bcancell?ed\b", re.IGNORECASE)


def error_from_status(code: str, message: str, request_id: str) -> ChatTTSError:
    """The error for a gRPC status name; an unlisted status is a `ServerError`."""
    if _ABSENT.search(message):
        code = "UNAVAILABLE"
    if match := _NOT_SERVED.match(message):
        code, message = "INVALID_ARGUMENT", f"model_version: {match.group(1)} is not served"
    kind = _ERRORS.get(code, ServerError)
    if kind is InvalidRequestError:
        match = _FIELD.match(message)
        field = match.group(1) if match else None
        return InvalidRequestError(message, field=field, code=code, request_id=request_id)
    return kind(message, code=code, request_id=request_id)


def error_in_stream(message: str, request_id: str) -> ChatTTSError:
    """The error for a message that begins with Triton's name of the status, as CODE: text.

    Triton's own messages have no such beginning; their status is unknown.
    """
    name, separator, text = message.partition(": ")
    if separator and name in _TRITON_CODES:
        return error_from_status(_TRITON_CODES[name], text, request_id)
    return error_from_status("UNKNOWN", message, request_id)


def code_from_http(status: int, message: str) -> str:
    """The gRPC status name for an HTTP status.

    Triton answers 400 for cancelled requests too; only their message tells them apart.
    """
    code = _CODES.get(status, "UNKNOWN")
    if status == 400 and not _FIELD.match(message) and _CANCELLED.search(message):
        return "CANCELLED"
    return code
