"""What a server holds: memory, threads and files of each process, shared memory, its own gauges."""

from __future__ import annotations

import contextlib
import http.client
import re
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import server_traces
from chattts_bench import processes
from launcher import EmbeddedServer

RUNNING = "chattts_running_requests"
BLOCKS_USED = "chattts_kv_blocks_used"
_POLL_S = 0.05
_LIMIT_S = 5.0


class ServerLostError(Exception):
    """A process of the server has ended, or nobody answers there any more."""


@dataclass(frozen=True, slots=True)
class Part:
    """The processes of one part of a server (a model, tritonserver, the supervisor), added up."""

    num_processes: int = 0
    rss: int = 0
    """Resident bytes; what is shared or mapped twice counts as often."""
    pss: int = 0
    """Proportional bytes; what is shared counts once, among all processes of the machine."""
    anonymous: int = 0
    """Resident bytes of heaps and stacks: what a part has to itself."""
    num_threads: int = 0
    num_fds: int = 0

    def plus(self, process: psutil.Process) -> Part:
        """Return the sum with one more process, as it is now."""
        memory = process.memory_full_info()
        return Part(
            self.num_processes + 1,
            self.rss + memory.rss,
            self.pss + memory.pss,
            self.anonymous + _anonymous(process.pid),
            self.num_threads + process.num_threads(),
            self.num_fds + process.num_fds(),
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A server at one moment."""

    at_s: float
    """Monotonic seconds."""
    parts: Mapping[str, Part]
    shared_memory: int
    """Bytes of its regions in /dev/shm."""
    metrics: Mapping[str, float]
    """Gauges and counters of ours, each the sum over its labels."""

    @property
    def num_running(self) -> float:
        """Requests that the front model speaks."""
        return self.metrics[RUNNING]

    @property
    def blocks_used(self) -> float:
        """KV blocks in use, in all engines."""
        return self.metrics[BLOCKS_USED]

    @property
    def memory(self) -> int:
        """Bytes of all processes: heaps, stacks, and shared memory once.

        Not the sum of resident sizes: each time that Triton enlarges a region it maps all of it
        again and keeps the old mapping, so that a region of 20 MB counts for 100.
        """
        return self.shared_memory + sum(part.anonymous for part in self.parts.values())


def read_metrics(metrics_url: str) -> dict[str, float]:
    """Return the server's metrics that begin with chattts_, each summed over its labels.

    Raises:
        ServerLostError: nobody answers.
    """
    try:
        with urllib.request.urlopen(metrics_url, timeout=_LIMIT_S) as response:
            lines = response.read().decode().splitlines()
    except (OSError, http.client.HTTPException) as error:
        raise ServerLostError(f"no metrics: {error}") from error
    sums: dict[str, float] = {}
    for line in lines:
        if line.startswith("chattts_"):
            name, _, value = line.rpartition(" ")
            family = name.partition("{")[0]
            sums[family] = sums.get(family, 0.0) + float(value)
    return sums


def _anonymous(pid: int) -> int:
    """Return the RssAnon of a process in bytes, 0 if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    match = re.search(r"RssAnon:\s+(\d+) kB", status)
    return 1024 * int(match[1]) if match else 0


class Watch:
    """Takes snapshots of one running server and notices when a process of it has ended."""

    def __init__(self, server: EmbeddedServer) -> None:
        assert server.pid is not None
        self._pid = server.pid
        self._metrics_url = server.metrics_url
        self._supervisor_pid = processes.server_tree(server.pid)[0].pid
        self._known = {process.pid: part for process, part in self._tree()}

    def snapshot(self) -> Snapshot:
        """Look at everything now.

        Raises:
            ServerLostError: a process that was there at the start has ended.
        """
        self.check()
        return Snapshot(
            time.monotonic(), self._parts(), self._shared_memory(), read_metrics(self._metrics_url)
        )

    def check(self) -> None:
        """Raise ServerLostError if a process that was there at the start has ended."""
        try:
            now = {process.pid for process, _ in self._tree()}
        except psutil.NoSuchProcess:
            raise ServerLostError("tritonserver has ended") from None
        lost = [part for pid, part in self._known.items() if pid not in now]
        if lost:
            raise ServerLostError(f"ended by itself: {', '.join(lost)}")

    def rest(self, limit_s: float) -> Snapshot:
        """Wait until nothing runs and no block is in use; return what the server holds then.

        Args:
            limit_s: after this many seconds whatever is there counts.

        Raises:
            ServerLostError: see `snapshot`.
        """
        deadline = time.monotonic() + limit_s
        while True:
            now = self.snapshot()
            is_at_rest = now.num_running == 0 and now.blocks_used == 0
            if is_at_rest or time.monotonic() > deadline:
                return now
            time.sleep(_POLL_S)

    def _tree(self) -> Iterator[tuple[psutil.Process, str]]:
        for process in processes.server_tree(self._pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.status() != psutil.STATUS_ZOMBIE:
                    yield process, processes.part_of(process)

    def _parts(self) -> dict[str, Part]:
        parts: dict[str, Part] = {}
        for process, name in self._tree():
            with contextlib.suppress(psutil.NoSuchProcess):  # `check` says whether that is wrong
                parts[name] = parts.get(name, Part()).plus(process)
        return parts

    def _shared_memory(self) -> int:
        prefix = server_traces.run_name(self._supervisor_pid)
        regions = server_traces.SHARED_MEMORY.glob(f"{prefix}*")
        return sum(region.stat().st_size for region in regions)
