"""What a person at a terminal sees, and a pipe does not: bars, tables, colors."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import chattts_client
import pytest
from unit.client.cli_help import COMMANDS
from unit.client.fake_answers import voices_answer
from unit.client.fake_triton import FakeTriton

CLIENT = Path(chattts_client.__file__).parents[1]
BOLD = "\x1b[1m"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal: what is read here was written there."""
    ends = pty.openpty()
    yield ends
    for end in ends:
        os.close(end)


def seen(terminal: tuple[int, int]) -> str:
    """What has been written to the terminal; a mark behind it says where it ends."""
    os.write(terminal[1], b"END")
    content = b""
    while not content.endswith(b"END"):
        content += os.read(terminal[0], 1 << 16)
    return content.decode().removesuffix("END")


def run(
    *arguments: str,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
    succeeds: bool = True,
    **more: str,
) -> str:
    """Run a command of an 80-column terminal; returns its standard output if that is a pipe."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_COLOR")}
    done = subprocess.run(
        [sys.executable, "-m", "chattts_client", *arguments],
        env={**kept, "PYTHONPATH": str(CLIENT), "COLUMNS": "80", "TERM": "xterm", **more},
        stdout=stdout,
        stderr=stderr,
        text=True,
        check=succeeds,
        timeout=30,
    )
    return done.stdout or ""


def test_a_bar_is_on_the_terminal_and_leaves_standard_output_alone(
    grpc_url: str, tmp_path: Path, terminal: tuple[int, int]
) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo")
    command = ["batch", str(tmp_path / "in.txt"), "-o", str(tmp_path / "out"), "--url", grpc_url]
    printed = run(*command, stderr=terminal[1])
    assert printed.startswith(f"{tmp_path / 'out'}: 2 lines, 2 spoken")
    bar = seen(terminal)
    assert "lines" in bar
    assert "2/2" in bar


def test_voices_are_a_table_on_a_terminal(
    grpc_url: str, fake: FakeTriton, terminal: tuple[int, int]
) -> None:
    fake.script = lambda inputs, request: iter([voices_answer()])
    run("voices", "--url", grpc_url, stdout=terminal[1])
    header, row = seen(terminal).splitlines()
    assert BOLD in header
    assert "\t" not in row
    assert max(len(ANSI.sub("", line)) for line in (header, row)) <= 80
    run("voices", "--url", grpc_url, stdout=terminal[1], NO_COLOR="1")
    assert "\x1b" not in seen(terminal)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_help_has_no_style_where_none_is_wanted(
    command: str, terminal: tuple[int, int]
) -> None:
    arguments = [*command.split(), "--help"]
    run(*arguments, stdout=terminal[1], NO_COLOR="1")
    assert "\x1b" not in seen(terminal)
    assert "\x1b" not in run(*arguments, GITHUB_ACTIONS="true")


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["say"], ["doctor", "--url", "localhost:1"], ["bench", "-j", "x"]]
)
def test_an_error_has_no_style_where_none_is_wanted(
    arguments: list[str], terminal: tuple[int, int]
) -> None:
    run(*arguments, stdout=terminal[1], stderr=terminal[1], succeeds=False, NO_COLOR="1")
    assert "\x1b" not in seen(terminal)
    assert "\x1b" not in run(*arguments, succeeds=False)


def test_a_bar_without_color_only_moves_the_cursor(
    grpc_url: str, terminal: tuple[int, int]
) -> None:
    command = ["bench", "-j", "1", "-n", "2", "--url", grpc_url]
    run(*command, stderr=terminal[1], NO_COLOR="1")
    bar = seen(terminal)
    assert "requests" in bar
    assert not ANSI.search(bar)
    run(*command, stderr=terminal[1])
    assert ANSI.search(seen(terminal))
