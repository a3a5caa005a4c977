"""The guard with a small script in the server's place: orders, deaths, and what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import server_guard
import server_traces
from server_processes import is_alive
from supervisor import KILL, STOP, Job
from unit.embedded.guards import DEADLINE_S, Guard, job, wait_until

POLITE = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
WITH_CHILD = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid, flush=True)\n"
WITH_FAR_CHILD = WITH_CHILD.replace("'60']", "'60'], start_new_session=True")
RUN = "print('running', flush=True); signal.pause(); signal.pause()"

StartGuard = Callable[[Job], Guard]


def script(folder: Path, code: str, exit_timeout_s: float = DEADLINE_S) -> Job:
    return job([sys.executable, "-c", code], folder / "log", exit_timeout_s)


def test_stop_lets_the_server_end_by_itself(start_guard: StartGuard, tmp_path: Path) -> None:
    guard = start_guard(script(tmp_path, POLITE + RUN))
    guard.wait_for_log("running")
    guard.order(STOP)
    assert guard.says("ended") == 0
    assert guard.process.wait(DEADLINE_S) == 0
    assert guard.traces() == []


def test_server_that_does_not_drain_is_killed(start_guard: StartGuard, tmp_path: Path) -> None:
    guard = start_guard(script(tmp_path, STUBBORN + RUN, exit_timeout_s=0.1))
    guard.wait_for_log("running")
    guard.order(STOP)
    assert guard.process.wait(DEADLINE_S) == 128 + signal.SIGKILL
    assert guard.traces() == []


def test_kill_does_not_wait(start_guard: StartGuard, tmp_path: Path) -> None:
    guard = start_guard(script(tmp_path, STUBBORN + RUN))
    guard.wait_for_log("running")
    guard.order(STOP)
    guard.order(KILL)
    assert guard.process.wait(DEADLINE_S) == 128 + signal.SIGKILL


def test_death_of_the_launcher_is_an_order_to_stop(start_guard: StartGuard, tmp_path: Path) -> None:
    guard = start_guard(script(tmp_path, POLITE + RUN))
    guard.wait_for_log("running")
    guard.hang_up()
    assert guard.process.wait(DEADLINE_S) == 0
    assert guard.traces() == []


def test_signal_to_the_guard_is_an_order_to_stop(start_guard: StartGuard, tmp_path: Path) -> None:
    guard = start_guard(script(tmp_path, POLITE + RUN))
    guard.wait_for_log("running")
    guard.process.send_signal(signal.SIGTERM)
    assert guard.process.wait(DEADLINE_S) == 0
    assert guard.traces() == []


def test_log_is_there_until_the_launcher_has_read_it(
    start_guard: StartGuard, tmp_path: Path
) -> None:
    guard = start_guard(script(tmp_path, "raise SystemExit(3)"))
    assert guard.says("ended") == 3
    assert guard.traces() == [guard.private]
    guard.order(STOP)
    assert guard.process.wait(DEADLINE_S) == 3
    assert guard.traces() == []


@pytest.mark.parametrize("with_child", [WITH_CHILD, WITH_FAR_CHILD])
def test_processes_that_a_killed_server_left_are_killed(
    start_guard: StartGuard, tmp_path: Path, with_child: str
) -> None:
    guard = start_guard(script(tmp_path, POLITE + with_child + RUN))
    guard.wait_for_log("running")
    child = int(guard.log.read_text().split()[0])
    os.kill(guard.server_pid, signal.SIGKILL)
    assert guard.says("ended") == 128 + signal.SIGKILL
    assert not is_alive(child)


def test_server_ends_when_the_guard_is_killed(start_guard: StartGuard, tmp_path: Path) -> None:
    guard = start_guard(script(tmp_path, POLITE + RUN))
    guard.wait_for_log("running")
    guard.process.kill()
    guard.process.wait(DEADLINE_S)
    wait_until(lambda: not is_alive(guard.server_pid))


@pytest.mark.parametrize("order", [b"", STOP, KILL])
def test_guard_without_a_job_removes_what_was_prepared(order: bytes) -> None:
    process = subprocess.Popen(
        [sys.executable, *server_guard.INTERPRETER_OPTIONS, server_guard.__file__],
        stdin=subprocess.PIPE,
    )
    private = server_traces.private_directory(process.pid)
    private.mkdir()
    process.communicate(order, timeout=DEADLINE_S)
    assert process.returncode == 0
    assert not private.exists()


def test_only_files_of_the_dead_are_stale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    monkeypatch.setattr(server_traces, "SHARED_MEMORY", tmp_path)
    dead, living = (tmp_path / f"{server_traces.run_name(p)}x" for p in (ended.pid, os.getpid()))
    foreign = tmp_path / f"chattts-server-1-{ended.pid}-x"
    unrelated = tmp_path / "chattts-server-notes"
    for path in (dead, living, foreign, unrelated):
        path.touch()
    server_traces.remove_stale_traces()
    assert not dead.exists()
    assert all(path.exists() for path in (living, foreign, unrelated))
