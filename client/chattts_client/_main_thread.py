"""Calls of a transport that survive Ctrl-C: the main thread never runs their blocking code itself.

Python raises KeyboardInterrupt in the main thread only, between any two of its instructions. Where
that is inside gRPC, its locks and lists are left as they are at that moment, and whoever needs them
next waits for ever. So work of the main thread is done by another one, and the main thread waits on
a `queue.SimpleQueue`, which an interrupt leaves whole. Other threads do their work themselves.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final, Generic, Protocol, TypeVar, cast

from ._answers import Reader
from ._json import JsonObject
from ._process import Process
from ._protocol import STOP_LIMIT_S, Question, SpeechRequest

T = TypeVar("T")

_WAIT_LIMIT_S: Final = STOP_LIMIT_S + 2.0
"""How long the main thread waits for an end, in seconds: longer than it takes by itself."""

_inherited: Final[list[BlockingCall]] = []
"""Calls of the parent, kept for ever in the child of a fork: gRPC's own destructor would wait there
for a lock of a thread that did not come along."""


class BlockingCall(Protocol):
    """One running request, as `_transport.Call`, and a way to drop it."""

    def receive(self) -> Reader | None:
        """Wait for the next response; None after the last."""

    def stop(self) -> None:
        """Stop the request and wait until it has ended; does nothing once it has."""

    def cancel(self) -> None:
        """Give up the request without waiting; does nothing once it has ended."""


class BlockingTransport(Protocol):
    """A way to a server, as `_transport.Transport`."""

    def start(self, request: SpeechRequest, timeout_s: float | None) -> BlockingCall:
        """Send a request; errors show when the answer is received."""

    def ask(self, asked: Question, timeout_s: float | None) -> JsonObject:
        """Ask about the server or a model; its answer has the keys of `Question`."""

    def close(self) -> None:
        """Give back every connection."""


class Interruptible:
    """A transport whose calls an interrupt leaves whole; closed, it leaves no thread behind."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._transport = transport
        self._helpers = _Helpers()

    def start(self, request: SpeechRequest, timeout_s: float | None) -> InterruptibleCall:
        """Send a request; errors show when the answer is received."""
        call = self._helpers.run(partial(self._transport.start, request, timeout_s))
        return InterruptibleCall(call, self._helpers)

    def ask(self, asked: Question, timeout_s: float | None) -> JsonObject:
        """Ask about the server or a model; its answer has the keys of `Question`."""
        return self._helpers.run(partial(self._transport.ask, asked, timeout_s))

    def close(self) -> None:
        """Give back every connection."""
        try:
            with contextlib.suppress(Empty):
                self._helpers.run(self._transport.close, _WAIT_LIMIT_S)
        finally:
            self._helpers.close()


class InterruptibleCall:
    """One running request of an `Interruptible`."""

    def __init__(self, call: BlockingCall, helpers: _Helpers) -> None:
        self._call = call
        self._helpers = helpers
        self._process = Process()
        self._left: _Job[Reader | None] | None = None
        self._is_over = False

    def receive(self) -> Reader | None:
        """Wait for the next response; None after the last.

        After an interrupt the next call waits for the response that the interrupted one did not
        return: none is lost.
        """
        if not _is_main():
            return self._call.receive()
        if self._left is None:
            self._left = self._helpers.begin(self._call.receive)
        try:
            reader = self._left.wait()
        except Exception:
            self._left, self._is_over = None, True
            raise
        self._left, self._is_over = None, reader is None
        return reader

    def stop(self) -> None:
        """Stop the request and wait until it has ended; does nothing once it has."""
        with contextlib.suppress(Empty):
            self._helpers.run(self._call.stop, _WAIT_LIMIT_S)
        self._is_over = True

    def __del__(self) -> None:
        # Dropped half-read: a helper may be reading still, and would keep the call alive. No helper
        # does this: Python may be starting a thread right now, or may have stopped to start any.
        if self._process.is_left:
            _inherited.append(self._call)
        elif not self._is_over:
            self._call.cancel()


class _Job(Generic[T]):
    """Something that another thread does."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._outcome: tuple[T | None, BaseException | None] | None = None

    def do(self, idle: SimpleQueue[None]) -> None:
        """Do it, say in `idle` that its thread is free again, and wake who waits."""
        assert self._work is not None
        outcome = _outcome(self._work)
        self._work = None
        idle.put(None)
        self._outcome = outcome
        del outcome  # an error's frames refer to this one: a cycle
        self._ended.put(None)

    def wait(self, limit_s: float | None = None) -> T:
        """Return what it returned once it is done, or raise what it raised.

        Raises:
            Empty: it was not done within `limit_s` seconds; None = no limit.
        """
        while self._outcome is None:
            self._ended.get(timeout=limit_s)
        value, error = self._outcome
        if error is None:
            return cast(T, value)
        self._outcome = (None, None)
        try:
            raise error
        finally:
            del error  # it refers to this frame: a cycle


def _outcome(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return work(), None
    except BaseException as error:  # raised again where it is waited for
        return None, error


class _Helpers:
    """Threads that do jobs of the main thread; mostly there is one.

    After an interrupt its job goes on, and the next one gets another thread.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job[object] | None] = SimpleQueue()
        self._idle: SimpleQueue[None] = SimpleQueue()
        """One entry for each thread that waits for a job."""
        self._lock = threading.RLock()  # a destructor may come in between
        self._is_closed = False

    def run(self, work: Callable[[], T], limit_s: float | None = None) -> T:
        """Do some work and return its result.

        Raises:
            Empty: it was not done within `limit_s` seconds. Only in the main thread.
        """
        if not _is_main():
            return work()
        return self.begin(work).wait(limit_s)

    def begin(self, work: Callable[[], T]) -> _Job[T]:
        """Have some work done, and do not wait for it."""
        job = _Job(work)
        with self._lock:
            if self._is_closed or self._idle.empty():
                arguments = (job, self._jobs, self._idle)
                name = "chattts-client-call"
                # not waited for when Python ends: a client need not be closed
                threading.Thread(target=_help, args=arguments, name=name, daemon=True).start()
            else:
                self._idle.get()
                self._jobs.put(cast("_Job[object]", job))
        return job

    def close(self) -> None:
        """Let the threads end, each after its job."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._jobs.put(None)

    def __del__(self) -> None:
        self.close()


def _help(
    job: _Job[object] | None, jobs: SimpleQueue[_Job[object] | None], idle: SimpleQueue[None]
) -> None:
    """Do jobs until there is None, which stays there for the other threads."""
    while job is not None:
        job.do(idle)
        job = None  # its result is the caller's alone
        job = jobs.get()
    jobs.put(None)


def _is_main() -> bool:
    return threading.get_ident() == threading.main_thread().ident
