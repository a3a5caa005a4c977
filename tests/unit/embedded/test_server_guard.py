"""The guard with a small script in the server's place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
import server_guard
from server_guard import KILL, STOP, Job

DEADLINE_S = 20.0
POLITE = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
WITH_CHILD = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid, flush=True)\n"
RUN = "print('running', flush=True); signal.pause(); signal.pause()"


class Guard:
    """A guard and what it was told to run."""

    def __init__(self, folder: Path, code: str, drain_limit_s: float = DEADLINE_S) -> None:
        self.log = folder / "log"
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", server_guard.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self.private = server_guard.private_directory(self.process.pid)
        self.private.mkdir()
        self.region = server_guard.SHARED_MEMORY / f"{self.name}region"
        self.region.touch()
        job = Job([sys.executable, "-c", code], dict(os.environ), "/", str(self.log), drain_limit_s)
        self.order(json.dumps(asdict(job)).encode() + b"\n")
        self.server_pid = self.says()

    @property
    def name(self) -> str:
        return server_guard.run_name(self.process.pid)

    def order(self, order: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(order)

    def says(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def wait_for_log(self, text: str) -> None:
        wait_until(lambda: text in self.log.read_text())

    def hang_up(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def close(self) -> None:
        self.hang_up()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.wait(DEADLINE_S)

    def traces(self) -> list[Path]:
        return [path for path in (self.private, self.region) if path.exists()]


def wait_until(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def guards() -> Iterator[list[Guard]]:
    started: list[Guard] = []
    yield started
    for guard in started:
        guard.process.kill()
        guard.close()
        server_guard.remove_traces(guard.process.pid)


def start(guards: list[Guard], folder: Path, code: str, drain_limit_s: float = 20.0) -> Guard:
    guards.append(Guard(folder, code, drain_limit_s))
    return guards[-1]


def test_stop_lets_the_server_end_by_itself(guards: list[Guard], tmp_path: Path) -> None:
    guard = start(guards, tmp_path, POLITE + RUN)
    guard.wait_for_log("running")
    guard.order(STOP)
    assert guard.says() == 0
    assert guard.process.wait(DEADLINE_S) == 0
    assert guard.traces() == []


def test_server_that_does_not_drain_is_killed(guards: list[Guard], tmp_path: Path) -> None:
    guard = start(guards, tmp_path, STUBBORN + RUN, drain_limit_s=0.1)
    guard.wait_for_log("running")
    guard.order(STOP)
    assert guard.process.wait(DEADLINE_S) == 128 + signal.SIGKILL
    assert guard.traces() == []


def test_kill_does_not_wait(guards: list[Guard], tmp_path: Path) -> None:
    guard = start(guards, tmp_path, STUBBORN + RUN)
    guard.wait_for_log("running")
    guard.order(STOP)
    guard.order(KILL)
    assert guard.process.wait(DEADLINE_S) == 128 + signal.SIGKILL


def test_death_of_the_launcher_is_an_order_to_stop(guards: list[Guard], tmp_path: Path) -> None:
    guard = start(guards, tmp_path, POLITE + RUN)
    guard.wait_for_log("running")
    guard.hang_up()
    assert guard.process.wait(DEADLINE_S) == 0
    assert guard.traces() == []


def test_signal_to_the_guard_is_an_order_to_stop(guards: list[Guard], tmp_path: Path) -> None:
    guard = start(guards, tmp_path, POLITE + RUN)
    guard.wait_for_log("running")
    guard.process.send_signal(signal.SIGTERM)
    assert guard.process.wait(DEADLINE_S) == 0
    assert guard.traces() == []


def test_log_is_there_until_the_launcher_has_read_it(guards: list[Guard], tmp_path: Path) -> None:
    guard = start(guards, tmp_path, "raise SystemExit(3)")
    assert guard.says() == 3
    assert guard.traces() == [guard.private]
    guard.order(STOP)
    assert guard.process.wait(DEADLINE_S) == 3
    assert guard.traces() == []


def test_processes_that_a_killed_server_left_are_killed(
    guards: list[Guard], tmp_path: Path
) -> None:
    guard = start(guards, tmp_path, POLITE + WITH_CHILD + RUN)
    guard.wait_for_log("running")
    child = int(guard.log.read_text().split()[0])
    os.kill(guard.server_pid, signal.SIGKILL)
    assert guard.says() == 128 + signal.SIGKILL
    assert not server_guard.is_alive(child)


def test_server_ends_when_the_guard_is_killed(guards: list[Guard], tmp_path: Path) -> None:
    guard = start(guards, tmp_path, POLITE + RUN)
    guard.wait_for_log("running")
    guard.process.kill()
    guard.process.wait(DEADLINE_S)
    wait_until(lambda: not server_guard.is_alive(guard.server_pid))


@pytest.mark.parametrize("order", [b"", STOP, KILL])
def test_guard_without_a_job_removes_what_was_prepared(order: bytes) -> None:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", server_guard.__file__], stdin=subprocess.PIPE
    )
    private = server_guard.private_directory(process.pid)
    private.mkdir()
    process.communicate(order, timeout=DEADLINE_S)
    assert process.returncode == 0
    assert not private.exists()


def test_only_files_of_the_dead_are_stale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    monkeypatch.setattr(server_guard, "SHARED_MEMORY", tmp_path)
    dead, living = (tmp_path / f"{server_guard.run_name(p)}x" for p in (ended.pid, os.getpid()))
    foreign = tmp_path / f"chattts-server-1-{ended.pid}-x"
    unrelated = tmp_path / "chattts-server-notes"
    for path in (dead, living, foreign, unrelated):
        path.touch()
    server_guard.remove_stale_traces()
    assert not dead.exists()
    assert all(path.exists() for path in (living, foreign, unrelated))
