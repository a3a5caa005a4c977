"""A TCP relay in front of a server that can break its connections, as a lost network does.

A client that closes its connection says so first; this shows the server what it sees when a
caller's machine goes down or its process is killed: a reset without a word.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType

_BLOCK = 1 << 16
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with 0 seconds: close sends RST and drops what is under way."""


class Relay:
    """Passes bytes between local clients and one server until `sever` or the end of its block."""

    def __init__(self, url: str) -> None:
        """Take the server's HOST:PORT; the relay listens from `__enter__` on."""
        host, _, port = url.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._is_severed = False
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        """HOST:PORT for the clients."""
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def __enter__(self) -> Relay:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.sever()
        for thread in self._threads:
            thread.join()

    def sever(self) -> None:
        """Reset every connection and take no more; a second call does nothing."""
        with self._lock:
            self._is_severed = True
            sockets, self._sockets = self._sockets, []
        for one in [self._listener, *sockets]:
            with contextlib.suppress(OSError):  # the peer may have closed it
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RD)  # wakes the thread that reads it
            one.close()

    def _start(self, work: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
            except OSError:
                return
            with self._lock:
                if self._is_severed:
                    client.close()
                    server.close()
                    return
                self._sockets += [client, server]
            self._start(self._pass_on, client, server)
            self._start(self._pass_on, server, client)

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while block := source.recv(_BLOCK):
                sink.sendall(block)
            if not self._is_severed:
                sink.shutdown(socket.SHUT_WR)
