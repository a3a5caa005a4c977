"""`embedded/serve.py` as a process: what it prints, how it ends, and that nothing is left."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import server_processes
import server_traces
import tritonclient.grpc as triton
from throw_away import DEADLINE_S, SLEEPER_MODEL, tensor, wait_until, write_sleeper

ROOT = Path(__file__).resolve().parents[2]


class Command:
    """`embedded/serve.py` as a process, with what it has printed."""

    def __init__(self, repository: Path, *options: str) -> None:
        ports = [f"--{name}-port=0" for name in ("http", "grpc", "metrics")]
        self.process = subprocess.Popen(
            [
                sys.executable,
                "embedded/serve.py",
                "--model-repository",
                repository,
                *ports,
                *options,
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_ready(self) -> dict[str, str]:
        """Return what it prints: name -> endpoint."""
        assert self.process.stdout is not None
        printed = {}
        for line in self.process.stdout:
            name, _, value = line.strip().partition(" ")
            printed[name] = value
            if name == "ready":
                return printed
        raise AssertionError(self.process.communicate())

    def finish(self) -> tuple[int, str]:
        """Wait for the end; return exit code and stderr."""
        _, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, errors

    def ends_well(self) -> bool:
        """Wait for the end; say whether in order; the supervisor tells more before."""
        code, errors = self.finish()
        return code == 0 and errors.splitlines()[-1] == "stopped"

    def tree(self) -> list[int]:
        """Return the ids of guard, server and stubs."""
        found, pending = [], [self.process.pid]
        while pending:
            pid = pending.pop()
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                children = [int(child) for child in task.read_text().split()]
                pending += children
                found += children
        return found


@pytest.fixture
def serve() -> Iterator[Callable[..., Command]]:
    started: list[Command] = []

    def start(repository: Path, *options: str) -> Command:
        started.append(Command(repository, *options))
        return started[-1]

    yield start
    for command in started:
        command.process.kill()
        command.process.communicate()


def assert_all_gone(pids: Sequence[int]) -> None:
    """Nothing of the process tree and none of its files may be left."""
    wait_until(lambda: not any(map(server_processes.is_alive, pids)), "processes ended")
    for pid in pids:
        assert not list(server_traces.SHARED_MEMORY.glob(f"{server_traces.run_name(pid)}*"))
        assert not server_traces.private_directory(pid).exists()


def is_ready(client: triton.InferenceServerClient) -> bool:
    """Ask; nobody there is not ready."""
    try:
        return bool(client.is_server_ready())
    except triton.InferenceServerException:
        return False


def start_sleeping(client: triton.InferenceServerClient, log: Path) -> queue.Queue[Any]:
    """Start a request of one second; return when the model has it."""
    answers: queue.Queue[Any] = queue.Queue()
    client.async_infer(
        "sleeper",
        [tensor("seconds", np.ones(1, np.float32))],
        lambda result, error: answers.put(error or result),
        client_timeout=DEADLINE_S,
    )
    wait_until(lambda: "sleeping" in log.read_text(), "request running")
    return answers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_lets_running_requests_finish(
    serve: Callable[..., Command],
    throw_away_repository: Path,
    tmp_path: Path,
    number: signal.Signals,
) -> None:
    command = serve(throw_away_repository, "--log-dir", str(tmp_path))
    printed = command.wait_until_ready()
    pids = command.tree()
    with triton.InferenceServerClient(printed["grpc"]) as client:
        answers = start_sleeping(client, tmp_path / "tritonserver.log")
        command.process.send_signal(number)
        answer = answers.get(timeout=DEADLINE_S)
    assert not isinstance(answer, Exception)
    assert command.ends_well()
    assert len(pids) >= 4  # guard, server, two stubs
    assert_all_gone(pids)


def test_nothing_is_left_when_the_command_is_killed(
    serve: Callable[..., Command], throw_away_repository: Path
) -> None:
    command = serve(throw_away_repository)
    command.wait_until_ready()
    pids = command.tree()
    command.process.kill()
    assert_all_gone(pids)


def test_without_restart_the_command_ends_with_the_server(
    serve: Callable[..., Command], throw_away_repository: Path
) -> None:
    command = serve(throw_away_repository, "--no-restart")
    command.wait_until_ready()
    pids = command.tree()
    guard, server = pids[:2]
    os.kill(server, signal.SIGKILL)
    code, errors = command.finish()
    assert code == 1
    assert "ended by itself with exit code 137" in errors
    assert_all_gone([guard, *pids])


def test_server_that_was_killed_is_served_again_at_the_same_ports(
    serve: Callable[..., Command], throw_away_repository: Path, tmp_path: Path
) -> None:
    command = serve(throw_away_repository, "--log-dir", str(tmp_path))
    printed = command.wait_until_ready()
    old = command.tree()
    os.kill(old[1], signal.SIGKILL)
    log = tmp_path / "tritonserver.log"
    wait_until(lambda: "started again" in log.read_text(), "restart")
    with triton.InferenceServerClient(printed["grpc"]) as client:
        wait_until(lambda: is_ready(client), "ready again")
    new = command.tree()
    assert new[0] == old[0]
    assert not set(new[1:]) & set(old[1:])
    command.process.send_signal(signal.SIGTERM)
    assert command.ends_well()
    assert_all_gone([*old, *new])


def test_interrupt_while_models_load_leaves_nothing(
    serve: Callable[..., Command], tmp_path: Path
) -> None:
    slow = "    def initialize(self, args):\n        print('loading', flush=True); time.sleep(60)\n"
    write_sleeper(tmp_path / "models", SLEEPER_MODEL + slow)
    command = serve(tmp_path / "models", "--log-dir", str(tmp_path))
    log = tmp_path / "tritonserver.log"
    wait_until(lambda: log.exists() and "loading" in log.read_text(), "model loading")
    pids = command.tree()
    command.process.send_signal(signal.SIGINT)
    assert command.ends_well()
    assert_all_gone(pids)


def test_failure_has_exit_code_1_and_the_reason(
    serve: Callable[..., Command], tmp_path: Path
) -> None:
    write_sleeper(tmp_path, "import not_there\n")
    code, errors = serve(tmp_path).finish()
    assert code == 1
    assert "No module named 'not_there'" in errors


def test_repository_without_weights_names_the_command_that_writes_them(
    serve: Callable[..., Command], tmp_path: Path
) -> None:
    shutil.copytree(
        ROOT / "model_repository",
        tmp_path / "models",
        ignore=shutil.ignore_patterns("weights", "model.onnx"),
    )
    code, errors = serve(tmp_path / "models").finish()
    assert code == 1
    assert "python build/build_repository.py --checkpoint checkpoints/demo --output" in errors
