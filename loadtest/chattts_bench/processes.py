"""What processes cost: memory and processor time of a server's tree, by part."""

from __future__ import annotations

import platform
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import psutil

_SAMPLE_S = 0.25
_MODEL = re.compile(r"triton_python_backend_stub \S*/(\w+)/\d+/model\.")


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident bytes of several processes."""

    rss: int
    """Sum of resident sizes; memory that they share counts once per process."""
    pss: int
    """Sum of proportional sizes; shared memory counts once. 0: not known."""


def server_tree(server_pid: int) -> list[psutil.Process]:
    """The server's process, its guard above it and everything below it."""
    server = psutil.Process(server_pid)
    guard = server.parent()
    assert guard is not None
    return [guard, *guard.children(recursive=True)]


def part_of(process: psutil.Process) -> str:
    """Which part of the server a process is: a model's name, engine, tritonserver or guard."""
    command = " ".join(process.cmdline())
    model = _MODEL.search(command)
    if model:
        return model[1]
    if "chattts_engine.engine_process" in command:
        return "engine"
    return "guard" if "server_guard" in command else "tritonserver"


def cpu_s(processes: Sequence[psutil.Process]) -> dict[str, float]:
    """Processor seconds used so far, by part."""
    used: dict[str, float] = {}
    for process in processes:
        times = process.cpu_times()
        part = part_of(process)
        used[part] = used.get(part, 0.0) + times.user + times.system
    return used


def memory(processes: Sequence[psutil.Process]) -> Memory:
    """What the processes hold now."""
    infos = [process.memory_full_info() for process in processes]
    return Memory(sum(info.rss for info in infos), sum(info.pss for info in infos))


def pss_by_part(processes: Sequence[psutil.Process]) -> dict[str, int]:
    """Proportional bytes that the processes hold now, by part."""
    held: dict[str, int] = {}
    for process in processes:
        part = part_of(process)
        held[part] = held.get(part, 0) + process.memory_full_info().pss
    return held


def reset_peak_rss(processes: Sequence[psutil.Process]) -> None:
    """Start the processes' peaks again (Linux: 5 in clear_refs)."""
    for process in processes:
        Path(f"/proc/{process.pid}/clear_refs").write_text("5", encoding="ascii")


def peak_rss(processes: Sequence[psutil.Process]) -> int:
    """Sum of each process's largest resident size, in bytes, since the last reset."""
    total = 0
    for process in processes:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        match = re.search(r"VmHWM:\s+(\d+) kB", status)
        total += 1024 * int(match[1]) if match else 0
    return total


def processor_name() -> str:
    """What /proc/cpuinfo calls the processor."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    name = re.search(r"model name\s*:\s*(.+)", lines)
    return name[1] if name else platform.machine()


class MemoryPeak:
    """Samples the memory of a server while its block runs; keeps the largest sums."""

    def __init__(self, look: Callable[[], Memory], sample_s: float = _SAMPLE_S) -> None:
        """Prepare to look every `sample_s` seconds, which takes some milliseconds each time."""
        self._look = look
        self._sample_s = sample_s
        self.peak = Memory(0, 0)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> MemoryPeak:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            now = self._look()
            self.peak = Memory(max(self.peak.rss, now.rss), max(self.peak.pss, now.pss))
            if self._is_over.wait(self._sample_s):
                return
