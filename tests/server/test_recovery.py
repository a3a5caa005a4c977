"""A process of the server dies or hangs under eight listeners: typed errors, and it comes back.

The bounds are twice those that docs/reliability.md promises: this machine may be shared.
"""

from __future__ import annotations

import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import model_control
import model_processes
import pytest
from launcher import EmbeddedServer
from metrics import read_total, serves_metrics
from recovery import FAULTS, FINISHED, NUM_CALLERS, Fault, recover, speak
from throw_away import DEADLINE_S, SLEEPER_MODEL, wait_until, write_repository

UNAVAILABLE = "ServerUnavailableError UNAVAILABLE"
LAST_CALLER_S = 10.0
ANSWERED_S = 30.0
HUNG_S = 60.0


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.number == signal.SIGKILL], ids=str)
def test_callers_of_a_dead_process_get_an_error_and_the_server_comes_back(
    tiny_repository: Path, server_factory: Callable[..., EmbeddedServer], fault: Fault
) -> None:
    server = server_factory(tiny_repository, restart=True)
    first_pid = server.pid
    seen = recover(server, fault, speak(server))
    assert sum(seen.callers.values()) == NUM_CALLERS
    assert set(seen.callers) <= {UNAVAILABLE, FINISHED}
    assert seen.last_caller_s < LAST_CALLER_S
    assert seen.unhealthy_s < seen.answered_s
    assert seen.answered_s < ANSWERED_S
    assert seen.is_same
    wait_until(server.is_healthy, "healthy again")
    assert server.pid != first_pid
    assert "the server is started again" in server.log()
    wait_until(lambda: serves_metrics(server), "metrics again")
    assert read_total(server, "chattts_server_restarts") == 1


def test_hanging_processes_are_noticed_and_replaced(
    tiny_repository: Path, server_factory: Callable[..., EmbeddedServer]
) -> None:
    faults = [fault for fault in FAULTS if fault.number == signal.SIGSTOP]
    servers = [server_factory(tiny_repository, restart=True) for _ in faults]
    with ThreadPoolExecutor(len(faults)) as threads:
        for seen in threads.map(lambda s, f: recover(s, f, speak(s)), servers, faults):
            assert set(seen.callers) <= {UNAVAILABLE, FINISHED}
            assert seen.last_caller_s < HUNG_S
            assert seen.unhealthy_s < seen.answered_s < HUNG_S
            assert seen.is_same
    assert all("not well for" in server.log() for server in servers)


def control(server: EmbeddedServer, order: str) -> None:
    """Load or unload `sleeper`; raises HTTPError with the server's words."""
    assert server.control_token_file is not None
    request = urllib.request.Request(
        f"http://{server.http_url}/v2/repository/models/sleeper/{order}",
        data=b"{}",
        headers={model_control.HEADER: server.control_token_file.read_text()},
    )
    with urllib.request.urlopen(request, timeout=DEADLINE_S):
        pass


def test_process_that_dies_while_its_model_loads_disturbs_nobody(
    tmp_path: Path, server_factory: Callable[..., EmbeddedServer]
) -> None:
    server = server_factory(write_repository(tmp_path / "models"), restart=True)
    first_pid = server.pid
    dies = SLEEPER_MODEL + "    def initialize(self, args):\n        os._exit(3)\n"
    (tmp_path / "models" / "sleeper" / "1" / "model.py").write_text(dies)
    control(server, "unload")
    with pytest.raises(urllib.error.HTTPError) as refused:
        control(server, "load")
    with refused.value as answer:
        assert b"is not healthy" in answer.read()
    time.sleep(2 * model_processes.DEAD_AFTER_S)  # for what must not happen
    assert server.pid == first_pid
    assert "the server is killed" not in server.log()
