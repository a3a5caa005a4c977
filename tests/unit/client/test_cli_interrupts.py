"""Ctrl-C on the command line: one line, status 130, nothing left running, from start to end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import chattts_client
import pytest
from unit.client.cli_calls import INTERRUPTIBLE, frames
from unit.client.fake_answers import Inputs, Outputs, Request, utterance
from unit.client.fake_triton import FakeTriton

ENVIRONMENT = {"PYTHONPATH": str(Path(chattts_client.__file__).parents[1])}


def run(code: str, *arguments: str, folder: Path | None = None) -> tuple[int, str, str]:
    """Run a program to its end: its status, standard output and standard error."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    return done.returncode, done.stdout, done.stderr


def test_an_interrupt_cancels_on_the_server_and_leaves_a_playable_file(
    grpc_url: str, fake: FakeTriton, tmp_path: Path
) -> None:
    def has_first_chunk() -> bool:
        return path.exists() and path.stat().st_size > 256 * 2

    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        yield utterance()[0]
        deadline_s = time.monotonic() + 10
        while not has_first_chunk() and time.monotonic() < deadline_s:
            request.cancelled.wait(0.01)
        process.send_signal(signal.SIGINT)
        request.cancelled.wait(10)

    fake.script = script
    path = tmp_path / "out.wav"
    command = [sys.executable, "-c", INTERRUPTIBLE, "say", "hello", "-o", str(path)]
    process = subprocess.Popen(
        [*command, "--url", grpc_url, "--stream"],
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    )
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "interrupted\n")
    assert fake.requests[0].cancelled.wait(10)
    assert frames(path) == 256


@pytest.mark.parametrize("module", ["numpy", "typer", "chattts_client.cli.app", "grpc"])
def test_an_interrupt_while_a_module_is_loaded_is_one_line(module: str, tmp_path: Path) -> None:
    code = f"""
import signal, sys
class Finder:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
{INTERRUPTIBLE}"""
    command = ["say", "hello", "-o", "out.wav", "--url", "localhost:1"]
    assert run(code, *command, folder=tmp_path) == (130, "", "interrupted\n")


def test_an_interrupt_before_the_command_line_is_ready_is_one_line() -> None:
    code = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finder:
    def find_spec(self, name, *rest):
        if name == "chattts_client.cli.interrupts":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
import chattts_client.cli
"""
    assert run(code) == (130, "", "interrupted\n")


def test_an_interrupt_after_the_command_changes_no_status() -> None:
    code = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Late:
    def __del__(self, kill=os.kill, pid=os.getpid()):
        kill(pid, signal.SIGINT)
late = Late()
from chattts_client.cli import program
program()
"""
    message = "error: Invalid value for --retries: -1 is below 0\n"
    assert run(code, "health", "--retries=-1") == (2, "", message)


@pytest.mark.parametrize(
    "arguments", [["say", "hello", "-o", "out.wav"], ["bench", "-j", "2", "-n", "4"]]
)
def test_an_interrupt_cancels_what_gives_nothing_before_its_end(
    arguments: list[str], grpc_url: str, fake: FakeTriton, tmp_path: Path
) -> None:
    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        if arguments[0] == "say" or len(fake.requests) > 2:
            process.send_signal(signal.SIGINT)
            request.cancelled.wait(10)
        yield from utterance()

    fake.script = script
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *arguments, "--url", grpc_url],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    )
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "interrupted\n")
    assert fake.requests[-1].cancelled.wait(10)
    assert not list(tmp_path.iterdir())
