"""Plain numbers about an engine: counted where things happen, reported as one snapshot."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class EngineStats:
    """Counters since the start; the gauges live with their owners (scheduler, block manager)."""

    num_steps: int = 0
    """Engine steps that ran anything."""
    num_prefilled_tokens: int = 0
    """Prompt positions computed, pre-empted ones again."""
    num_generated_tokens: int = 0
    """Tokens drawn and kept."""
    decode_batches: dict[int, int] = field(default_factory=dict)
    """Sequences decoded together to how many network steps did so."""

    @property
    def num_decode_steps(self) -> int:
        """Network steps that decoded a batch."""
        return sum(self.decode_batches.values())

    @property
    def num_decoded_tokens(self) -> int:
        """Rows over all decode steps."""
        return sum(size * number for size, number in self.decode_batches.items())

    def add_decode_step(self, num_sequences: int) -> None:
        """Count one network step that decoded so many sequences."""
        self.decode_batches[num_sequences] = self.decode_batches.get(num_sequences, 0) + 1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An engine at one moment; from `num_steps` on numbers only grow."""

    num_running: int = 0
    """Sequences that hold KV blocks."""
    num_kv_blocks: int = 0
    num_kv_blocks_used: int = 0
    kv_fragmentation: float = 0.0
    """Share of the positions of used blocks that hold no token, 0 ... 1; 0 if none is used."""
    resident_bytes: int = 0
    """Memory of the engine's process."""
    gpu_used_bytes: int = 0
    """Memory of the engine on its GPU."""
    gpu_limit_bytes: int = 0
    """What it may use there; 0: it computes on the CPU."""
    num_steps: int = 0
    num_generated_tokens: int = 0
    num_prefilled_tokens: int = 0
    num_preemptions: int = 0
    decode_batches: tuple[tuple[int, int], ...] = ()
    """Sequences decoded together, and how many network steps did so."""


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
