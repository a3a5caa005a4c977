"""Which processes of a server are dead, seen from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from server_processes import ModelProcesses, children, is_alive
from unit.embedded.guards import DEADLINE_S, wait_until

NOT_REAPING = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "model.py"])
print(child.pid, flush=True)
sys.stdin.readline()
child.wait()
print("reaped", flush=True)
sys.stdin.readline()
"""


class Clock:
    now_s = 10.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    """A process with one child, which it reaps when it gets a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", NOT_REAPING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    for pid in children(process.pid):
        os.kill(pid, signal.SIGKILL)
    process.kill()
    process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def reap(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert line(process) == "reaped"


def test_child_that_stays_unreaped_is_dead(parent: subprocess.Popen[str]) -> None:
    child = int(line(parent))
    clock = Clock()
    processes = ModelProcesses(parent.pid, clock)
    assert children(parent.pid) == [child]
    assert processes.step() == ""
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: not is_alive(child))
    assert processes.step() == ""  # it may just have been ended
    clock.now_s += 0.9
    assert processes.step() == ""
    clock.now_s += 0.1
    assert f"process {child} " in processes.step()
    assert "has died" in processes.step()


def test_child_that_was_dead_at_the_first_look_counts_too(parent: subprocess.Popen[str]) -> None:
    child = int(line(parent))
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: not is_alive(child))
    clock = Clock()
    processes = ModelProcesses(parent.pid, clock)
    assert processes.step() == ""
    clock.now_s += 1.0
    assert f"process {child} " in processes.step()


def test_child_that_is_reaped_was_ended_in_order(parent: subprocess.Popen[str]) -> None:
    child = int(line(parent))
    clock = Clock()
    processes = ModelProcesses(parent.pid, clock)
    assert processes.step() == ""
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: not is_alive(child))
    assert processes.step() == ""
    reap(parent)
    clock.now_s += DEADLINE_S
    assert processes.step() == ""
    assert children(parent.pid) == []
