"""One HTTP request with the standard library, within a time limit for all of it.

For what takes no tensors: questions about the server, and its metrics.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

from ._answers import read_json_facts
from ._exceptions import (
    ChatTTSError,
    ProtocolError,
    RequestTimeoutError,
    code_from_http,
    error_from_status,
)
from ._json import JsonObject, get, parse_object
from ._protocol import HEALTH_JSON, STREAMING_MODEL, Question
from ._settings import Endpoint, Tls

_YES, _NO, _NOT_FOUND = 200, 400, 404


def fetch(
    endpoint: Endpoint, path: str, body: bytes | None, timeout_s: float | None
) -> tuple[int, bytes]:
    """Send one request on a connection of its own and return the status and the whole answer.

    Args:
        endpoint: where to; its headers are sent.
        path: begins with a slash.
        body: JSON to POST; None = GET.
        timeout_s: seconds for everything but the name's resolution; None = no limit.

    Raises:
        ServerUnavailableError: no connection.
        RequestTimeoutError: no complete answer within the limit.
        ProtocolError: the answer is not HTTP.
    """
    connection = _connection(endpoint, timeout_s)
    with _Limit(timeout_s) as limit, contextlib.closing(connection):
        try:
            connection.connect()
            limit.watch(connection.sock)
            connection.request(
                "GET" if body is None else "POST", path, body, dict(endpoint.headers)
            )
            response = connection.getresponse()
            answer = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            if limit.has_passed or isinstance(error, TimeoutError):
                raise RequestTimeoutError("no answer within the time limit") from error
            if isinstance(error, (OSError, http.client.IncompleteRead)):
                raise error_from_status("UNAVAILABLE", f"no connection: {error}", "") from error
            raise ProtocolError(f"not an HTTP answer: {error!r}") from error
        if limit.has_passed:  # cut, which looks like the end of an answer without a length
            raise RequestTimeoutError("no answer within the time limit")
        return answer


def ask(endpoint: Endpoint, asked: Question, timeout_s: float | None) -> JsonObject:
    """Ask about the server or a model; the answer has the keys of `Question`.

    Raises:
        ChatTTSError: see its subclasses.
    """
    status, content = fetch(
        endpoint, _path(asked), HEALTH_JSON if asked.about == "facts" else None, timeout_s
    )
    if asked.about in ("live", "ready") and status in (_YES, _NO):
        return {asked.about: status == _YES}
    if status != _YES:
        raise error_from_answer(status, content)
    return read_json_facts(content) if asked.about == "facts" else parse_object(content)


def error_from_answer(status: int, content: bytes) -> ChatTTSError:
    """The error of an answer whose status is not 200; Triton's say why, as JSON."""
    try:
        message = get(parse_object(content), "error", str)
    except ProtocolError:
        message = f"HTTP status {status}: {content[:200].decode(errors='replace')}"
        if status == _NOT_FOUND:
            return ProtocolError(f"not a Triton server: {message}")
    return error_from_status(code_from_http(status, message), message, "")


def _path(asked: Question) -> str:
    if asked.about == "live":
        return "/v2/health/live"
    if asked.about == "server":
        return "/v2"
    version = f"/versions/{asked.version}" if asked.version else ""
    # the model that streams: the unary one would let a question wait for speech
    model = f"/v2/models/{asked.model or STREAMING_MODEL}{version}"
    return model + {"model": "", "ready": "/ready", "facts": "/generate"}[asked.about]


def ssl_context(tls: Tls, create: Callable[..., Any] = ssl.create_default_context) -> Any:
    """The certificates of `tls` for Python's ssl, or for what has another `create`.

    Raises:
        OSError: a file cannot be read, or holds no certificate.
    """
    context = create(cafile=tls.ca_file)
    if tls.cert_file is not None:
        context.load_cert_chain(tls.cert_file, tls.key_file)
    return context


class _Limit:
    """Cuts a connection after some seconds; its own limit is for each read, and bytes trickle."""

    def __init__(self, timeout_s: float | None) -> None:
        self._end_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._timer: threading.Timer | None = None

    @property
    def has_passed(self) -> bool:
        return self._end_s is not None and time.monotonic() >= self._end_s

    def watch(self, connection: socket.socket) -> None:
        """Cut this one."""
        if self._end_s is not None:
            left_s = max(0.0, self._end_s - time.monotonic())
            self._timer = threading.Timer(left_s, _cut, (connection,))
            self._timer.start()

    def __enter__(self) -> _Limit:
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # closed already
        # not the method of an encrypted socket: that one takes its state away from the reader
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _connection(endpoint: Endpoint, timeout_s: float | None) -> http.client.HTTPConnection:
    host, port = endpoint.host, endpoint.port
    if endpoint.tls is None:
        return http.client.HTTPConnection(host, port, timeout=timeout_s)
    context = ssl_context(endpoint.tls)
    return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
