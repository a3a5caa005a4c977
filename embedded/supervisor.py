"""Keeps a server running: watches it, starts it again when it is sick, drains it before it ends.

Server 2.51 does not survive the death of one of its Python processes: callers of that model wait
for ever, even after the model was loaded again. So a server with a dead or hung process is killed
as a whole, which resets all connections, and started again. Single-threaded, standard library only:
it runs in the guard of the embedded server and as the first process of the container.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import server_traces
from http_exchange import NO_ANSWER, OK, Exchange
from model_processes import ModelProcesses
from server_health import START_INTERVAL_S, Probe
from server_metrics import num_running
from server_processes import adopt_orphans, end_server, reap_orphans, start_server

KILL = b"kill\n"
STOP = b"stop\n"
STARTED, WELL = "started", "well"

DRAIN_FILE_VARIABLE = "CHATTTS_DRAIN_FILE"
"""Environment variable of the server: as long as this file is there, the front refuses requests."""
RESTARTS_VARIABLE = "CHATTTS_SERVER_RESTARTS"
"""Environment variable of the server: how often it was started again. The front makes a metric of
it, since nobody else here has an endpoint; a new supervisor counts from 0."""
DRAIN_MARGIN_S = 10.0
"""Seconds for the server's own end after the running requests': a second per Python process."""

QUICK_END_S = 60.0
MAX_QUICK_ENDS = 5
"""In a row, each within `QUICK_END_S` of a start: then it is not started again."""

_WATCH_INTERVAL_S = 0.5
_DRAIN_INTERVAL_S = 0.1
_METRICS_LIMIT_S = 5.0
_PAUSE_S = 1.0
"""Before the second quick restart, twice that before the third, and so on."""
_ORDER_BYTES = 64


@dataclass(frozen=True)
class Job:
    """What to serve and how."""

    command: list[str]
    """The server's command line."""
    environment: dict[str, str]
    """Its whole environment."""
    working_directory: str | None
    """An empty folder: the stubs import from it first. None: the supervisor's."""
    log_file: str | None
    """Receives stdout and stderr of server and stubs, appended. None: the supervisor's."""
    host: str
    """IPv4 address of the endpoints, to ask them."""
    http_port: int
    """HTTP endpoint."""
    metrics_port: int
    """Metrics endpoint."""
    exit_timeout_s: float
    """Seconds that running requests get to finish after an order to stop."""
    restart: bool
    """Watch it also once it has been well, and start it again when it is sick or has ended by
    itself. While it starts it is watched in any case: nobody else would notice a dead process."""


class Orders:
    """Termination signals of this process, and perhaps lines on a descriptor.

    Args:
        descriptors: where lines come from; end of file is an order to stop.
    """

    def __init__(self, descriptors: Sequence[int] = ()) -> None:
        signals, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        self._descriptors = [signals, *descriptors]

    def wait(self, others: Sequence[int | Exchange], limit_s: float | None) -> tuple[bytes, bool]:
        """Wait until there is an order, or one of `others` is readable, or for `limit_s` seconds.

        Returns:
            The order, KILL or STOP, or nothing; and whether the first of `others` is readable.
        """
        ready = select.select([*self._descriptors, *others], [], [], limit_s)[0]
        orders = b""
        for descriptor in [fd for fd in self._descriptors if fd in ready]:
            line = os.read(descriptor, _ORDER_BYTES)
            orders += line or STOP
            if not line:
                self._descriptors.remove(descriptor)
        order = KILL if KILL in orders else STOP if orders else b""
        return order, bool(others) and others[0] in ready


class Phase(Protocol):
    """What is done about a running server besides waiting for its end."""

    @property
    def interval_s(self) -> float | None:
        """Seconds between two steps; None: none are needed."""

    def exchanges(self) -> list[Exchange]:
        """What a step may be waiting for."""

    def step(self) -> str:
        """Do what is due; return why the server has to be killed, or nothing."""


class Unwatched:
    """Nothing."""

    interval_s = None

    def exchanges(self) -> list[Exchange]:
        """See Phase."""
        return []

    def step(self) -> str:
        """See Phase."""
        return ""


class Watch:
    """Looks for dead processes and asks for its health."""

    def __init__(self, job: Job, server: int) -> None:
        address = (job.host, job.http_port)
        self.probe = Probe(address)
        self._processes = ModelProcesses(server, address)

    def exchanges(self) -> list[Exchange]:
        """See Phase."""
        return self.probe.exchanges + self._processes.exchanges

    @property
    def interval_s(self) -> float:
        """See Phase; a start is not kept waiting."""
        return _WATCH_INTERVAL_S if self.probe.has_been_well else START_INTERVAL_S

    def step(self) -> str:
        """See Phase."""
        is_starting = not self.probe.has_been_well
        return self._processes.step(is_starting) or self.probe.step()


class Drain:
    """Lets no new request in, waits for the running ones, then sends SIGTERM."""

    interval_s = _DRAIN_INTERVAL_S

    def __init__(self, job: Job, server: int, drain_file: Path) -> None:
        self._job = job
        self._server = server
        self._started_s = time.monotonic()
        self._exchange: Exchange | None = None
        self._is_told = False
        with contextlib.suppress(OSError):  # a folder that is gone must not keep the server alive
            drain_file.touch()

    def exchanges(self) -> list[Exchange]:
        """See Phase."""
        return [self._exchange] if self._exchange else []

    def step(self) -> str:
        """See Phase."""
        passed_s = time.monotonic() - self._started_s
        if passed_s > self._job.exit_timeout_s + DRAIN_MARGIN_S:
            return f"it has not ended {passed_s:.0f} s after the order"
        if not self._is_told and (passed_s > self._job.exit_timeout_s or self._is_idle()):
            self._is_told = True
            os.kill(self._server, signal.SIGTERM)
        return ""

    def _is_idle(self) -> bool:
        """Whether nothing is spoken any more, as it is where nobody answers."""
        if self._exchange is None:
            address = (self._job.host, self._job.metrics_port)
            self._exchange = Exchange(address, "/metrics", _METRICS_LIMIT_S)
        answer = self._exchange.step()
        if answer is None:
            return False
        self._exchange = None
        if answer.status != OK:
            return answer.status == NO_ANSWER
        return num_running(answer.body) == 0


class Supervisor:
    """Serves one job.

    Args:
        job: what to serve.
        orders: who may end it.
        tell: is told STARTED and WELL with the server's process id: at each start, and when that
            one has been found well.
    """

    def __init__(self, job: Job, orders: Orders, tell: Callable[[str, int], None]) -> None:
        self.is_ordered = False
        """Whether it was told to end."""
        self._job = job
        self._orders = orders
        self._tell = tell
        self._drain_file = server_traces.private_directory(os.getpid()) / "drain"
        self._has_been_well = False
        self._num_restarts = 0

    def run(self) -> int:
        """Serve until an order has come, or the server has ended and must not be started again.

        Returns:
            The server's exit code, 128 + N where signal N ended it; after giving up never 0.
        """
        adopt_orphans()
        num_quick = 0
        while True:
            started_s = time.monotonic()
            code = self._serve_once()
            server_traces.remove_shared_memory(os.getpid())
            # one that has never been well would not be the next time either
            if self.is_ordered or not self._job.restart or not self._has_been_well:
                return code
            is_quick = time.monotonic() - started_s < QUICK_END_S
            num_quick = num_quick + 1 if is_quick else 0
            if num_quick == MAX_QUICK_ENDS:
                self._log(
                    f"given up: {num_quick} ends in a row within {QUICK_END_S:g} s of a start"
                )
                return code or 1
            if self._is_told_to_stop(_PAUSE_S * max(0, num_quick - 1)):
                return code
            self._num_restarts += 1
            self._log("the server is started again")

    def _serve_once(self) -> int:
        """Start the server and stay until it has ended with all its processes."""
        job = self._job
        environment = {
            **job.environment,
            DRAIN_FILE_VARIABLE: str(self._drain_file),
            RESTARTS_VARIABLE: str(self._num_restarts),
        }
        server = start_server(job.command, environment, job.working_directory, job.log_file)
        self._tell(STARTED, server.pid)
        ended = os.pidfd_open(server.pid)
        phase: Phase = Watch(job, server.pid)
        is_well = False
        while True:
            watched: list[int | Exchange] = [ended, *phase.exchanges()]
            order, has_ended = self._orders.wait(watched, phase.interval_s)
            if has_ended or order == KILL:
                break
            if order and not self.is_ordered:
                self._close(phase)
                phase = Drain(job, server.pid, self._drain_file)
            self.is_ordered |= bool(order)
            reason = phase.step()
            if isinstance(phase, Watch) and phase.probe.has_been_well and not is_well:
                is_well = self._has_been_well = True
                self._log("the server is well")
                self._tell(WELL, server.pid)
                if not job.restart:
                    self._close(phase)
                    phase = Unwatched()
            if reason:
                self._log(f"the server is killed: {reason}")
                break
            reap_orphans(server)
        self.is_ordered |= bool(order)
        self._close(phase)
        os.close(ended)
        code = end_server(server)
        if has_ended and not self.is_ordered:
            self._log(f"the server ended by itself with exit code {code}")
        return code

    @staticmethod
    def _close(phase: Phase) -> None:
        for exchange in phase.exchanges():
            exchange.close()

    def _is_told_to_stop(self, limit_s: float) -> bool:
        """Pause; return whether there was an order."""
        order, _ = self._orders.wait([], limit_s)
        self.is_ordered = bool(order)
        return self.is_ordered

    def _log(self, what: str) -> None:
        """Tell whoever watches this process's stderr, and the log."""
        line = f"supervisor: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {what}\n"
        if sys.stderr is not None:
            with contextlib.suppress(OSError):  # its reader may have gone, the server goes on
                sys.stderr.write(line)
                sys.stderr.flush()
        if self._job.log_file is not None:
            with open(self._job.log_file, "a", encoding="utf-8") as log:
                log.write(line)
