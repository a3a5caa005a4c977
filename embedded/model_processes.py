"""Has the process of a served model died?

Server 2.51 never tells: it neither reaps such a process nor calls the model unready. A process that
the server has ended itself is reaped at once. One that dies while it loads a model keeps nobody
waiting but whoever loads it, so only the processes of models count that have been ready.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from http_exchange import OK, Exchange
from server_processes import children, command_line, state_and_parent

SCAN_INTERVAL_S = 2.0
DEAD_AFTER_S = 1.0
"""Seconds that a process stays unreaped before it counts as dead."""

_QUESTION_LIMIT_S = 5.0
_MODEL_FILE = re.compile(r"/(?P<model>[^/]+)/(?P<version>\d+)/model\.\w+$")


@dataclass
class _Process:
    """What is known about one child of the server."""

    model: str
    """NAME/versions/VERSION of its model; empty: it is no model's, or ended before it was seen."""
    is_served: bool = False
    """Its model has been ready."""
    question: Exchange | None = None
    """Asks for that."""
    dead_since_s: float | None = None
    """When it was first seen unreaped."""


class ModelProcesses:
    """The processes that a server has started for its Python models.

    Args:
        server: process id.
        address: IPv4 address and port of the HTTP endpoint.
        clock: monotonic time in seconds.
    """

    def __init__(
        self,
        server: int,
        address: tuple[str, int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._address = address
        self._clock = clock
        self._next_scan_s = clock()
        self._known: dict[int, _Process] = {}

    @property
    def exchanges(self) -> list[Exchange]:
        """What to wait for besides the time."""
        return [process.question for process in self._known.values() if process.question]

    def step(self, is_starting: bool) -> str:
        """Look at them; return which one has died by itself, or nothing.

        Args:
            is_starting: the server has not been well yet: then every process counts.
        """
        now_s = self._clock()
        is_due = is_starting or now_s >= self._next_scan_s
        if is_due:
            self._next_scan_s = now_s + SCAN_INTERVAL_S
            self._scan()
        for pid, process in self._known.items():
            is_dead = state_and_parent(pid) == ("Z", self._server)
            process.dead_since_s = (process.dead_since_s or now_s) if is_dead else None
            if process.question or ((is_due or is_dead) and not process.is_served):
                self._ask(process)
            counts = process.is_served or is_starting
            if counts and process.dead_since_s and now_s - process.dead_since_s >= DEAD_AFTER_S:
                return f"process {pid} has died, of {process.model or 'no model'}"
        return ""

    def _scan(self) -> None:
        found = children(self._server)
        self._known = {pid: self._known.get(pid) or _Process(model_of(pid)) for pid in found}

    def _ask(self, process: _Process) -> None:
        """Ask whether its model is ready, or look for the answer."""
        if not process.model:
            return
        if process.question is None:
            path = f"/v2/models/{process.model}/ready"
            process.question = Exchange(self._address, path, _QUESTION_LIMIT_S)
        answer = process.question.step()
        if answer is not None:
            process.question = None
            process.is_served = answer.status == OK


def model_of(pid: int) -> str:
    """Return NAME/versions/VERSION of the model that a stub runs; empty for other processes.

    The first argument of a stub is its model's file, REPOSITORY/MODEL/VERSION/model.EXTENSION.
    """
    found = _MODEL_FILE.search(" ".join(command_line(pid)[1:2]))
    return f"{found['model']}/versions/{found['version']}" if found else ""
