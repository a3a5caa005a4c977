"""Guards of embedded servers as processes, for the tests in this folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import server_guard
import server_traces
from server_files import free_port
from supervisor import Job

DEADLINE_S = 20.0
FAKE_SERVER = Path(__file__).with_name("fake_server.py")

_EMBEDDED = Path(server_guard.__file__).parent
_IMPATIENT = f"""
import sys
sys.path.insert(0, {str(_EMBEDDED)!r})
import model_processes, server_guard, server_health, supervisor
supervisor.START_INTERVAL_S = server_health.START_INTERVAL_S = 0.02
server_health.PROBE_INTERVAL_S = 0.1
server_health.PROBE_LIMIT_S = server_health.SICK_AFTER_S = 0.5
model_processes.SCAN_INTERVAL_S = 0.05
model_processes.DEAD_AFTER_S = 0.2
supervisor._WATCH_INTERVAL_S = 0.02
supervisor._PAUSE_S = 0.02
supervisor.DRAIN_MARGIN_S = 0.5
sys.exit(server_guard.main())
"""
"""The guard with shorter times."""


def job(command: Sequence[str], log_file: Path, exit_timeout_s: float = DEADLINE_S) -> Job:
    """A job that is not watched, with endpoints that nobody listens at."""
    port = free_port("127.0.0.1")
    return Job(
        command=list(command),
        environment=dict(os.environ),
        working_directory="/",
        log_file=str(log_file),
        host="127.0.0.1",
        http_port=port,
        metrics_port=port,
        exit_timeout_s=exit_timeout_s,
        restart=False,
    )


def fake_job(folder: Path, log_file: Path, exit_timeout_s: float = DEADLINE_S) -> Job:
    """A watched fake server that takes its orders from `folder`."""
    unwatched = job([], log_file, exit_timeout_s)
    command = [sys.executable, str(FAKE_SERVER), str(unwatched.http_port), str(folder)]
    return replace(unwatched, command=command, restart=True)


class Guard:
    """A guard, impatient, and what it was told to run."""

    def __init__(self, wanted: Job) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *server_guard.INTERPRETER_OPTIONS, "-c", _IMPATIENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert wanted.log_file is not None
        self.log = Path(wanted.log_file)
        self.private = server_traces.private_directory(self.process.pid)
        self.private.mkdir()
        self.region = server_traces.SHARED_MEMORY / f"{self.name}region"
        self.region.touch()
        self.order(json.dumps(asdict(wanted)).encode() + b"\n")
        self.server_pid = self.says("started")

    @property
    def name(self) -> str:
        return server_traces.run_name(self.process.pid)

    def order(self, order: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(order)

    def says(self, what: str) -> int:
        """Return the number in its next line, which must be about `what`; "well" is skipped."""
        assert self.process.stdout is not None
        said, number = b"well", b""
        while said == b"well":
            said, number = self.process.stdout.readline().split()
        assert said.decode() == what
        return int(number)

    def wait_for_log(self, text: str) -> None:
        wait_until(lambda: text in self.log.read_text())

    def hang_up(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def close(self) -> None:
        self.process.kill()
        self.hang_up()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.wait(DEADLINE_S)
        server_traces.remove_traces(self.process.pid)

    def traces(self) -> list[Path]:
        return [path for path in (self.private, self.region) if path.exists()]


def wait_until(condition: Callable[[], bool]) -> None:
    """Poll until `condition` holds; fail after DEADLINE_S."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
