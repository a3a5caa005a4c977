"""HTTP with the standard library: kept connections, and a time limit for all of a request.

The libraries that tritonclient uses limit each read instead, and keep a loop for each thread.
"""

from __future__ import annotations

import contextlib
import http.client
import reprlib
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from ._exceptions import (
    ChatTTSError,
    ProtocolError,
    closed,
    code_from_http,
    error_from_status,
    no_http,
    too_late,
)
from ._json import get, parse_object
from ._settings import Endpoint
from ._tls import ssl_context

OK: Final = 200
_NOT_FOUND, _WRONG_METHOD = 404, 405
_NO_SUCH_PATH = "Not Found"
"""What other ports of Triton say, such as that of the metrics: an unknown model has more words."""
_MAX_IDLE = 32
"""Connections kept for later requests."""
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Answer:
    """One whole response."""

    status: int
    """Of HTTP."""
    headers: http.client.HTTPMessage
    """Names in any case."""
    content: bytes
    """The body."""

    def error(self, request_id: str = "") -> ChatTTSError:
        """The error that another status than 200 means; Triton's bodies say why, as JSON."""
        try:
            message = get(parse_object(self.content), "error", str)
        except ProtocolError:
            message = ""
        return error_from_http(self.status, message, self.content, request_id)


def error_from_http(status: int, message: str, content: bytes, request_id: str) -> ChatTTSError:
    """The error that another status than 200 means.

    Args:
        status: of HTTP.
        message: what Triton's JSON says; empty: the body is something else.
        content: the body.
        request_id: of the request.
    """
    if status == _WRONG_METHOD or (status == _NOT_FOUND and message in ("", _NO_SUCH_PATH)):
        text = message or content[:200].decode(errors="replace")
        return no_http(f"HTTP status {status}: {text}", request_id)
    message = message or f"HTTP status {status}: {content[:200].decode(errors='replace')}"
    return error_from_status(code_from_http(status, message), message, request_id)


class Connections:
    """Connections to one server; safe for use by several threads."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Open none yet.

        Raises:
            ValueError: a file of `tls` is no good.
        """
        self._endpoint = endpoint
        self._ssl = None if endpoint.tls is None else ssl_context(endpoint.tls)
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._limits: set[_Limit] = set()
        """One for each request that runs."""
        self._is_closed = False

    def ask(
        self,
        path: str,
        timeout_s: float | None,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> Answer:
        """Send one request and wait for the whole answer.

        Args:
            path: begins with a slash.
            timeout_s: seconds for everything but the name's resolution; None = no limit.
            body: what to POST; None = GET.
            headers: besides those of the endpoint.

        Raises:
            ServerUnavailableError: no connection, or it was cut.
            RequestTimeoutError: no complete answer within the limit.
            RequestCancelledError: another thread has closed the connections.
            ProtocolError: the answer is not HTTP.
        """
        method = "GET" if body is None else "POST"
        request = (method, path, body, {**dict(self._endpoint.headers), **headers})
        with self._limit(timeout_s) as limit:
            try:
                answer = self._exchange(request, limit)
            except (OSError, http.client.HTTPException) as error:
                if limit.is_closed:
                    raise closed() from error
                if limit.has_passed or isinstance(error, TimeoutError):
                    raise too_late() from error
                if isinstance(error, (OSError, http.client.IncompleteRead)):
                    raise error_from_status("UNAVAILABLE", f"no connection: {error}", "") from error
                raise no_http(reprlib.repr(str(error))) from error
            # a cut looks like the end of an answer without a length
            if limit.is_closed:
                raise closed()
            if limit.has_passed:
                raise too_late()
            return answer

    def close(self) -> None:
        """Close all connections; who waits for an answer gets RequestCancelledError."""
        self._is_closed = True
        for limit in tuple(self._limits):
            limit.close()
        self._close_idle()

    def _close_idle(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()

    @contextlib.contextmanager
    def _limit(self, timeout_s: float | None) -> Iterator[_Limit]:
        limit = _Limit(timeout_s)
        self._limits.add(limit)
        if self._is_closed:  # only now: whoever closes after this finds the limit
            limit.close()
        try:
            yield limit
        finally:
            limit.leave()
            self._limits.remove(limit)

    def _exchange(self, request: tuple[Any, ...], limit: _Limit) -> Answer:
        try:
            connection = self._idle.pop()
        except IndexError:
            return self._exchange_on(self._connection(limit), request, limit)
        try:
            return self._exchange_on(connection, request, limit)
        except ConnectionError:
            if limit.is_over:
                raise
        # the server has closed it while it was idle, which shows only now
        return self._exchange_on(self._connection(limit), request, limit)

    def _exchange_on(
        self, connection: http.client.HTTPConnection, request: tuple[Any, ...], limit: _Limit
    ) -> Answer:
        try:
            limit.watch(connection.sock)
            connection.request(*request)
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        except BaseException:
            connection.close()
            raise
        limit.leave()
        is_kept = connection.sock is not None and not limit.is_over
        if is_kept and len(self._idle) < _MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        if self._is_closed:  # just now, and this one may have come too late for it
            self._close_idle()
        return answer

    def _connection(self, limit: _Limit) -> http.client.HTTPConnection:
        """Make a new one, watched from its first packet on."""
        host, port = self._endpoint.host, self._endpoint.port
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for place, (*family, _, address) in enumerate(addresses, 1):
            try:
                connected = self._connected(socket.socket(*family), address, limit)
            except OSError:
                if place == len(addresses) or limit.is_over:
                    raise
            else:
                break
        connection = (
            http.client.HTTPConnection(host, port)
            if self._ssl is None
            else http.client.HTTPSConnection(host, port, context=self._ssl)
        )
        connection.sock = connected
        return connection

    def _connected(self, plain: socket.socket, address: Any, limit: _Limit) -> socket.socket:
        try:
            limit.watch(plain)
            plain.connect(address)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._ssl is None:
                return plain
            encrypted = self._ssl.wrap_socket(
                plain, server_hostname=self._endpoint.host, do_handshake_on_connect=False
            )
        except BaseException:
            plain.close()
            raise
        try:
            limit.watch(encrypted)
            encrypted.do_handshake()
        except BaseException:
            encrypted.close()
            raise
        return encrypted


class _Limit:
    """Cuts the connection in use after some seconds: bytes that trickle end no limit of a read.

    Another thread may `close` it, which cuts at once.
    """

    def __init__(self, timeout_s: float | None) -> None:
        self._end_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._timer: threading.Timer | None = None
        self._connection: socket.socket | None = None
        self.is_closed = False
        """Whether nobody wants the answer any more."""

    @property
    def left_s(self) -> float | None:
        """Seconds until then, at least a moment; None = no limit."""
        return None if self._end_s is None else max(1e-3, self._end_s - time.monotonic())

    @property
    def has_passed(self) -> bool:
        return self._end_s is not None and time.monotonic() >= self._end_s

    @property
    def is_over(self) -> bool:
        """Whether no connection is to be used any more."""
        return self.is_closed or self.has_passed

    def close(self) -> None:
        """Cut the connection in use, and refuse any further one."""
        self.is_closed = True
        if (connection := self._connection) is not None:
            _cut(connection)

    def watch(self, connection: socket.socket) -> None:
        """Cut this one; a kept connection has another limit from its last request.

        Raises:
            ConnectionAbortedError: this limit was closed.
        """
        self.leave()
        self._connection = connection
        if self.is_closed:  # only now: whoever closes after this cuts it
            raise ConnectionAbortedError("closed by this side")
        connection.settimeout(self.left_s)
        if self.left_s is not None:
            self._timer = threading.Timer(self.left_s, _cut, (connection,))
            self._timer.start()

    def leave(self) -> None:
        """Cut none any more."""
        self._connection = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
            self._timer = None


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # closed already
        # not the method of an encrypted socket: that one takes its state away from the reader
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
