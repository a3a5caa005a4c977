"""Plan: how much of everything a run measures; full size for figures, quick for CI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["engine", "server", "llama", "published"]
"""What a case measures: the engine in process, the whole path, or a baseline."""
BASELINES: tuple[Kind, ...] = ("published", "llama")
"""The package itself, and the plain loop that stands in for it."""

SECTIONS = (
    "floor",
    "engine",
    "server",
    "baseline",
    "realtime",
    "memory",
    "start",
    "idle",
    "linear",
    "precision",
    "identity",
)
"""Everything that `--only` can select, in the order of a run."""

TEXT = "the train to london leaves at half past seven"
PROMPT = f"[Stts][empty_spk][speed_5]{TEXT}[Ptts]"
"""What the published front end makes of TEXT, so that all contestants compute the same prompt."""
STEPS_PER_SECOND = 46.875
BASELINE_BATCHES = (1, 8)
MAX_STEPS = 2048
"""Longest request of the model."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of one run."""

    is_quick: bool = False
    """Whether the figures mean nothing, so that no target is judged by them."""
    steps: int = 192
    """Fixed length of every request of the cases: 4.1 s of audio, a sentence."""
    rounds: int = 3
    """Interleaved rounds; figures are medians over them."""
    concurrency: tuple[int, ...] = (1, 4, 8, 16, 32)
    """Requests at once. Above max_num_seqs of the repository some of them wait."""
    precisions: tuple[str, ...] = ("int8", "fp32")
    bandwidth_bytes: int = 1 << 29
    """Array that the read bandwidth is measured with; much larger than the last cache."""
    realtime_steps: int = 300
    realtime_repetitions: int = 3
    realtime_limit: int = 16
    """Most streams tried."""
    memory_streams: int = 16
    memory_steps: int = 400
    starts: int = 5
    idle_s: float = 10.0
    linear_segments: tuple[int, int] = (4, 16)
    """Segments of the short and of the long utterance."""
    linear_steps: int = 352
    """Steps per segment: 4 segments are 30 s, 16 are 120 s."""
    precision_requests: int = 8
    precision_steps: int = 64
    identity_steps: int = 96
    identity_concurrency: tuple[int, ...] = (1, 3, 8, 16)

    @classmethod
    def quick(cls) -> Plan:
        """Everything once and small, to see that it works; its figures mean nothing."""
        return cls(
            is_quick=True,
            steps=16,
            rounds=1,
            concurrency=(1, 4),
            precisions=("int8",),
            bandwidth_bytes=1 << 26,
            realtime_steps=100,
            realtime_repetitions=1,
            realtime_limit=2,
            memory_streams=4,
            memory_steps=40,
            starts=1,
            idle_s=1.0,
            linear_segments=(2, 4),
            linear_steps=32,
            precision_requests=2,
            precision_steps=8,
            identity_steps=24,
            identity_concurrency=(1, 3),
        )
