"""How much memory the server holds: what its processes say, or else its metrics."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from chattts_bench.processes import Memory, MemoryPeak, memory, server_tree
from chattts_client import ChatTTSClient, ChatTTSError

_GAUGES = ("chattts_front_resident_memory_bytes", "chattts_engine_resident_memory_bytes")
_SAMPLE_S = 1.0
_METRICS_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Where it is looked up."""

    look: Callable[[], Memory] | None
    """Returns what is held now; None: nobody knows."""
    meaning: str
    """What the figures are, or why there are none."""


@dataclass(slots=True)
class Held:
    """The most that was held."""

    num_bytes: int = 0
    """0: not known."""


UNKNOWN = MemorySource(
    None,
    "not known, since the server was not started here; --metrics-url HOST:8002 takes it from there",
)


def of_processes(server_pid: int) -> MemorySource:
    """Look at all processes of a server on this machine."""
    processes = server_tree(server_pid)
    return MemorySource(
        lambda: memory(processes), "proportional size (PSS) of all processes of the server"
    )


def of_metrics(client: ChatTTSClient) -> MemorySource:
    """Look at the metrics of a server anywhere, at the client's `metrics_url`.

    Raises:
        ChatTTSError: there are no metrics of Triton.
        ValueError: they do not say how much memory is held.
    """

    def look() -> Memory:
        found = client.metrics_snapshot(timeout_s=_METRICS_LIMIT_S)
        return Memory(rss=int(sum(found.value(gauge) or 0 for gauge in _GAUGES)), pss=0)

    def look_again() -> Memory:
        with contextlib.suppress(ChatTTSError):  # one of many
            return look()
        return Memory(0, 0)

    if not look().rss:
        raise ValueError(f"{client.metrics_url}: no {_GAUGES[0]}; are the models' metrics off?")
    return MemorySource(
        look_again,
        "resident size of the front and the engines, as the server's metrics say; without "
        "tritonserver itself and the vocoder",
    )


@contextmanager
def most_held(source: MemorySource) -> Iterator[Held]:
    """Fill in, at the end of the block, the most that was held during it."""
    held = Held()
    if source.look is None:
        yield held
        return
    with MemoryPeak(source.look, _SAMPLE_S) as sampled:
        yield held
    held.num_bytes = sampled.peak.pss or sampled.peak.rss
