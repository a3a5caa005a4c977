"""EngineWorker: the thread that steps the engine, and the doors to it from other threads.

Everything reaches the engine through one queue, so the engine itself is only ever touched by its
own thread.
"""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable

from .chunk import Chunk, ChunkBuilder
from .engine import Engine, StepOutput
from .messages import Abort, Command, Stop, Submit
from .runner import RunnerDeadError
from .stats import Snapshot

SNAPSHOT_S = 0.1
"""Seconds between two snapshots of an engine that works: the sign of life that its router hears."""


class EngineWorker:
    """Runs one engine on one thread and hands what happens to callbacks."""

    def __init__(
        self,
        engine: Engine,
        clock: Callable[[], float],
        on_chunk: Callable[[Chunk], None],
        on_snapshot: Callable[[Snapshot], None],
        on_failure: Callable[[str], None],
        on_death: Callable[[str], None],
    ) -> None:
        """Start the thread, on which all callbacks are called.

        Args:
            engine: not touched by anyone else from now on.
            clock: monotonic seconds; deadlines of requests are on this clock.
            on_chunk: takes each finished chunk, in order.
            on_snapshot: takes the engine's numbers when requests end, when it goes idle, and every
                SNAPSHOT_S while it works.
            on_failure: called with the traceback of a step that raised; its requests have failed,
                the worker goes on.
            on_death: called with the traceback of anything else, or of a runner that is dead; no
                request will be answered any more, so this should end the process.
        """
        self._engine = engine
        self._clock = clock
        self._on_chunk = on_chunk
        self._on_snapshot = on_snapshot
        self._on_failure = on_failure
        self._on_death = on_death
        self._inbox: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._builders: dict[str, ChunkBuilder] = {}
        self._has_news = True
        self._next_snapshot_s = 0.0
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    def put(self, command: Command) -> None:
        """Submit or abort a request; what is unknown to the engine cannot be aborted, silently.

        A submitted request must fit the engine, and its id must not be in use.
        """
        self._inbox.put(command)

    def stop(self) -> None:
        """Cancel what is left, end the thread and wait for it."""
        self._inbox.put(Stop())
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
            except RunnerDeadError:
                raise  # the process ends; what runs here goes on in another one
            except Exception as error:
                self._on_failure(traceback.format_exc())
                outputs = self._engine.fail_all(f"the engine failed: {error}")
            self._deliver(outputs)
            self._tell()

    def _read_inbox(self) -> bool:
        """Apply all commands, waiting for one when idle; return False once told to stop."""
        while not self._engine.has_unfinished or not self._inbox.empty():
            if self._inbox.empty():
                self._tell()
            command = self._inbox.get()
            if isinstance(command, Stop):
                self._cancel_all()
                return False
            if isinstance(command, Abort):
                self._deliver(self._engine.abort(command.request_id))
            else:
                self._add(command)
        return True

    def _add(self, command: Submit) -> None:
        gpt, request = self._engine.gpt, command.request
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
                self._has_news = True
            if chunk is not None:
                self._on_chunk(chunk)

    def _tell(self) -> None:
        """Report the engine's numbers if something ended, or the last report is old."""
        now_s = self._clock()
        if self._has_news or (self._builders and now_s >= self._next_snapshot_s):
            self._has_news = False
            self._next_snapshot_s = now_s + SNAPSHOT_S
            self._on_snapshot(self._engine.snapshot())

    def _cancel_all(self) -> None:
        for request_id in list(self._builders):
            self._deliver(self._engine.abort(request_id))
