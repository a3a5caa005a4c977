"""A TCP proxy in front of a server that delays, throttles, cuts, resets or swallows its answers.

It knows nothing of gRPC or HTTP: a fault begins after so many bytes of a connection's answer. All
connections live in one thread with an event loop of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

_BLOCK = 4096
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with 0 seconds: close sends RST instead of FIN."""
_START_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with a connection."""

    after_bytes: int = 0
    """Bytes of the answer that pass unharmed, give or take a block of 4,096; 0: from the start."""
    delay_s: float = 0.0
    """Seconds that each further block of the answer is held back."""
    bytes_per_s: float | None = None
    """How fast the answer goes on; None: as fast as it comes."""
    end: Literal["cut", "reset", "silence"] | None = None
    """The connection is closed as if all were well (FIN), reset (RST), or stays open while nothing
    passes in either direction any more; None: the answer goes on."""
    num_connections: int | None = None
    """How many connections, from the proxy's first, have the fault; None: all."""


class _Connection:
    """One client's connection to the server."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.num_passed = 0
        """Bytes of the answer that the client got."""


class FaultProxy:
    """Passes bytes between local clients and one server, with a fault if there is one."""

    def __init__(self, url: str, fault: Fault | None = None) -> None:
        """Take the server's HOST:PORT; the proxy listens from `__enter__` on."""
        host, _, port = url.rpartition(":")
        self._target = (host, int(port))
        self.fault = fault
        """May be changed at any time; the next block of a connection's answer meets the new one."""
        self.num_connections = 0
        """Connections taken so far."""
        self._port = 0
        self._is_ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_over: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        """HOST:PORT for the clients."""
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        assert self._is_ready.wait(_START_LIMIT_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._loop is not None
        assert self._is_over is not None
        self._loop.call_soon_threadsafe(self._is_over.set)
        self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._is_over = asyncio.get_running_loop(), asyncio.Event()
        running: set[asyncio.Task[None]] = set()

        def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._join(reader, writer))
            running.add(task)
            task.add_done_callback(running.discard)

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._is_ready.set()
        await self._is_over.wait()
        server.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _join(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        connection = _Connection(self.num_connections)
        self.num_connections += 1
        writers = [to_client]
        try:
            if not await self._ends(connection, writers):
                server, to_server = await asyncio.open_connection(*self._target)
                writers.append(to_server)
                request = asyncio.create_task(self._pass_request(connection, client, to_server))
                try:
                    await self._pass_answer(connection, server, writers)
                finally:
                    request.cancel()
                    await asyncio.gather(request, return_exceptions=True)
        except OSError:
            pass  # one side is gone
        finally:
            for writer in writers:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    async def _pass_request(
        self, connection: _Connection, client: asyncio.StreamReader, server: asyncio.StreamWriter
    ) -> None:
        while block := await client.read(_BLOCK):
            fault = self._fault_of(connection)
            if fault is None or fault.end != "silence":
                server.write(block)
                await server.drain()
        server.write_eof()

    async def _pass_answer(
        self,
        connection: _Connection,
        server: asyncio.StreamReader,
        writers: list[asyncio.StreamWriter],
    ) -> None:
        client = writers[0]
        while block := await server.read(_BLOCK):
            if await self._ends(connection, writers):
                return
            if fault := self._fault_of(connection):
                rate = fault.bytes_per_s
                await asyncio.sleep(fault.delay_s + (len(block) / rate if rate else 0.0))
            client.write(block)
            await client.drain()
            connection.num_passed += len(block)

    async def _ends(self, connection: _Connection, writers: list[asyncio.StreamWriter]) -> bool:
        """Whether the fault ends the connection here; then it has done so, or waits with it."""
        fault = self._fault_of(connection)
        if fault is None or fault.end is None:
            return False
        if fault.end == "silence":
            assert self._is_over is not None
            await self._is_over.wait()
        if fault.end == "reset":
            for writer in writers:
                own: socket.socket = writer.get_extra_info("socket")
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                writer.transport.abort()
        return True

    def _fault_of(self, connection: _Connection) -> Fault | None:
        """The fault of a connection, if it has begun."""
        fault = self.fault
        if fault is None or connection.num_passed < fault.after_bytes:
            return None
        is_hit = fault.num_connections is None or connection.index < fault.num_connections
        return fault if is_hit else None
