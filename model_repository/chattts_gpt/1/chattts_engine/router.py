"""EngineRouter: admission, and which engine process runs which request.

Requests wait here, in the order of the scheduler, until an engine has a free slot: so engines share
the work evenly, and none idles while a request waits. An engine that dies or falls silent is
replaced, and its requests are given away again; since the same request gives the same tokens
anywhere, what had been delivered is left out and the caller sees nothing but a pause.
"""

from __future__ import annotations

import threading
import time
from bisect import insort
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .chunk import Chunk, ending_chunk
from .config import EngineConfig, GPTConfig
from .engine_handle import EngineStartError
from .messages import Abort, Failure, Ready, Submit
from .routed import MAX_DEATHS, Engine, Routed
from .scheduler import queue_key
from .sequence import FinishReason, GenerationRequest
from .stats import Snapshot

MAX_FAILED_STARTS = 3
"""Starts of an engine in a row that may fail before the model gives up."""
SILENCE_LIMIT_S = 30.0
"""An engine that has work and says nothing for so long is killed; it speaks every 0.1 s."""
RETRY_START_S = 1.0


class QueueFullError(Exception):
    """Too many requests are waiting; the caller may come back later."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Where the router's news goes; none may block or call the router."""

    on_chunk: Callable[[Chunk], None]
    """Takes each chunk, those of a request in order."""
    on_snapshot: Callable[[int, Snapshot], None]
    """Takes the numbers of the engine with an index."""
    on_failure: Callable[[str], None]
    """Takes what went wrong, for the log."""
    on_death: Callable[[str], None]
    """Takes why no request will be answered any more; should end the process."""


class EngineRouter:
    """Runs several engine processes as one."""

    def __init__(
        self,
        start_engine: Callable[..., Engine],
        config: EngineConfig,
        gpt: GPTConfig,
        callbacks: Callbacks,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Know how to start engines; `start` does.

        Args:
            start_engine: called as start_engine(index, on_message, on_end); returns a ready engine
                or raises EngineStartError.
            config: limits of each engine; max_num_waiting bounds the queue before all of them.
            gpt: sizes of the weights.
            callbacks: where news goes.
            clock: monotonic seconds; deadlines of requests are on this clock.
        """
        self.max_num_tokens = 0
        """Longest prompt plus generation that every engine can hold."""
        self.num_engines = 0
        self.num_deaths: dict[int, int] = {}
        """Engines that died, by index."""
        self._start_engine = start_engine
        self._config = config
        self._gpt = gpt
        self._callbacks = callbacks
        self._clock = clock
        self._lock = threading.RLock()
        self._assigned: dict[Engine, dict[str, Routed]] = {}
        self._requests: dict[str, Routed] = {}
        self._waiting: list[Routed] = []
        self._stopping = threading.Event()

    @property
    def num_unfinished(self) -> int:
        """Requests accepted and not yet answered in full."""
        return len(self._requests)

    @property
    def num_waiting(self) -> dict[int, int]:
        """Requests that wait for an engine, by priority."""
        with self._lock:
            return Counter(routed.request.priority for routed in self._waiting)

    def start(self) -> Ready:
        """Start the engines and wait until they take requests.

        Returns:
            What the first one says of itself.

        Raises:
            EngineStartError: one cannot load; none is left running.
        """
        first = self._start_one(0)
        self.num_engines = self._config.num_engines or first.ready.num_devices
        try:
            others = [self._start_one(index) for index in range(1, self.num_engines)]
        except EngineStartError:
            self.stop()
            raise
        self.max_num_tokens = min(engine.ready.max_num_tokens for engine in (first, *others))
        return first.ready

    def submit(self, request: GenerationRequest) -> None:
        """Accept a request, or refuse it at once.

        Raises:
            QueueFullError: as many requests wait as may wait, or the router is stopping.
            ValueError: the request can never fit, or its id is in use.
        """
        request.check_fits(self.max_num_tokens)
        with self._lock:
            if self._stopping.is_set():
                raise QueueFullError("the engine is shutting down")
            if request.id in self._requests:
                raise ValueError(f"id: {request.id!r} is in use by a running request")
            most = self.num_engines * self._config.max_num_seqs + self._config.max_num_waiting
            if len(self._requests) >= most:
                raise QueueFullError(
                    f"{self._config.max_num_waiting} requests are waiting already; "
                    "try again in a second"
                )
            routed = self._requests[request.id] = Routed(request, self._clock())
            self._wait(routed)
            self._dispatch()

    def abort(self, request_id: str) -> None:
        """End a request with finish reason "cancelled"; an unknown id is ignored."""
        with self._lock:
            routed = self._requests.get(request_id)
            if routed is None:
                return
            routed.is_aborted = True
            if routed.engine is not None:
                routed.engine.send(Abort(request_id))
            else:
                self._end_waiting([routed], "cancelled")

    def tick(self) -> None:
        """End waiting requests whose deadline has passed, and engines that have fallen silent.

        To be called a few times a second.
        """
        with self._lock:
            now_s = self._clock()
            self._end_waiting([r for r in self._waiting if r.is_late(now_s)], "deadline")
            silent = [
                engine
                for engine, requests in self._assigned.items()
                if requests and now_s - engine.last_heard_s > SILENCE_LIMIT_S
            ]
        for engine in silent:
            self._callbacks.on_failure(f"engine {engine.index} is silent: killed")
            engine.kill()

    def stop(self) -> None:
        """Cancel what is left, end the engines and wait for them."""
        with self._lock:
            self._stopping.set()
            self._end_waiting(list(self._waiting), "cancelled")
            engines = list(self._assigned)
        for engine in engines:
            engine.stop()

    def _start_one(self, index: int) -> Engine:
        engine = self._start_engine(index, self._on_message, self._on_end)
        with self._lock:
            self._assigned[engine] = {}
            engine.listen()
            self._dispatch()
            is_late = self._stopping.is_set()
        if is_late:
            engine.stop()
        return engine

    def _wait(self, routed: Routed) -> None:
        def place(other: Routed) -> float:
            return queue_key(other.arrival_s, other.request.priority, self._config)

        insort(self._waiting, routed, key=place)

    def _end_waiting(self, ended: list[Routed], reason: FinishReason, error: str = "") -> None:
        for routed in ended:
            if routed in self._waiting:
                self._waiting.remove(routed)
            del self._requests[routed.request.id]
            queue_s = self._clock() - routed.arrival_s if routed.queue_s is None else routed.queue_s
            num_delivered = routed.num_delivered
            chunk = ending_chunk(routed.request, self._gpt, reason, error, num_delivered, queue_s)
            self._callbacks.on_chunk(chunk)

    def _dispatch(self) -> None:
        """Give waiting requests to engines, in order, while there is room for the first one."""
        while self._waiting and (engine := self._engine_for(self._waiting[0])):
            routed = self._waiting.pop(0)
            routed.engine = engine
            if not self._assigned[engine]:
                engine.last_heard_s = self._clock()  # an idle engine says nothing
            self._assigned[engine][routed.request.id] = routed
            engine.send(Submit(routed.request, routed.arrival_s))

    def _engine_for(self, routed: Routed) -> Engine | None:
        """Return the engine with the fewest requests, None if none has room for this one."""
        room = 0 if routed.runs_alone else self._config.max_num_seqs - 1
        engines = [
            engine
            for engine, requests in self._assigned.items()
            if len(requests) <= room and not any(other.runs_alone for other in requests.values())
        ]
        return min(engines, key=lambda engine: len(self._assigned[engine]), default=None)

    def _on_message(self, engine: Engine, message: Any) -> None:
        if isinstance(message, Chunk):
            with self._lock:
                self._take_chunk(engine, message)
        elif isinstance(message, Snapshot):
            self._callbacks.on_snapshot(engine.index, message)
        elif isinstance(message, Failure):
            self._callbacks.on_failure(message.trace)

    def _take_chunk(self, engine: Engine, chunk: Chunk) -> None:
        """Pass on what is new in a chunk; an engine that runs a request again repeats the rest."""
        routed = self._assigned[engine][chunk.request_id]
        is_last = chunk.finish_reason is not None
        num_new = chunk.num_generated - routed.num_delivered
        if is_last:
            del self._assigned[engine][chunk.request_id], self._requests[chunk.request_id]
            self._dispatch()
        if num_new <= 0 and not is_last:
            return
        if routed.queue_s is None:
            routed.queue_s = chunk.queue_s
        routed.num_delivered = max(routed.num_delivered, chunk.num_generated)
        self._callbacks.on_chunk(replace(chunk.last(num_new), queue_s=routed.queue_s))

    def _on_end(self, engine: Engine) -> None:
        """Give the requests of an engine that has ended to others, and start another one."""
        with self._lock:
            orphans = self._assigned.pop(engine)
            if self._stopping.is_set():
                return
            self.num_deaths[engine.index] = self.num_deaths.get(engine.index, 0) + 1
            self._callbacks.on_failure(
                f"engine {engine.index} died; its {len(orphans)} requests run again on another"
            )
            for routed in orphans.values():
                self._give_away(routed)
            self._dispatch()
        threading.Thread(target=self._replace, args=(engine.index,), daemon=True).start()

    def _give_away(self, routed: Routed) -> None:
        routed.engine = None
        routed.num_deaths += 1
        # It has had its slot: the queue's deadline is met.
        routed.request = replace(routed.request, queue_deadline_s=None)
        if routed.is_aborted:
            self._end_waiting([routed], "cancelled")
        elif routed.num_deaths == MAX_DEATHS:
            error = f"{MAX_DEATHS} engines died while they ran this request"
            self._end_waiting([routed], "error", error)
        else:
            self._wait(routed)

    def _replace(self, index: int) -> None:
        for _ in range(MAX_FAILED_STARTS):
            try:
                self._start_one(index)
            except EngineStartError as error:
                reason = str(error)
                self._callbacks.on_failure(f"engine {index} does not start: {reason}")
                if self._stopping.wait(RETRY_START_S):
                    return
            else:
                return
        self._callbacks.on_death(f"engine {index} does not start: {reason}")
