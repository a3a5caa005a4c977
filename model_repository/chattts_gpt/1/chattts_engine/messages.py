"""What the router and its engine processes say to each other, pickled over a private socket."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .config import EngineConfig
from .sequence import GenerationRequest
from .torch_options import TorchOptions


@dataclass(frozen=True, slots=True)
class EngineJob:
    """The first message to an engine process."""

    weights: Path
    config: EngineConfig
    torch_options: TorchOptions
    index: int
    """Which engine of the model this is; it takes that GPU of those it sees."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Generate."""

    request: GenerationRequest
    arrival_s: float


@dataclass(frozen=True, slots=True)
class Abort:
    """End a request with finish reason "cancelled", if it runs."""

    request_id: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Cancel what is left and end."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The first message of an engine process: it takes requests."""

    max_num_tokens: int
    """Longest prompt plus generation."""
    num_kv_blocks: int
    num_devices: int
    """Devices of the kind that this engine computes on."""
    computes: str
    """With what, in which precision, where; for people."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The first message of an engine process that cannot load; it then ends."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A step raised; its requests have ended with an error, the engine goes on."""

    trace: str


Command = Submit | Abort | Stop
