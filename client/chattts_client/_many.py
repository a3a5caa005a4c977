"""Many utterances from one call: bounded, in the order of their texts.

At most `concurrency` run at once, and at most as many again wait, finished or not begun, for the
one whose turn it is. Whoever leaves early stops the rest on the server.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
)
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, Final

from ._exceptions import ChatTTSError, InvalidRequestError, RequestCancelledError
from ._plan import END, End, Item, Options, Plan, Window
from ._process import Process
from ._stream import AsyncSpeechStream, SpeechStream
from ._types import Audio

_SOURCE_GRACE_S: Final = 0.2
"""How long the end waits for a source that is just fetching an item: it may wait for ever."""


def speak_many(
    plan: Plan, start: Callable[[str, Options], SpeechStream]
) -> Generator[Audio | ChatTTSError, None, None]:
    """Speak all items of a plan in threads.

    Args:
        plan: what to say.
        start: begins one utterance; called in a thread.

    Raises:
        InvalidRequestError: the items cannot be iterated over; at once.
    """
    if isinstance(plan.items, AsyncIterable) and not isinstance(plan.items, Iterable):
        message = "items: an asynchronous iterable is for AsyncChatTTSClient"
        raise InvalidRequestError(message, field="items")
    return _speak_many(plan, _iterator(plan.items), start)


def _iterator(items: Iterable[Item]) -> Iterator[Item]:
    try:
        return iter(items)
    except TypeError as error:
        message = f"items: {items!r} is no iterable of texts"
        raise InvalidRequestError(message, field="items") from error


def _speak_many(
    plan: Plan, items: Iterator[Item], start: Callable[[str, Options], SpeechStream]
) -> Generator[Audio | ChatTTSError, None, None]:
    process = Process()
    streams = _Streams()

    def begin() -> Future[Audio] | End:
        item = next(items, END)
        return END if item is END else pool.submit(speak, item)

    def speak(item: Item) -> Audio:
        with streams.open(start(*plan.split(item))) as stream:
            return stream.result()

    pool = ThreadPoolExecutor(plan.concurrency, thread_name_prefix="chattts-client")
    reader = _Worker()
    window: Window[Future[Any]] = Window(plan)
    try:
        while True:
            process.check("synthesize_many")
            if window.may_read:
                window.reading = reader.do(begin)
            if window.has_begun():
                continue
            window.report()
            if window.is_ready:
                yield window.take()
            elif running := window.running():
                concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            else:
                window.finish()
                break
    finally:
        if not process.is_left:
            # NOTE: not waited for: an HTTP request cannot be stopped, its thread ends with it.
            pool.shutdown(wait=False, cancel_futures=True)
            streams.close()
            is_busy = window.reading is not None and not window.reading.done()
            closed = reader.do(items.close) if isinstance(items, Generator) else None
            reader.end(_SOURCE_GRACE_S if is_busy else None)
            if closed is not None and closed.done():
                closed.result()


class _Worker:
    """A thread of its own for a source: one that waits holds up no utterance."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[tuple[Future[Any], Callable[[], object]] | None] = SimpleQueue()
        name = "chattts-client-source"
        # not waited for when Python ends: the source may wait for ever
        self._thread = threading.Thread(target=_work, args=(self._asked,), name=name, daemon=True)
        self._thread.start()

    def do(self, work: Callable[[], object]) -> Future[Any]:
        """Do some work after all that was asked for before."""
        future: Future[Any] = Future()
        self._asked.put((future, work))
        return future

    def end(self, limit_s: float | None) -> None:
        """End after all work; wait for that, but no longer than `limit_s`."""
        self._asked.put(None)
        self._thread.join(limit_s)


def _work(asked: SimpleQueue[tuple[Future[Any], Callable[[], object]] | None]) -> None:
    """Do one piece of work after the other until there is None."""
    while (job := asked.get()) is not None:
        future, work = job
        try:
            future.set_result(work())
        except BaseException as error:  # raised again where it is waited for
            future.set_exception(error)
        del job, future, work  # what they hold is the caller's alone


class _Streams:
    """The streams that other threads are reading, so that they can be stopped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[SpeechStream] = set()
        self._is_over = False

    @contextmanager
    def open(self, stream: SpeechStream) -> Iterator[SpeechStream]:
        """Hold a stream while it is read."""
        with stream:
            with self._lock:
                if self._is_over:
                    raise RequestCancelledError("the rest was stopped")
                self._open.add(stream)
            try:
                yield stream
            finally:
                with self._lock:
                    self._open.remove(stream)

    def close(self) -> None:
        """Stop all of them, side by side, and those that would begin now."""
        with self._lock:
            self._is_over = True
            streams = list(self._open)
        if streams:
            with ThreadPoolExecutor(len(streams)) as threads:
                for stream in streams:
                    threads.submit(stream.close)


def speak_many_async(
    plan: Plan, start: Callable[[str, Options], AsyncSpeechStream]
) -> AsyncGenerator[Audio | ChatTTSError, None]:
    """The asynchronous twin of `speak_many`, in tasks; the items may be asynchronous too."""
    items = plan.items
    source = aiter(items) if isinstance(items, AsyncIterable) else _in_loop(_iterator(items))
    return _speak_many_async(plan, source, start)


async def _in_loop(items: Iterator[Item]) -> AsyncGenerator[Item, None]:
    """A synchronous source; one that has to wait holds up the whole loop."""
    try:
        for item in items:
            yield item
    finally:
        if isinstance(items, Generator):
            items.close()


async def _speak_many_async(
    plan: Plan, source: AsyncIterator[Item], start: Callable[[str, Options], AsyncSpeechStream]
) -> AsyncGenerator[Audio | ChatTTSError, None]:
    gate = asyncio.Semaphore(plan.concurrency)

    async def begin() -> asyncio.Future[Audio] | End:
        item = await anext(source, END)
        return END if item is END else asyncio.ensure_future(speak(item))

    async def speak(item: Item) -> Audio:
        async with gate, start(*plan.split(item)) as stream:
            return await stream.result()

    window: Window[asyncio.Future[Any]] = Window(plan)
    try:
        while True:
            if window.may_read:
                window.reading = asyncio.ensure_future(begin())
                await asyncio.sleep(0)  # what is there already begins before a result is given
            if window.has_begun():
                continue
            window.report()
            if window.is_ready:
                yield window.take()
            elif running := window.running():
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            else:
                window.finish()
                break
    finally:
        tasks = window.all()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(source, AsyncGenerator):
            await source.aclose()
