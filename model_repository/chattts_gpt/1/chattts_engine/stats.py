"""Plain numbers about an engine: counted where things happen, reported as one snapshot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class EngineStats:
    """Counters since the start; the gauges live with their owners (scheduler, block manager)."""

    num_steps: int = 0
    """Engine steps that ran anything."""
    num_prefilled_tokens: int = 0
    """Prompt positions computed, pre-empted ones again."""
    num_decode_steps: int = 0
    """Network steps that decoded a batch."""
    num_decoded_tokens: int = 0
    """Rows over all decode calls; divided by num_decode_steps this is the mean batch."""
    num_generated_tokens: int = 0
    """Tokens drawn and kept."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An engine at one moment; the last three only grow."""

    num_running: int = 0
    """Sequences that hold KV blocks."""
    num_kv_blocks: int = 0
    num_kv_blocks_used: int = 0
    num_steps: int = 0
    num_generated_tokens: int = 0
    num_preemptions: int = 0
