"""The supervisor with a fake server: what makes it start again, give up, or drain."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from server_processes import children, is_alive
from supervisor import MAX_QUICK_ENDS, RESTARTS_VARIABLE, STOP, Job
from unit.embedded.guards import DEADLINE_S, Guard, fake_job, wait_until

StartGuard = Callable[[Job], Guard]


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """What the fake server is told."""
    folder = tmp_path / "told"
    folder.mkdir()
    return folder


def start(start_guard: StartGuard, told: Path, exit_timeout_s: float = DEADLINE_S) -> Guard:
    """A guard whose fake server listens."""
    guard = start_guard(fake_job(told, told.parent / "log", exit_timeout_s))
    wait_until((told / "starts").exists)
    return guard


def started(told: Path) -> list[int]:
    """Process ids of the servers that came to listen."""
    return [int(line) for line in (told / "starts").read_text().split()]


def num_restarts(server_pid: int) -> int:
    """How often it was started again, as a server is told."""
    environment = Path(f"/proc/{server_pid}/environ").read_bytes().decode().split("\0")
    (value,) = (line for line in environment if line.startswith(f"{RESTARTS_VARIABLE}="))
    return int(value.partition("=")[2])


def end_at_the_next_check(told: Path) -> None:
    """Let the server end after it was asked how it is, with exit code 3."""
    (told / "code").write_text("3")


def add_model_process(told: Path) -> None:
    """Let the server have a process for a model."""
    model = told / "speech" / "1" / "model.py"
    model.parent.mkdir(parents=True)
    model.write_text("import time; time.sleep(60)")


def assert_well(guard: Guard, told: Path) -> None:
    """It is served, by the last process that was started, and ends in order."""
    assert is_alive(started(told)[-1])
    guard.order(STOP)
    assert guard.says("ended") == 0


def test_server_that_has_ended_is_started_again(start_guard: StartGuard, told: Path) -> None:
    guard = start(start_guard, told)
    assert num_restarts(guard.server_pid) == 0
    end_at_the_next_check(told)
    second = guard.says("started")
    (told / "code").unlink()
    assert second != guard.server_pid
    guard.wait_for_log("the server ended by itself with exit code 3")
    guard.wait_for_log("the server is started again")
    wait_until(lambda: second in started(told))
    assert num_restarts(second) == 1
    assert not guard.region.exists()  # what it left in shared memory
    assert_well(guard, told)


def test_server_with_a_dead_model_process_is_killed_and_started_again(
    start_guard: StartGuard, told: Path
) -> None:
    add_model_process(told)
    guard = start(start_guard, told)
    guard.wait_for_log("the server is well")
    (child,) = children(guard.server_pid)
    os.kill(child, signal.SIGKILL)
    guard.says("started")
    assert not is_alive(guard.server_pid)
    guard.wait_for_log(f"process {child} has died, of speech/versions/1")
    wait_until(lambda: len(started(told)) == 2)
    assert_well(guard, told)


@pytest.mark.parametrize(
    ("sign", "reason"), [("health", "s: HTTP 503"), ("silent", "s: no answer")]
)
def test_server_that_fails_its_health_checks_is_started_again(
    start_guard: StartGuard, told: Path, sign: str, reason: str
) -> None:
    guard = start(start_guard, told)
    guard.wait_for_log("the server is well")  # a sickness from the start would not count
    (told / sign).write_text("503")
    guard.says("started")
    (told / sign).unlink()
    guard.wait_for_log(reason)
    wait_until(lambda: len(started(told)) == 2)
    assert_well(guard, told)


def test_server_that_has_never_been_well_is_not_started_again(
    start_guard: StartGuard, told: Path
) -> None:
    (told / "health").write_text("503")
    (told / "code").write_text("7")
    guard = start(start_guard, told)
    assert guard.says("ended") == 7
    assert len(started(told)) == 1


def test_server_whose_model_process_dies_while_it_starts_is_killed_also_if_it_is_not_watched_later(
    start_guard: StartGuard, told: Path
) -> None:
    add_model_process(told)
    (told / "health").write_text("503")
    guard = start_guard(replace(fake_job(told, told.parent / "log"), restart=False))
    wait_until(lambda: len(children(guard.server_pid)) == 1)
    (child,) = children(guard.server_pid)
    os.kill(child, signal.SIGKILL)
    assert guard.says("ended") == 128 + signal.SIGKILL
    guard.wait_for_log(f"process {child} has died")  # perhaps before its model was seen


def test_server_that_was_not_to_be_restarted_is_not(start_guard: StartGuard, told: Path) -> None:
    guard = start_guard(replace(fake_job(told, told.parent / "log"), restart=False))
    os.kill(guard.server_pid, signal.SIGKILL)
    assert guard.says("ended") == 128 + signal.SIGKILL


@pytest.mark.parametrize(("code", "result"), [("3", 3), ("0", 1)])
def test_server_that_ends_again_and_again_is_given_up(
    start_guard: StartGuard, told: Path, code: str, result: int
) -> None:
    (told / "code").write_text(code)
    guard = start(start_guard, told)
    for _ in range(MAX_QUICK_ENDS - 1):
        guard.says("started")
    assert guard.says("ended") == result
    assert len(started(told)) == MAX_QUICK_ENDS
    assert "given up" in guard.log.read_text()


def test_drain_waits_for_running_requests(start_guard: StartGuard, told: Path) -> None:
    (told / "running").write_text("2")
    guard = start(start_guard, told)
    guard.order(STOP)
    drain_file = guard.private / "drain"
    wait_until(drain_file.exists)
    time.sleep(0.3)
    assert is_alive(guard.server_pid)
    (told / "running").write_text("0")
    assert guard.says("ended") == 0
    assert guard.process.wait(DEADLINE_S) == 0
    assert guard.traces() == []


def test_drain_ends_at_the_limit(start_guard: StartGuard, told: Path) -> None:
    (told / "running").write_text("2")
    guard = start(start_guard, told, exit_timeout_s=0.3)
    guard.order(STOP)
    assert guard.says("ended") == 0
