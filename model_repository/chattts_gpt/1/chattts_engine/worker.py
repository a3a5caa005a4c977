"""EngineWorker: the thread that steps the engine, and the doors to it from other threads.

Admission is decided here, at once and under a lock. Everything else reaches the engine through one
queue, so the engine itself is only ever touched by its own thread.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from .chunk import Chunk, ChunkBuilder
from .engine import Engine, StepOutput
from .sequence import GenerationRequest


class QueueFullError(Exception):
    """Too many requests are waiting; the caller may come back later."""


@dataclass(frozen=True, slots=True)
class _Add:
    request: GenerationRequest
    arrival_s: float


@dataclass(frozen=True, slots=True)
class _Abort:
    request_id: str


@dataclass(frozen=True, slots=True)
class _Stop:
    pass


class EngineWorker:
    """Runs one engine on one thread and hands finished chunks to a callback."""

    def __init__(
        self,
        engine: Engine,
        clock: Callable[[], float],
        on_chunk: Callable[[Chunk], None],
        on_failure: Callable[[str], None],
        on_death: Callable[[str], None],
    ) -> None:
        """Start the thread.

        Args:
            engine: not touched by anyone else from now on.
            clock: monotonic seconds; deadlines of requests are on this clock.
            on_chunk: called on the engine's thread, must not block.
            on_failure: called with the traceback of a step that raised; its requests have failed,
                the worker goes on.
            on_death: called with the traceback of anything else; no request will be answered any
                more, so this should end the process.
        """
        self._engine = engine
        self._clock = clock
        self._on_chunk = on_chunk
        self._on_failure = on_failure
        self._on_death = on_death
        self._inbox: queue.SimpleQueue[_Add | _Abort | _Stop] = queue.SimpleQueue()
        self._builders: dict[str, ChunkBuilder] = {}
        self._max_unfinished = engine.config.max_num_seqs + engine.config.max_num_waiting
        self._lock = threading.Lock()
        self._unfinished: set[str] = set()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    @property
    def num_unfinished(self) -> int:
        """Requests accepted and not yet answered in full."""
        return len(self._unfinished)

    def submit(self, request: GenerationRequest) -> None:
        """Accept a request, or refuse it at once.

        Raises:
            QueueFullError: as many requests wait as may wait, or the worker is stopping.
            ValueError: the request can never fit, or its id is in use.
        """
        self._engine.check_fits(request)
        with self._lock:
            if self._is_stopping:
                raise QueueFullError("the engine is shutting down")
            if request.id in self._unfinished:
                raise ValueError(f"id: {request.id!r} is in use by a running request")
            if len(self._unfinished) >= self._max_unfinished:
                raise QueueFullError(
                    f"{self._engine.config.max_num_waiting} requests are waiting already; "
                    "try again in a second"
                )
            self._unfinished.add(request.id)
        self._inbox.put(_Add(request, self._clock()))

    def abort(self, request_id: str) -> None:
        """End a request with finish reason "cancelled"; an unknown id is ignored."""
        self._inbox.put(_Abort(request_id))

    def stop(self) -> None:
        """Cancel what is left, end the thread and wait for it."""
        with self._lock:
            self._is_stopping = True
        self._inbox.put(_Stop())
        self._thread.join()

    def _run(self) -> None:
        try:
            self._step_until_stopped()
        except Exception:
            self._on_death(traceback.format_exc())

    def _step_until_stopped(self) -> None:
        while self._read_inbox():
            try:
                outputs = self._engine.step(self._clock())
            except Exception as error:
                self._on_failure(traceback.format_exc())
                outputs = self._engine.fail_all(f"the engine failed: {error}")
            self._deliver(outputs)

    def _read_inbox(self) -> bool:
        """Apply all commands, waiting for one when idle; return False once told to stop."""
        while not self._engine.has_unfinished or not self._inbox.empty():
            command = self._inbox.get()
            if isinstance(command, _Stop):
                self._cancel_all()
                return False
            if isinstance(command, _Abort):
                self._deliver(self._engine.abort(command.request_id))
            else:
                self._add(command)
        return True

    def _add(self, command: _Add) -> None:
        gpt = self._engine.gpt
        request = command.request
        self._builders[request.id] = ChunkBuilder(request, gpt.num_codebooks, gpt.hidden_size)
        self._engine.add_request(request, command.arrival_s)

    def _deliver(self, outputs: list[StepOutput]) -> None:
        """Turn step outputs into chunks, in order."""
        now_s = self._clock()
        for output in outputs:
            request_id = output.sequence.id
            chunk = self._builders[request_id].push(output, now_s)
            if output.finish_reason is not None:
                del self._builders[request_id]
                with self._lock:
                    self._unfinished.discard(request_id)
            if chunk is not None:
                self._on_chunk(chunk)

    def _cancel_all(self) -> None:
        for request_id in list(self._builders):
            self._deliver(self._engine.abort(request_id))
