"""Many utterances from one call: bounded, in the order of their texts.

At most `concurrency` run at once, and at most as many again wait, finished or not begun, for the
one whose turn it is. Whoever leaves early stops the rest on the server.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from ._exceptions import ChatTTSError, InvalidRequestError, RequestCancelledError
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
    """What is asked of many utterances, apart from how each is spoken."""

    items: Iterable[Item]
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

    def __init__(self, plan: Plan, submit: Callable[[Item], J]) -> None:
        self._plan = plan
        self._submit = submit
        self._source = iter(plan.items)
        self._num_taken = 0
        self._num_reported = 0
        self.jobs: deque[J] = deque()

    def fill(self) -> bool:
        """Begin what there is room for; false when nothing is left to hand over."""
        while len(self.jobs) < _WINDOW * self._plan.concurrency and not self._has_failed:
            try:
                item = next(self._source)
            except StopIteration:
                break
            self.jobs.append(self._submit(item))
        return bool(self.jobs)

    @property
    def _has_failed(self) -> bool:
        """Whether one has failed that will end all, so that no further one should begin."""
        if self._plan.return_errors:
            return False
        return any(job.done() and job.exception() is not None for job in self.jobs)

    def running(self) -> list[J]:
        """Those that have not ended, if the next one to be handed over is among them."""
        self._report()
        return [] if self.jobs[0].done() else [job for job in self.jobs if not job.done()]

    def _report(self) -> None:
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
    """
    streams = _Streams()

    def speak(item: Item) -> Audio:
        with streams.open(start(*plan.split(item))) as stream:
            return stream.result()

    pool = ThreadPoolExecutor(plan.concurrency, thread_name_prefix="chattts-client")
    window = _Window(plan, lambda item: pool.submit(speak, item))
    try:
        while window.fill():
            while running := window.running():
                concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            yield window.take()
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


async def speak_many_async(
    plan: Plan, start: Callable[[str, Options], AsyncSpeechStream]
) -> AsyncGenerator[Audio | ChatTTSError, None]:
    """The asynchronous twin of `speak_many`, in tasks."""
    gate = asyncio.Semaphore(plan.concurrency)

    async def speak(item: Item) -> Audio:
        async with gate, start(*plan.split(item)) as stream:
            return await stream.result()

    window = _Window(plan, lambda item: asyncio.ensure_future(speak(item)))
    try:
        while window.fill():
            while running := window.running():
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            yield window.take()
    finally:
        for task in window.jobs:
            task.cancel()
        await asyncio.gather(*window.jobs, return_exceptions=True)
