"""Real servers for the tests in this folder.

Everything is built on first use. At the end of the session no process, shared-memory region or
private folder of a server that was started here may be left.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import server_processes
import server_traces
from launcher import EmbeddedServer
from throw_away import write_repository

_MARKER = "CHATTTS_TEST_SESSION"
_START_LIMIT_S = 200.0
"""Less than pytest's limit, and more than that of a warm-up: who fails then shows the log."""
_END_DEADLINE_S = 60.0

ServerFactory = Callable[..., EmbeddedServer]


def marked_processes(marker: str) -> list[str]:
    """Return "PID COMMAND" of the other living processes that inherited this session's marker."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # ended meanwhile, or another user's
        is_server = "triton" in command or "server_guard" in command
        if marker.encode() in environment and is_server:
            found.append(f"{folder.name} {command[:200]}")
    return found


def traces_of_the_dead() -> set[str]:
    """Return the files of embedded servers whose guard is not running."""
    folders = (server_traces.SHARED_MEMORY, server_traces.private_directory(0).parent)
    return {
        str(path)
        for pid in server_traces.supervisors_on_disk()
        if not server_processes.is_alive(pid)
        for folder in folders
        for path in folder.glob(f"{server_traces.run_name(pid)}*")
    }


@pytest.fixture(scope="session", autouse=True)
def session_marker() -> Iterator[str]:
    """Mark all processes started from here, and check at the end that none of them is left."""
    marker = uuid.uuid4().hex
    os.environ[_MARKER] = marker
    earlier = traces_of_the_dead()
    yield marker
    del os.environ[_MARKER]
    deadline = time.monotonic() + _END_DEADLINE_S
    while (left := marked_processes(marker)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left, f"processes left: {left}"
    assert not traces_of_the_dead() - earlier


@pytest.fixture
def server_factory() -> Iterator[ServerFactory]:
    """Start servers on free ports that end with the test: server_factory(repository, **options)."""
    running: list[EmbeddedServer] = []

    def start(repository: Path, **options: Any) -> EmbeddedServer:
        server = EmbeddedServer(repository, start_timeout_s=_START_LIMIT_S, **options)
        server.start()
        running.append(server)
        return server

    yield start
    for server in running:
        server.kill()


@pytest.fixture(scope="session")
def throw_away_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two models of throw_away.py."""
    return write_repository(tmp_path_factory.mktemp("throw-away") / "models")


def run_and_kill(repository: Path) -> Iterator[EmbeddedServer]:
    """Run a server; no drain at the end, which takes a second per model instance."""
    server = EmbeddedServer(repository, start_timeout_s=_START_LIMIT_S)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def tiny_server(tiny_repository: Path) -> Iterator[EmbeddedServer]:
    """A running server with `tiny_repository`."""
    yield from run_and_kill(tiny_repository)


@pytest.fixture(scope="session")
def demo_server(demo_repository_int8: Path) -> Iterator[EmbeddedServer]:
    """A running server with `demo_repository_int8`."""
    yield from run_and_kill(demo_repository_int8)
