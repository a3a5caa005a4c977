"""The seam between the client and the wire: what a transport offers, and which ones there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from ._answers import Reader
from ._grpc import AsyncGrpcTransport, GrpcTransport
from ._protocol import SpeechRequest

TransportName = Literal["grpc", "http"]
DEFAULT_URLS: dict[TransportName, str] = {"grpc": "localhost:8001", "http": "localhost:8000"}


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

    def is_ready(self, timeout_s: float | None) -> bool:
        """Ask whether the model is ready; a refused connection raises."""

    def close(self) -> None:
        """Give back every connection."""


class AsyncTransport(Protocol):
    """The asynchronous twin of `Transport`."""

    def start(self, request: SpeechRequest, timeout_s: float | None) -> AsyncCall:
        """Send a request; errors show when the answer is received."""

    async def is_ready(self, timeout_s: float | None) -> bool:
        """Ask whether the model is ready; a refused connection raises."""

    async def close(self) -> None:
        """Give back every connection."""


def open_transport(name: TransportName, url: str) -> Transport:
    """Make the transport; nothing is sent yet.

    Raises:
        ImportError: the `http` extra is not installed.
    """
    if name == "grpc":
        return GrpcTransport(url)
    with _named_extra():
        from ._http import HttpTransport
    return HttpTransport(url)


def open_async_transport(name: TransportName, url: str) -> AsyncTransport:
    """Make the asynchronous transport; nothing is sent yet.

    Raises:
        ImportError: the `http` extra is not installed.
    """
    if name == "grpc":
        return AsyncGrpcTransport(url)
    with _named_extra():
        from ._http import AsyncHttpTransport
    return AsyncHttpTransport(url)


@contextmanager
def _named_extra() -> Iterator[None]:
    try:
        yield
    except (ImportError, RuntimeError) as error:  # tritonclient raises RuntimeError for its extra
        message = "transport='http' needs an extra: pip install 'chattts-client[http]'"
        raise ImportError(message) from error
