"""Many utterances from one call: bounded, in the order of their texts.

At most `concurrency` run at once, and at most as many again wait, finished or not begun, for the
one whose turn it is. Whoever leaves early stops the rest on the server.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import enum
import threading
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from ._exceptions import ChatTTSError, InvalidRequestError, RequestCancelledError
from ._protocol import speech_request
from ._stream import AsyncSpeechStream, SpeechStream
from ._types import Audio, SpeechOptions

Item = str | tuple[str, SpeechOptions]
"""A text, or a text with options of its own, which come before those of the call."""
Progress = Callable[[int], None]
"""Takes how many utterances have ended so far, well or not."""
Options = Mapping[str, object]
DEFAULT_CONCURRENCY: Final = 8

_WINDOW = 2
"""Utterances that are looked ahead, in multiples of `concurrency`."""


class _End(enum.Enum):
    """Stands behind the last item."""

    TOKEN = enum.auto()


_END: Final = _End.TOKEN


class _Job(Protocol):
    """What futures and tasks have in common."""

    def done(self) -> bool:
        """Whether it has ended."""

    def exception(self) -> BaseException | None:
        """How it failed; None if it did not. Only once it is done."""

    def result(self) -> Audio:
        """What it made. Only once it is done."""


J = TypeVar("J", bound=_Job)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of many utterances, apart from how each is spoken; checked when it is made.

    Raises:
        InvalidRequestError: a part of it is wrong, as far as that shows before an item is read.
        TypeError: an unknown option.
    """

    items: Iterable[Item] | AsyncIterable[Item]
    """In the order of the results; read only a little ahead of them."""
    options: Options
    """Those of the call."""
    concurrency: int
    """How many run at once."""
    on_progress: Progress | None
    """Called where the results are taken, never at the same time as the caller's own code."""
    return_errors: bool
    """Whether an error takes the place of its utterance instead of ending all."""

    def __post_init__(self) -> None:
        if isinstance(self.items, (str, bytes)):
            message = "items: one text is not many; give a list of texts"
            raise InvalidRequestError(message, field="items")
        is_whole = isinstance(self.concurrency, int) and not isinstance(self.concurrency, bool)
        if not is_whole or self.concurrency < 1:
            message = f"concurrency: {self.concurrency!r} is not a whole number from 1"
            raise InvalidRequestError(message, field="concurrency")
        if self.on_progress is not None and not callable(self.on_progress):
            message = f"on_progress: {self.on_progress!r} cannot be called"
            raise InvalidRequestError(message, field="on_progress")
        speech_request("", self.options, stream=False)

    def split(self, item: Item) -> tuple[str, Options]:
        """The text of an item and all its options.

        Raises:
            InvalidRequestError: it is neither a text nor a pair.
        """
        if isinstance(item, str):
            return item, self.options
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Mapping):
            return item[0], {**self.options, **item[1]}
        message = f"items: {item!r} is neither a text nor a pair of text and options"
        raise InvalidRequestError(message, field="items")


class _Window(Generic[J]):
    """The utterances that are looked ahead, the next one to be handed over first."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._num_taken = 0
        self._num_reported = 0
        self.jobs: deque[J] = deque()

    @property
    def has_room(self) -> bool:
        """Whether a further one may begin."""
        return len(self.jobs) < _WINDOW * self._plan.concurrency and not self._has_failed

    @property
    def is_ready(self) -> bool:
        """Whether the next one to be handed over has ended."""
        return bool(self.jobs) and self.jobs[0].done()

    @property
    def _has_failed(self) -> bool:
        """Whether one has failed that will end all, so that no further one should begin."""
        if self._plan.return_errors:
            return False
        return any(job.done() and job.exception() is not None for job in self.jobs)

    def running(self) -> list[J]:
        """Those that have not ended."""
        return [job for job in self.jobs if not job.done()]

    def report(self) -> None:
        """Tell the caller how many have ended, if more have than were told."""
        num_ended = self._num_taken + sum(job.done() for job in self.jobs)
        if self._plan.on_progress is not None and num_ended > self._num_reported:
            self._plan.on_progress(num_ended)
        self._num_reported = num_ended

    def take(self) -> Audio | ChatTTSError:
        """Hand over the first one, which has ended."""
        job = self.jobs.popleft()
        self._num_taken += 1
        error = job.exception()
        if isinstance(error, ChatTTSError) and self._plan.return_errors:
            return error
        return job.result()


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
    plan: Plan, source: Iterator[Item], start: Callable[[str, Options], SpeechStream]
) -> Generator[Audio | ChatTTSError, None, None]:
    streams = _Streams()

    def speak(item: Item) -> Audio:
        with streams.open(start(*plan.split(item))) as stream:
            return stream.result()

    pool = ThreadPoolExecutor(plan.concurrency, thread_name_prefix="chattts-client")
    window: _Window[concurrent.futures.Future[Audio]] = _Window(plan)
    try:
        while True:
            while window.has_room and (item := next(source, _END)) is not _END:
                window.jobs.append(pool.submit(speak, item))
            window.report()
            if window.is_ready:
                yield window.take()
            elif running := window.running():
                concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            else:
                break
    finally:
        # NOTE: not waited for: an HTTP request cannot be stopped, and its thread ends with it.
        pool.shutdown(wait=False, cancel_futures=True)
        streams.close()


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
    source = aiter(items) if isinstance(items, AsyncIterable) else _Reader(_iterator(items))
    return _speak_many_async(plan, source, start)


class _Reader(AsyncIterator[Item]):
    """A synchronous source; one that has to wait holds up the whole loop."""

    def __init__(self, source: Iterator[Item]) -> None:
        self._source = source

    async def __anext__(self) -> Item:
        if (item := next(self._source, _END)) is _END:
            raise StopAsyncIteration
        return item


async def _speak_many_async(
    plan: Plan, source: AsyncIterator[Item], start: Callable[[str, Options], AsyncSpeechStream]
) -> AsyncGenerator[Audio | ChatTTSError, None]:
    gate = asyncio.Semaphore(plan.concurrency)

    async def speak(item: Item) -> Audio:
        async with gate, start(*plan.split(item)) as stream:
            return await stream.result()

    window: _Window[asyncio.Future[Audio]] = _Window(plan)
    reading: asyncio.Future[Item | _End] | None = None

    def tasks() -> list[asyncio.Future[Any]]:
        return [*window.jobs] if reading is None else [*window.jobs, reading]

    try:
        while True:
            if reading is None and window.has_room:
                reading = asyncio.ensure_future(anext(source, _END))
                await asyncio.sleep(0)  # what is there already begins before a result is given
            if (
                reading is not None
                and reading.done()
                and window.has_room
                and (item := reading.result()) is not _END
            ):
                reading = None
                window.jobs.append(asyncio.ensure_future(speak(item)))
                continue
            window.report()
            if window.is_ready:
                yield window.take()
            elif waiting := [task for task in tasks() if not task.done()]:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            else:
                break
    finally:
        for task in tasks():
            task.cancel()
        await asyncio.gather(*tasks(), return_exceptions=True)
