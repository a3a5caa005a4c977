"""Streams: the responses of one request, in order, until the final one.

`Receiver` holds the rules that both twins share (order, final marker, clock); the twins only differ
in how they wait. One stream belongs to one thread or task.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields
from types import TracebackType

import numpy as np

from ._answers import Reader, read_chunk
from ._exceptions import ChatTTSError, ProtocolError, RequestCancelledError
from ._transport import AsyncCall, Call
from ._types import Audio, AudioChunk, Summary


class Receiver:
    """What has arrived so far: checks the order and keeps the clock."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self._start_s = time.perf_counter()
        self._first_audio_s = 0.0
        self._elapsed_s = 0.0
        self._chunks: list[AudioChunk] = []

    def add(self, reader: Reader | None) -> AudioChunk:
        """Decode the next response.

        Raises:
            ProtocolError: it is malformed, or the server has closed the stream instead.
        """
        if reader is None:
            raise ProtocolError(f"the stream ended without a final response, {self._progress}")
        chunk = read_chunk(reader, len(self._chunks))
        self._elapsed_s = time.perf_counter() - self._start_s
        if len(chunk.samples) and not self.has_audio:
            self._first_audio_s = self._elapsed_s
        self._chunks.append(chunk)
        return chunk

    def check_over(self, reader: Reader | None) -> None:
        """Take what comes after the final response: the end.

        Raises:
            ProtocolError: another response.
        """
        if reader is not None:
            raise ProtocolError("a response came after the final one")

    def complete(self, error: ChatTTSError) -> None:
        """Add to an error what this stream knows: never try again once audio was handed over."""
        error.request_id = error.request_id or self.request_id
        error.retryable = error.retryable and not self.has_audio

    def audio(self) -> Audio:
        """Everything received, as one utterance.

        Raises:
            RequestCancelledError: the stream was closed before its end.
        """
        summary = self._chunks[-1].summary if self._chunks else None
        if summary is None:
            message = f"the stream was closed before its end, {self._progress}"
            raise RequestCancelledError(message, request_id=self.request_id)
        samples = np.concatenate([chunk.samples for chunk in self._chunks])
        samples.flags.writeable = False
        return Audio(
            **{field.name: getattr(summary, field.name) for field in fields(Summary)},
            samples=samples,
            sample_rate=self._chunks[-1].sample_rate,
            time_to_first_audio_s=self._first_audio_s or self._elapsed_s,
            elapsed_s=self._elapsed_s,
        )

    @property
    def has_audio(self) -> bool:
        """True once samples have arrived."""
        return any(len(chunk.samples) for chunk in self._chunks)

    @property
    def is_complete(self) -> bool:
        """True once the final response has arrived."""
        return bool(self._chunks) and self._chunks[-1].is_final

    @property
    def _progress(self) -> str:
        return f"after {sum(chunk.duration_s for chunk in self._chunks):.2f} s of audio"


class SpeechStream(Iterator[AudioChunk]):
    """The chunks of one utterance as they are made; leaving it early cancels on the server.

    Iterate once, then `result` gives the whole utterance. Not safe for use by several threads,
    except for `close`.
    """

    def __init__(self, call: Call, request_id: str) -> None:
        self._call = call
        self._receiver = Receiver(request_id)
        self._is_open = True

    @property
    def request_id(self) -> str:
        """Names the request in the server's log."""
        return self._receiver.request_id

    def __next__(self) -> AudioChunk:
        if not self._is_open:
            raise StopIteration
        try:
            chunk = self._receiver.add(self._call.receive())
            if chunk.is_final:
                # NOTE: who leaves on the final chunk must not leave an open call: server 2.51
                # loses the memory of a call that is cancelled while it ends.
                self._is_open = False
                self._receiver.check_over(self._call.receive())
        except ChatTTSError as error:
            self.close()
            self._receiver.complete(error)
            raise
        return chunk

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
        self._is_open = False
        if not self._receiver.is_complete:
            self._call.stop()

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
    """The asynchronous twin of `SpeechStream`."""

    def __init__(self, call: AsyncCall, request_id: str) -> None:
        self._call = call
        self._receiver = Receiver(request_id)
        self._is_open = True

    @property
    def request_id(self) -> str:
        """Names the request in the server's log."""
        return self._receiver.request_id

    async def __anext__(self) -> AudioChunk:
        if not self._is_open:
            raise StopAsyncIteration
        try:
            chunk = self._receiver.add(await self._call.receive())
            if chunk.is_final:
                # NOTE: who leaves on the final chunk must not leave an open call: server 2.51
                # loses the memory of a call that is cancelled while it ends.
                self._is_open = False
                self._receiver.check_over(await self._call.receive())
        except ChatTTSError as error:
            await self.close()
            self._receiver.complete(error)
            raise
        return chunk

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
        self._is_open = False
        if not self._receiver.is_complete:
            await self._call.stop()

    def __del__(self) -> None:
        # A stream that is dropped half-read: gRPC's asyncio calls do not end by themselves then.
        if self._is_open and not self._receiver.is_complete:
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


def only_response(call: Call) -> Reader:
    """The response of a request that has exactly one.

    Raises:
        ProtocolError: there is none, or another one follows.
    """
    first = call.receive()
    second = call.receive() if first is not None else None
    return _checked(first, second)


async def async_only_response(call: AsyncCall) -> Reader:
    """The response of a request that has exactly one; see `only_response`."""
    first = await call.receive()
    second = await call.receive() if first is not None else None
    return _checked(first, second)


def _checked(first: Reader | None, second: Reader | None) -> Reader:
    if first is None or second is not None:
        raise ProtocolError("not exactly one response")
    return first
