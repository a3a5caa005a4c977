"""What the container runs, with the embedded server's binary and files in the image's place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import server_processes
import server_traces
import supervise
from chattts_client import ChatTTSClient, ChatTTSError
from server_files import (
    Ports,
    PrivateFiles,
    WheelServer,
    free_port,
    server_command,
    server_environment,
)
from server_health import HEALTH_BODY, HEALTH_PATH
from throw_away import DEADLINE_S, wait_until


class Container(NamedTuple):
    """The first process, and where it is served."""

    process: subprocess.Popen[bytes]
    ports: Ports
    log: Path

    def is_healthy(self) -> bool:
        """Ask as the container's health check does."""
        url = f"http://127.0.0.1:{self.ports.http}{HEALTH_PATH}"
        command = ["curl", "--fail", "--silent", "--max-time", "4", "--data", HEALTH_BODY, url]
        return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0

    def server(self) -> int:
        """Return the process id of tritonserver."""
        (pid,) = server_processes.children(self.process.pid)
        return pid


@pytest.fixture
def container(tiny_repository: Path, tmp_path: Path) -> Iterator[Container]:
    wheel = WheelServer.find()
    files = PrivateFiles(tmp_path / "image")
    files.create(wheel)
    ports = Ports(*(free_port("127.0.0.1") for _ in range(3)))
    command = server_command(
        wheel,
        files,
        model_repository=tiny_repository,
        host="127.0.0.1",
        ports=ports,
        region_prefix="",
        extra_args=[],
    )
    command.remove("--backend-config=python,shm-region-prefix-name=")
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, supervise.__file__, *command],
            cwd=files.working_directory,
            env=server_environment(wheel, os.environ),
            stdout=log,
            stderr=log,
        )
    yield Container(process, ports, tmp_path / "log")
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE_S)


def test_container_comes_back_and_drains(container: Container) -> None:
    process = container.process
    wait_until(lambda: "the server is well" in container.log.read_text(), "well")
    assert container.is_healthy()
    first = container.server()
    stub = next(
        pid
        for pid in server_processes.children(first)
        if b"/chattts_vocoder/" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    regions = list(server_traces.SHARED_MEMORY.glob(f"{server_traces.run_name(process.pid)}*"))
    assert regions
    os.kill(stub, signal.SIGKILL)
    wait_until(lambda: not container.is_healthy(), "sick")
    wait_until(container.is_healthy, "healthy again")
    assert not any(region.exists() for region in regions)
    second = container.server()
    assert second != first

    with (
        ChatTTSClient(
            f"127.0.0.1:{container.ports.grpc}", timeout_s=DEADLINE_S, max_retries=0
        ) as client,
        client.stream(
            "hello world. " * 4, seed=1, min_new_tokens=300, max_new_tokens=300
        ) as stream,
    ):
        num_samples = len(next(stream).samples)
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses(client), "draining")
        assert not container.is_healthy()
        num_samples += sum(len(chunk.samples) for chunk in stream)
    assert num_samples == 4 * (512 * 300 - 256)
    assert process.wait(DEADLINE_S) == 0
    assert not server_processes.is_alive(second)
    assert not server_traces.private_directory(process.pid).exists()
    assert not list(server_traces.SHARED_MEMORY.glob(f"{server_traces.run_name(process.pid)}*"))
    log = container.log.read_text()
    assert f"process {stub} has died, of chattts_vocoder" in log
    assert log.count("the server is started again") == 1


def refuses(client: ChatTTSClient) -> bool:
    """Whether a new request is refused because the server is shutting down."""
    try:
        client.synthesize("hello", seed=1, max_new_tokens=30)
    except ChatTTSError as error:
        return "shutting down" in str(error)
    return False
