"""Which processes of served models are dead, with a clock and a server's words from a script."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import model_processes
import pytest
from http_exchange import NOT_FOUND, OK, Answer
from model_processes import DEAD_AFTER_S, SCAN_INTERVAL_S, ModelProcesses, model_of
from server_processes import children, is_alive
from unit.embedded.guards import wait_until

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, sys.argv[1]])
print(child.pid, flush=True)
sys.stdin.readline()
child.wait()
print("reaped", flush=True)
sys.stdin.readline()
"""
SLEEP = "import time; time.sleep(60)"


class World:
    """A clock, and a server that says whether a model is ready."""

    def __init__(self) -> None:
        self.now_s = 10.0
        self.status = OK
        self.asked: list[str] = []

    def clock(self) -> float:
        return self.now_s

    def exchange(self, address: tuple[str, int], path: str, limit_s: float) -> World:
        self.asked.append(path)
        return self

    def step(self) -> Answer:
        return Answer(self.status, "")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(model_processes, "Exchange", made.exchange)
    return made


class Parent:
    """A process in the server's place, with one child that runs `speech` version 3."""

    def __init__(self, model: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PARENT, str(model)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.child = int(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def kill_child(self) -> None:
        os.kill(self.child, signal.SIGKILL)
        wait_until(lambda: not is_alive(self.child))

    def reap(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self._line() == "reaped\n"


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Parent]:
    model = tmp_path / "speech" / "3" / "model.py"
    model.parent.mkdir(parents=True)
    model.write_text(SLEEP)
    made = Parent(model)
    yield made
    for pid in children(made.process.pid):
        os.kill(pid, signal.SIGKILL)
    made.process.kill()
    made.process.communicate()


def watch(parent: Parent, world: World) -> ModelProcesses:
    return ModelProcesses(parent.process.pid, ("127.0.0.1", 1), world.clock)


def test_process_of_a_served_model_that_stays_unreaped_is_dead(
    parent: Parent, world: World
) -> None:
    processes = watch(parent, world)
    assert processes.step(is_starting=False) == ""
    assert world.asked == ["/v2/models/speech/versions/3/ready"]
    world.status = NOT_FOUND  # a later release calls a model with a dead process not ready
    parent.kill_child()
    assert processes.step(is_starting=False) == ""  # the server may just have ended it
    world.now_s += DEAD_AFTER_S - 0.1
    assert processes.step(is_starting=False) == ""
    world.now_s += 0.1
    reason = processes.step(is_starting=False)
    assert reason == f"process {parent.child} has died, of speech/versions/3"


def test_process_that_is_reaped_was_ended_in_order(parent: Parent, world: World) -> None:
    processes = watch(parent, world)
    processes.step(is_starting=False)
    parent.kill_child()
    assert processes.step(is_starting=False) == ""
    parent.reap()
    world.now_s += 10 * DEAD_AFTER_S
    assert processes.step(is_starting=False) == ""
    assert children(parent.process.pid) == []


def test_process_that_dies_while_it_loads_its_model_does_not_count(
    parent: Parent, world: World
) -> None:
    world.status = NOT_FOUND
    processes = watch(parent, world)
    processes.step(is_starting=False)
    parent.kill_child()
    for _ in range(20):
        world.now_s += DEAD_AFTER_S
        assert processes.step(is_starting=False) == ""


def test_process_that_dies_just_after_it_was_loaded_counts(parent: Parent, world: World) -> None:
    world.status = NOT_FOUND
    processes = watch(parent, world)
    processes.step(is_starting=False)
    world.status = OK
    parent.kill_child()  # before the next scan asks again
    assert processes.step(is_starting=False) == ""
    world.now_s += DEAD_AFTER_S
    assert processes.step(is_starting=False) != ""


def test_model_is_asked_for_until_it_is_served(parent: Parent, world: World) -> None:
    world.status = NOT_FOUND
    processes = watch(parent, world)
    for _ in range(3):
        processes.step(is_starting=False)
        processes.step(is_starting=False)  # between two scans nothing is asked
        world.now_s += SCAN_INTERVAL_S
    assert len(world.asked) == 3
    world.status = OK
    for _ in range(3):
        processes.step(is_starting=False)
        world.now_s += SCAN_INTERVAL_S
    assert len(world.asked) == 4


def test_while_the_server_starts_every_process_counts(parent: Parent, world: World) -> None:
    parent.kill_child()
    processes = watch(parent, world)
    assert processes.step(is_starting=True) == ""
    world.now_s += DEAD_AFTER_S
    assert f"process {parent.child} has died" in processes.step(is_starting=True)


def test_only_stubs_have_a_model() -> None:
    assert model_of(os.getpid()) == ""
