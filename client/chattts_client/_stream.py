"""Streams: the responses of one request, in order, until the final one.

Until the first response a request may be sent again, or a kept utterance may take its place; after
it, an error ends the stream. `Receiver` holds what both twins share; they only differ in how they
wait. One stream belongs to one thread or task.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from types import TracebackType

from ._answers import Reader
from ._cache import Shelf
from ._exceptions import (
    ChatTTSError,
    RequestTimeoutError,
    ServerUnavailableError,
    closed,
)
from ._protocol import SpeechRequest
from ._receiver import Receiver
from ._retry import AsyncPause, Patience, Pause
from ._transport import AsyncCall, AsyncTransport, Call, Transport
from ._types import Audio, AudioChunk

_NO_ANSWER = (ServerUnavailableError, RequestTimeoutError)
"""Errors that a kept utterance makes good."""


class SpeechStream(Iterator[AudioChunk]):
    """The chunks of one utterance as they are made; leaving it early cancels on the server.

    Iterate once, then `result` gives the whole utterance. What has failed raises its error again
    however it is read on; what was closed early just ends, and only `result` raises. One thread
    reads at a time, another one gets RuntimeError; any thread may `close`. The request is sent at
    once, or with the first read if it may have to wait (`rate_limit`) or need not be sent (`cache`
    with use "first").
    """

    def __init__(
        self, transport: Transport, request: SpeechRequest, patience: Patience, shelf: Shelf
    ) -> None:
        self._transport = transport
        self._request = request
        self._patience = patience
        self._shelf = shelf
        self._receiver = Receiver(request.request_id)
        self._reading = threading.RLock()  # its own thread passes one that an interrupt left
        self._over = threading.Event()
        self._connecting = threading.Lock()
        self._call: Call | None = None
        if not patience.is_limited and not shelf.is_first:
            self._call = transport.start(request, patience.left_s())

    @property
    def request_id(self) -> str:
        """Names the request in the server's log."""
        return self._receiver.request_id

    def __next__(self) -> AudioChunk:
        if not self._reading.acquire(blocking=False):
            raise _read_twice("thread")
        try:
            return self._next()
        finally:
            self._reading.release()

    def _next(self) -> AudioChunk:
        if self._over.is_set():
            self._receiver.check()
            raise StopIteration
        self._receiver.process.check("the stream")
        try:
            if self._receiver.has_begun and self._call is not None:
                chunk = self._receiver.add(self._call.receive())
            else:
                chunk = self._begin()
            if chunk.is_final:
                self._finish()
        except ChatTTSError as error:
            self.close()
            self._receiver.fail(error)
            raise
        return chunk

    def _begin(self) -> AudioChunk:
        """The first chunk, from the server or the cache."""
        kept = self._shelf.load() if self._shelf.is_first else None
        if kept is None:
            try:
                reader = self._patience.run(self._attempt, _pause(self._over))
                return self._receiver.add(reader)
            except _NO_ANSWER:
                kept = self._shelf.load()
                if kept is None:
                    raise
        return self._receiver.add_kept(kept)

    def _attempt(self) -> Reader | None:
        if self._call is None:
            self._over.wait(self._patience.turn_s())
        with self._connecting:
            if self._over.is_set():  # by another thread
                raise closed()
            if self._call is None:
                self._call = self._transport.start(self._request, self._patience.left_s())
        try:
            return self._call.receive()
        except ChatTTSError:
            self._call = None
            raise

    def _finish(self) -> None:
        # NOTE: who leaves on the final chunk must not leave an open call: server 2.51
        # loses the memory of a call that is cancelled while it ends.
        self._over.set()
        if self._call is not None:
            self._receiver.check_over(self._call.receive())
            if self._shelf.is_there:
                self._shelf.store(self._receiver.audio())

    def result(self) -> Audio:
        """Read what is left and return the whole utterance, from its first sample.

        Raises:
            ChatTTSError: the stream failed, or was closed before its end.
        """
        for _ in self:
            pass
        return self._receiver.audio()

    def close(self) -> None:
        """Stop: returns when the server has given up the request; not needed after the end."""
        if self._receiver.process.is_left:
            return
        self._over.set()
        with self._connecting:
            call = self._call
        if call is not None and not self._receiver.is_complete:
            call.stop()

    def __enter__(self) -> SpeechStream:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncSpeechStream(AsyncIterator[AudioChunk]):
    """The asynchronous twin of `SpeechStream`, read by one task at a time."""

    def __init__(
        self, transport: AsyncTransport, request: SpeechRequest, patience: Patience, shelf: Shelf
    ) -> None:
        self._transport = transport
        self._request = request
        self._patience = patience
        self._shelf = shelf
        self._receiver = Receiver(request.request_id)
        self._is_read = False
        self._over = asyncio.Event()
        self._call: AsyncCall | None = None
        if not patience.is_limited and not shelf.is_first:
            self._call = transport.start(request, patience.left_s())

    @property
    def request_id(self) -> str:
        """Names the request in the server's log."""
        return self._receiver.request_id

    async def __anext__(self) -> AudioChunk:
        if self._is_read:
            raise _read_twice("task")
        self._is_read = True
        try:
            return await self._next()
        finally:
            self._is_read = False

    async def _next(self) -> AudioChunk:
        if self._over.is_set():
            self._receiver.check()
            raise StopAsyncIteration
        self._receiver.process.check("the stream")
        try:
            if self._receiver.has_begun and self._call is not None:
                chunk = self._receiver.add(await self._call.receive())
            else:
                chunk = await self._begin()
            if chunk.is_final:
                await self._finish()
        except ChatTTSError as error:
            await self.close()
            self._receiver.fail(error)
            raise
        return chunk

    async def _begin(self) -> AudioChunk:
        """The first chunk, from the server or the cache."""
        kept = await self._load() if self._shelf.is_first else None
        if kept is None:
            try:
                reader = await self._patience.run_async(self._attempt, _async_pause(self._over))
                return self._receiver.add(reader)
            except _NO_ANSWER:
                kept = await self._load()
                if kept is None:
                    raise
        return self._receiver.add_kept(kept)

    async def _load(self) -> AudioChunk | None:
        return await asyncio.to_thread(self._shelf.load) if self._shelf.is_there else None

    async def _attempt(self) -> Reader | None:
        if self._call is None:
            await _async_pause(self._over)(self._patience.turn_s())
        if self._over.is_set():  # by another task
            raise closed()
        if self._call is None:
            self._call = self._transport.start(self._request, self._patience.left_s())
        try:
            return await self._call.receive()
        except ChatTTSError:
            self._call = None
            raise

    async def _finish(self) -> None:
        # NOTE: as in the synchronous twin, no open call may be left.
        self._over.set()
        if self._call is not None:
            self._receiver.check_over(await self._call.receive())
            if self._shelf.is_there:
                await asyncio.to_thread(self._shelf.store, self._receiver.audio())

    async def result(self) -> Audio:
        """Read what is left and return the whole utterance, from its first sample.

        Raises:
            ChatTTSError: the stream failed, or was closed before its end.
        """
        async for _ in self:
            pass
        return self._receiver.audio()

    async def close(self) -> None:
        """Stop: returns when the server has given up the request; not needed after the end."""
        if self._receiver.process.is_left:
            return
        self._over.set()
        if self._call is not None and not self._receiver.is_complete:
            await self._call.stop()

    def __del__(self) -> None:
        # A stream that is dropped half-read: gRPC's asyncio calls do not end by themselves then.
        if self._call is None or self._over.is_set() or self._receiver.process.is_left:
            return
        with contextlib.suppress(RuntimeError):  # the loop may be closed
            self._call.cancel()

    async def __aenter__(self) -> AsyncSpeechStream:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def _read_twice(reader: str) -> RuntimeError:
    return RuntimeError(f"a stream is read by one {reader} at a time; another one reads this one")


def _pause(over: threading.Event) -> Pause:
    def pause(seconds: float) -> None:
        over.wait(seconds)

    return pause


def _async_pause(over: asyncio.Event) -> AsyncPause:
    async def pause(seconds: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(over.wait(), seconds)

    return pause
