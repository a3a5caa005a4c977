"""Standard streams that are closed or full: one line, a status, nothing in the wrong place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import chattts_client
import pytest
from unit.client.fake_answers import voices_answer
from unit.client.fake_triton import FakeTriton

CLIENT = Path(chattts_client.__file__).parents[1]


def shell(arguments: str, before: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the redirections of a shell, after another one."""
    return subprocess.run(
        ["sh", "-c", f'{before} exec "$0" -m chattts_client {arguments}', sys.executable],
        env={**os.environ, "PYTHONPATH": str(CLIENT), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        "say hello -o - >&-",
        "voices >&-",
        "voices >/dev/full",
        "--version >/dev/full",
        "--version >&-",
        "say --help >/dev/full",
        "say - -o out.wav <&-",
    ],
)
def test_a_closed_or_full_stream_is_one_line(
    arguments: str, grpc_url: str, fake: FakeTriton
) -> None:
    if arguments.startswith("voices"):
        fake.script = lambda inputs, request: iter([voices_answer()])
    done = shell(arguments, CHATTTS_URL=grpc_url)
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert "Bad file descriptor" in line or "No space left" in line
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize("buffering", [{}, {"PYTHONUNBUFFERED": "1"}])
@pytest.mark.parametrize("arguments", ["say hello -o -", f"normalize --offline '{'hello ' * 99}'"])
def test_what_stops_half_way_is_an_error(
    arguments: str, buffering: dict[str, str], grpc_url: str, tmp_path: Path
) -> None:
    variables = {"CHATTTS_URL": grpc_url, "PYTHONDONTWRITEBYTECODE": "1", **buffering}
    done = shell(f"{arguments} >{tmp_path / 'out'}", before="ulimit -f 1;", **variables)
    assert (tmp_path / "out").stat().st_size == 512
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert "File too large" in line
    assert arguments.startswith("normalize") or line.endswith("'standard output'")
    assert done.returncode == 1


@pytest.mark.parametrize("closing", ["2>&-", "2>/dev/full"])
def test_notes_without_standard_error_are_silent(
    closing: str, grpc_url: str, tmp_path: Path
) -> None:
    done = shell(f"say hello -o {tmp_path / 'out.wav'} --json {closing}", CHATTTS_URL=grpc_url)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    failed = shell(f"health --timeout=-1 {closing}")
    assert (failed.returncode, failed.stdout) == (2, "")


def test_what_cannot_be_encoded_is_printed_as_escapes(grpc_url: str, fake: FakeTriton) -> None:
    done = shell("normalize --offline 你好", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.startswith("\\u4f60\\u597d")
