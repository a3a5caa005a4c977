"""A process of the server dies or hangs under eight listeners: typed errors, and it comes back.

The bounds are twice those that docs/reliability.md promises: this machine may be shared.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from launcher import EmbeddedServer
from recovery import FAULTS, FINISHED, NUM_CALLERS, Fault, recover, speak
from throw_away import wait_until

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
