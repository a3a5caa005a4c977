"""EngineHandle: the router's side of one engine process."""

from __future__ import annotations

import contextlib
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .messages import Command, EngineJob, Ready, Refused, Stop

STOP_LIMIT_S = 10.0
"""Seconds that an engine gets to end by itself."""
_PACKAGE = Path(__file__).resolve().parent


class EngineStartError(RuntimeError):
    """An engine process could not load; the message says why."""


class EngineHandle:
    """Starts one engine process; reads from it and writes to it on threads of its own.

    So nobody waits for a process that hangs.
    """

    def __init__(
        self,
        job: EngineJob,
        clock: Callable[[], float],
        on_message: Callable[[EngineHandle, Any], None],
        on_end: Callable[[EngineHandle], None],
    ) -> None:
        """Start the process and wait until it takes requests.

        Args:
            job: what it shall run.
            clock: monotonic seconds.
            on_message: takes each chunk, snapshot and failure, in order, on the handle's thread;
                only after `listen`.
            on_end: called on the same thread, once, when the process has ended by whatever cause.

        Raises:
            EngineStartError: it cannot load, or ended before it could say why.
        """
        self.index = job.index
        self.last_heard_s = clock()
        self._clock = clock
        self._on_message = on_message
        self._on_end = on_end
        self._outbox: queue.SimpleQueue[Command] = queue.SimpleQueue()
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"{_PACKAGE.name}.engine_process", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=_PACKAGE.parent,  # where -m looks for the package
            )
        self._connection: Connection[Any, Any] = Connection(ours.detach())
        self.ready = self._wait_until_ready(job)

    def _wait_until_ready(self, job: EngineJob) -> Ready:
        try:
            self._connection.send(job)
            answer = self._connection.recv()
        except (EOFError, OSError):
            answer = Refused("it ended while it loaded")
        if isinstance(answer, Refused):
            self.kill()
            self._connection.close()
            raise EngineStartError(answer.reason)
        assert isinstance(answer, Ready)
        return answer

    def listen(self) -> None:
        """Start to pass on what the engine says and what it is sent."""
        for work in (self._read, self._write):
            threading.Thread(target=work, name=f"engine {self.index}", daemon=True).start()

    def send(self, command: Command) -> None:
        """Send a command; it is lost if the process ends before it reads it."""
        self._outbox.put(command)

    def stop(self) -> None:
        """Cancel what runs there, and wait until the process has ended."""
        self.send(Stop())
        try:
            self.process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.wait()

    def _read(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                message = self._connection.recv()
                self.last_heard_s = self._clock()
                self._on_message(self, message)
        self.process.wait()
        self.send(Stop())  # ends the writing thread
        self._on_end(self)

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                command = self._outbox.get()
                self._connection.send(command)
                if isinstance(command, Stop):
                    return
