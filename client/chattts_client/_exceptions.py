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
from dataclasses import dataclass
from typing import ClassVar


class ChatTTSError(Exception):
    """Any failure of a request; the message is one sentence for people."""

    default_code: ClassVar[str] = "UNKNOWN"
    default_hint: ClassVar[str] = ""
    is_worth_retrying: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        request_id: str = "",
        field: str | None = None,
        retry_after_s: float | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        """Name of the gRPC status, also for HTTP."""
        self.request_id = request_id
        """Names the request in the server's log; empty if none was sent."""
        self.retryable = self.is_worth_retrying
        """True: the same request may succeed later, and no audio was handed over yet."""
        self.field = field
        """The argument at fault, if there is one and it is known."""
        self.retry_after_s = retry_after_s
        """After how many seconds the server asks to try again; None: it did not say."""
        self.hint = hint or self.default_hint
        """One sentence: what to do about it."""


class InvalidRequestError(ChatTTSError):
    """An argument is wrong, or not allowed; sending the same again cannot help."""

    default_code = "INVALID_ARGUMENT"
    default_hint = "Change the argument that the message names."


class ServerUnavailableError(ChatTTSError):
    """The server cannot be reached, is not ready, or takes no more requests now."""

    default_code = "UNAVAILABLE"
    default_hint = "Try again later; health() says what is missing."
    is_worth_retrying = True


class RequestTimeoutError(ChatTTSError):
    """The time limit passed before the answer was complete."""

    default_code = "DEADLINE_EXCEEDED"
    default_hint = "Allow more time with timeout_s, or send a shorter text."


class RequestCancelledError(ChatTTSError):
    """The request was stopped before its end."""

    default_code = "CANCELLED"
    default_hint = "Send it again if its speech is still wanted."


class ServerError(ChatTTSError):
    """The server failed at a request that it had accepted."""

    default_code = "INTERNAL"
    default_hint = "Look into the server's log for the request id."


class ProtocolError(ChatTTSError):
    """The answer does not follow the model's contract: another version, or another service."""

    default_code = "DATA_LOSS"
    default_hint = "Check that url is a ChatTTS server, and its version with health()."


_ERRORS: dict[str, type[ChatTTSError]] = {
    "INVALID_ARGUMENT": InvalidRequestError,
    "OUT_OF_RANGE": InvalidRequestError,
    "UNAUTHENTICATED": InvalidRequestError,
    "PERMISSION_DENIED": InvalidRequestError,
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


@dataclass(frozen=True, slots=True)
class _Case:
    """What is known about the messages of one situation, whatever their status is."""

    pattern: re.Pattern[str]
    hint: str
    code: str = ""
    """The status that it should have had; empty: the one that it has."""
    field: str | None = None
    retryable: bool | None = None
    """None: as the kind of error says."""


def _case(
    pattern: str,
    hint: str,
    *,
    code: str = "",
    field: str | None = None,
    retryable: bool | None = None,
) -> _Case:
    return _Case(re.compile(pattern, re.IGNORECASE), hint, code, field, retryable)


# The first one that fits a message counts. Triton's own messages come with varying statuses.
_CASES = (
    _case(
        r"\bstub process .* is not healthy\b|\bhas died or hangs\b",
        "Try again: the server is replacing a process that died.",
        code="UNAVAILABLE",
    ),
    _case(
        r"\bhas no available versions\b",
        "Try again: the server is loading its models, or ending.",
        code="UNAVAILABLE",
    ),
    _case(r"\bis not ready\b", "Try again: the server is loading its models, or ending."),
    _case(
        r"\b(protocol|api) is restricted\b",
        "Pass the key that the server was started with in headers.",
        code="PERMISSION_DENIED",
        field="headers",
    ),
    _case(
        r"\bunknown model\b",
        "Check url: that server has no ChatTTS models; models() lists what it has.",
        code="NOT_FOUND",
    ),
    _case(
        r"\brequests are (running|waiting)\b",
        "Try again, or send fewer at once: the server has all the requests that it takes.",
    ),
    _case(
        r"\bis shutting down\b|\bis starting or stopping\b",
        "Try again, or ask another server: this one is ending or starting.",
    ),
    _case(
        r"certificate[_ ]verify[_ ]failed|handshake failed|\[ssl\b|\bssl_error",
        "Check tls: the server is not encrypted, or its certificate is not trusted.",
        retryable=False,
    ),
    _case(
        r"\bdns resolution failed\b|\bname or service not known\b|\bname resolution\b"
        r"|\bdomain name not found\b|\bcannot connect to host \S+ .*\bdns\b",
        "Check the host in url: its name is not known here.",
    ),
    _case(
        r"\bconnection refused\b|\bconnect call failed\b",
        "Check url, and that the server runs: nothing listens there.",
    ),
    _case(
        r"\bsocket closed\b|\bconnection reset\b|\bclosed connection without response\b",
        "Try again; if it stays so, check the port in url, and whether it needs tls.",
    ),
)
# The server's messages about an argument start with its name and a colon.
_FIELD = re.compile(r"([a-z][a-z0-9_]*): ")
# Triton's message where a version was named that is not there, or on its way out.
_NOT_SERVED = re.compile(r"Request for unknown model: '\w+' version (\d+) is not \w")
_CANCELLED = re.compile(r"\bcancell?ed\b", re.IGNORECASE)
_RETRY = re.compile(r"\btry again in (?:(\d+(?:\.\d+)?) s\b|(a second|a few seconds)\b)")
_IN_WORDS = {"a second": 1.0, "a few seconds": 3.0}


def error_from_status(code: str, message: str, request_id: str) -> ChatTTSError:
    """The error for a gRPC status name; an unlisted status is a `ServerError`."""
    case = next((case for case in _CASES if case.pattern.search(message)), None)
    hint = case.hint if case else ""
    field = case.field if case else None
    code = (case.code if case else "") or code
    if match := _NOT_SERVED.match(message):
        code, message = "INVALID_ARGUMENT", f"model_version: {match.group(1)} is not served"
        hint = "Name a version that models() lists, or none for the highest."
    kind = _ERRORS.get(code, ServerError)
    if kind is InvalidRequestError and field is None:
        field = _field(code, message)
        hint = hint or ("Check the credentials in headers." if field == "headers" else "")
    error = kind(
        message,
        code=code,
        request_id=request_id,
        field=field,
        retry_after_s=_retry_after_s(message),
        hint=hint,
    )
    if case and case.retryable is not None:
        error.retryable = case.retryable
    return error


def _field(code: str, message: str) -> str | None:
    if code in {"UNAUTHENTICATED", "PERMISSION_DENIED"}:
        return "headers"
    match = _FIELD.match(message)
    return match.group(1) if match else None


def _retry_after_s(message: str) -> float | None:
    match = _RETRY.search(message)
    if not match:
        return None
    return float(match.group(1)) if match.group(1) else _IN_WORDS[match.group(2)]


def error_in_stream(message: str, request_id: str) -> ChatTTSError:
    """The error for a message that begins with Triton's name of the status, as CODE: text.

    Triton's own messages have no such beginning; their status is unknown.
    """
    name, separator, text = message.partition(": ")
    if separator and name in _TRITON_CODES:
        return error_from_status(_TRITON_CODES[name], text, request_id)
    return error_from_status("UNKNOWN", message, request_id)


def too_late(request_id: str = "") -> RequestTimeoutError:
    """The error of a caller's own time limit."""
    message = "no complete answer within the time limit"
    return RequestTimeoutError(message, request_id=request_id)


def closed(request_id: str = "") -> RequestCancelledError:
    """The error of whoever waits for what this side closes."""
    message = "the call was closed before its answer was complete"
    return RequestCancelledError(message, request_id=request_id)


def no_http(what: object, request_id: str = "") -> ProtocolError:
    """The error of an answer that is not HTTP, or not Triton's."""
    hint = "Name the HTTP port in url, 8000 by default, or pass transport='grpc'."
    return ProtocolError(f"not an HTTP port of Triton: {what}", request_id=request_id, hint=hint)


def code_from_http(status: int, message: str) -> str:
    """The gRPC status name for an HTTP status.

    Triton answers 400 for cancelled requests too; only their message tells them apart.
    """
    code = _CODES.get(status, "UNKNOWN")
    if status == 400 and not _FIELD.match(message) and _CANCELLED.search(message):
        return "CANCELLED"
    return code


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One kind of error, for tables."""

    name: str
    """Of the class."""
    codes: tuple[str, ...]
    """Statuses that become this kind; "other" is every status that no kind names."""
    retryable: bool
    """Whether the same request may succeed later."""
    when: str
    """One sentence."""
    hint: str
    """What to do about it, where the error itself does not know better."""


def error_table() -> tuple[ErrorRow, ...]:
    """Every kind of error that a call raises, in the order of the tree."""
    return tuple(_row(kind) for kind in ChatTTSError.__subclasses__())


def _row(kind: type[ChatTTSError]) -> ErrorRow:
    codes = [code for code, error in _ERRORS.items() if error is kind]
    if kind is ServerError:
        codes = ["other"]
    when = (kind.__doc__ or "").partition("\n")[0]
    return ErrorRow(kind.__name__, tuple(codes), kind.is_worth_retrying, when, kind.default_hint)
