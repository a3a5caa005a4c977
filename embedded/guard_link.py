"""The launcher's end of a guard: starts it, gives it its job and orders, hears what it says."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from dataclasses import asdict

import server_guard
from server_traces import remove_traces
from supervisor import STARTED, WELL, Job


class GuardLink:
    """One guard, alive until `end`."""

    def __init__(self) -> None:
        """Start it; it waits for its job."""
        self._process = subprocess.Popen(
            [sys.executable, *server_guard.INTERPRETER_OPTIONS, server_guard.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders = self._process.stdin
        self._reports = self._process.stdout
        self._server_pid: int | None = None
        self._is_well = False
        self._exit_code: int | None = None
        remove_traces(self.pid)

    @property
    def pid(self) -> int:
        """The guard's process id, which names the server's files."""
        return self._process.pid

    @property
    def server_pid(self) -> int | None:
        """The server's process id, another one after a restart; None once it has ended."""
        self._hear()
        return self._server_pid

    @property
    def is_well(self) -> bool:
        """Whether the server has been found well: from then on it is started again, if at all."""
        self._hear()
        return self._is_well

    def give(self, job: Job) -> None:
        """Hand it the job and wait until the server is started."""
        with open(self._orders.fileno(), "wb", closefd=False) as orders:
            orders.write(json.dumps(asdict(job)).encode() + b"\n")
        self._read_report()

    def wait(self) -> int:
        """Wait until the server has ended by itself for good; return its exit code."""
        while self._exit_code is None:
            self._read_report()
        return self._exit_code

    def end(self, order: bytes) -> int:
        """Give an order (STOP or KILL); return the server's exit code when nothing is left."""
        with contextlib.suppress(BrokenPipeError):  # where the guard was killed
            os.write(self._orders.fileno(), order)
        code = self._process.wait()
        remove_traces(self.pid)
        self._orders.close()
        self._reports.close()
        return code

    def _hear(self) -> None:
        """Read the reports that are there."""
        while self._exit_code is None and select.select([self._reports], [], [], 0)[0]:
            self._read_report()

    def _read_report(self) -> None:
        """Wait for the next report: a start, or the end, as the guard's own death is."""
        what, _, number = self._reports.readline().decode().partition(" ")
        if what == STARTED:
            self._server_pid = int(number)
        elif what == WELL:
            self._is_well = True
        else:
            self._server_pid, self._exit_code = None, int(number or "-1")
