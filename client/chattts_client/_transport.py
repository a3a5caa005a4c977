"""The seam between the client and the wire: what a transport offers, and which ones there are.

A transport's libraries are loaded with it: gRPC reads the environment then, and only then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from ._answers import Reader
from ._extras import missing_extra
from ._json import JsonObject
from ._protocol import Question, SpeechRequest
from ._settings import Endpoint, TransportName


class Call(Protocol):
    """One running request; its methods raise `ChatTTSError`."""

    def receive(self) -> Reader | None:
        """Wait for the next response; None after the last."""

    def stop(self) -> None:
        """Stop the request and wait until it has ended; does nothing once it has."""


class AsyncCall(Protocol):
    """One running request; its methods raise `ChatTTSError`."""

    async def receive(self) -> Reader | None:
        """Wait for the next response; None after the last."""

    async def stop(self) -> None:
        """Stop the request and wait until it has ended; does nothing once it has."""

    def cancel(self) -> None:
        """Cancel the call, where nobody can wait for the request to end."""


class Transport(Protocol):
    """A way to a server; its methods raise `ChatTTSError`."""

    def start(self, request: SpeechRequest, timeout_s: float | None) -> Call:
        """Send a request; errors show when the answer is received."""

    def ask(self, asked: Question, timeout_s: float | None) -> JsonObject:
        """Ask about the server or a model; its answer has the keys of `Question`."""

    def close(self) -> None:
        """Give back every connection."""


class AsyncTransport(Protocol):
    """The asynchronous twin of `Transport`."""

    def start(self, request: SpeechRequest, timeout_s: float | None) -> AsyncCall:
        """Send a request; errors show when the answer is received."""

    async def ask(self, asked: Question, timeout_s: float | None) -> JsonObject:
        """Ask about the server or a model; its answer has the keys of `Question`."""

    async def close(self) -> None:
        """Give back every connection."""


def open_transport(name: TransportName, endpoint: Endpoint) -> Transport:
    """Make the transport; nothing is sent yet.

    Raises:
        ImportError: the `http` extra is not installed.
    """
    if name == "grpc":
        from ._grpc import GrpcTransport

        return GrpcTransport(endpoint)
    with _named_extra():
        from ._http import HttpTransport
    return HttpTransport(endpoint)


def open_async_transport(name: TransportName, endpoint: Endpoint) -> AsyncTransport:
    """Make the asynchronous transport; nothing is sent yet.

    Raises:
        ImportError: the `http` extra is not installed.
    """
    if name == "grpc":
        from ._grpc import AsyncGrpcTransport

        return AsyncGrpcTransport(endpoint)
    with _named_extra():
        from ._http import AsyncHttpTransport
    return AsyncHttpTransport(endpoint)


@contextmanager
def _named_extra() -> Iterator[None]:
    try:
        yield
    except (ImportError, RuntimeError) as error:  # tritonclient raises RuntimeError for its extra
        raise ImportError(missing_extra("transport='http'", "[http]")) from error
