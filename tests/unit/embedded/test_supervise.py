"""The container's command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import server_traces
import supervise
from server_files import free_port
from server_processes import is_alive
from unit.embedded.guards import DEADLINE_S, FAKE_SERVER, wait_until

SCRIPT = Path(supervise.__file__)


@pytest.mark.parametrize(
    ("flags", "host", "http_port", "metrics_port", "exit_timeout_s"),
    [
        ([], "127.0.0.1", 8000, 8002, 30.0),
        (["--http-port=1", "--metrics-port=2", "--exit-timeout-secs=7"], "127.0.0.1", 1, 2, 7.0),
        (["--http-address=0.0.0.0", "--http-port=1", "--http-port=3"], "127.0.0.1", 3, 8002, 30.0),
        (["--http-address=10.0.0.1"], "10.0.0.1", 8000, 8002, 30.0),
    ],
)
def test_endpoints_and_time_are_those_of_the_command(
    flags: list[str], host: str, http_port: int, metrics_port: int, exit_timeout_s: float
) -> None:
    job = supervise.job(["tritonserver", *flags], restart=True)
    assert job.command[:-1] == ["tritonserver", *flags]
    assert (job.host, job.http_port, job.metrics_port) == (host, http_port, metrics_port)
    assert job.exit_timeout_s == exit_timeout_s
    assert job.restart
    prefix = server_traces.run_name(os.getpid())
    assert job.command[-1] == f"--backend-config=python,shm-region-prefix-name={prefix}"


def test_command_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        supervise.main([])
    assert "command is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["no-such-program"], "no program 'no-such-program'"),
        ([sys.executable, "--model-repository={folder}"], "no model in {folder}"),
        (["--control-token-file={folder}/none/token", sys.executable], "{folder}/none/token"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    arguments: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert supervise.main([word.format(folder=tmp_path) for word in arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("supervise: ")
    assert why.format(folder=tmp_path) in line
    assert not server_traces.private_directory(os.getpid()).exists()


def test_a_repository_with_a_model_or_far_away_is_left_to_the_server(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.pbtxt").touch()
    for folder in (str(tmp_path), "s3://bucket/models"):
        assert supervise.mistake([sys.executable, f"--model-repository={folder}"]) == ""


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The script with a fake server, whose files are in `tmp_path`."""
    port = free_port("127.0.0.1")
    server = [sys.executable, str(FAKE_SERVER), str(port), str(tmp_path)]
    command = [sys.executable, str(SCRIPT), *server, f"--http-port={port}"]
    process = subprocess.Popen(
        [*command, f"--metrics-port={port}"], stderr=subprocess.PIPE, start_new_session=True
    )
    yield process
    process.kill()
    process.communicate()


def test_server_is_started_again_and_a_signal_ends_it(
    supervised: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    wait_until(starts.exists)
    assert server_traces.private_directory(supervised.pid).exists()
    (tmp_path / "code").write_text("3")
    wait_until(lambda: len(starts.read_text().split()) == 2)
    (tmp_path / "code").unlink()
    supervised.send_signal(signal.SIGTERM)
    _, errors = supervised.communicate(timeout=DEADLINE_S)
    assert supervised.returncode == 0
    assert b"ended by itself with exit code 3" in errors
    assert not any(is_alive(int(pid)) for pid in starts.read_text().split())
    assert not server_traces.private_directory(supervised.pid).exists()
