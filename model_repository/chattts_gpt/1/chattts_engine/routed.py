"""Routed: a request on its way through the engines, and what the router sees of an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .messages import Command, Ready
from .sequence import GenerationRequest

MAX_DEATHS = 3
"""Engines that may die while they run a request, before it fails: after one less it runs alone, so
that a request which kills engines takes no other one with it."""


class Engine(Protocol):
    """An engine process, as the router sees it."""

    index: int
    ready: Ready
    last_heard_s: float

    def listen(self) -> None:
        """Start to pass on what the engine says."""

    def send(self, command: Command) -> None:
        """Send a command."""

    def stop(self) -> None:
        """Cancel what runs there, and wait until it has ended."""

    def kill(self) -> None:
        """End it at once."""


@dataclass(slots=True, eq=False)
class Routed:
    """A request that is not over."""

    request: GenerationRequest
    arrival_s: float
    engine: Engine | None = None
    """Who runs it; None while it waits."""
    num_delivered: int = 0
    """Tokens that its caller has."""
    queue_s: float | None = None
    """Seconds that it waited for its first slot."""
    num_deaths: int = 0
    """Engines that died while they ran it."""
    is_aborted: bool = False

    def is_late(self, now_s: float) -> bool:
        """Whether a deadline has passed."""
        return self.request.is_late(now_s, has_had_slot=False)

    @property
    def runs_alone(self) -> bool:
        """Whether it may have killed engines, so that nothing else shall run beside it."""
        return self.num_deaths == MAX_DEATHS - 1
