"""EngineConfig (how to run) and GPTConfig (what the weights are): both frozen, both checked.

EngineConfig comes from the `parameters` of config.pbtxt, GPTConfig from weights/gpt_config.json.
The published names num_vq, num_audio_tokens and num_hidden_layers are num_codebooks,
num_audio_tokens and num_layers here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

Runner = Literal["onnx", "torch"]
Precision = Literal["fp32", "int8", "int8-weights"]

BLOCK_SIZES = (16, 32, 64)
DEFAULT_TOKENS_PER_SEQ = 1024
"""Sizes the default pool: a 15-second utterance is about 700 steps plus its prompt."""

_RANGES: dict[str, tuple[int, int]] = {
    "max_num_seqs": (1, 256),
    "max_model_len": (64, 1 << 20),
    "block_size": (BLOCK_SIZES[0], BLOCK_SIZES[-1]),
    "num_kv_blocks": (0, 1 << 24),
    "max_num_waiting": (0, 1 << 20),
    "priority_head_start_ms": (0, 86_400_000),
    "max_num_batched_tokens": (0, 1 << 20),
    "prefill_chunk_tokens": (0, 1 << 20),
    "num_threads": (0, 1024),
    "num_engines": (0, 64),
}


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Limits of one engine; config.pbtxt documents each key."""

    max_num_seqs: int = 16
    """Sequences decoded together."""
    max_model_len: int = 4096
    """Longest prompt plus generation, in tokens."""
    block_size: int = 16
    """Tokens per KV block: 16, 32 or 64."""
    num_kv_blocks: int = 0
    """Blocks in the pool; 0 = 1024 tokens per sequence, but one of max_model_len at least."""
    max_num_waiting: int = 256
    """Requests that may wait for a slot."""
    priority_head_start_ms: int = 30_000
    """A request goes before those of the next lower priority that came up to this much earlier: so
    one level holds the next one back by no more."""
    max_num_batched_tokens: int = 64
    """Prompt tokens computed per step beside the decoding sequences, except that one chunk always
    may run; 0 lets load_engine choose."""
    prefill_chunk_tokens: int = 64
    """Prompt tokens computed in one network call; 0 lets load_engine choose."""
    num_threads: int = 0
    """Threads of the CPU runner; 0 lets the runner's library choose, or shares the cores among the
    engines."""
    num_engines: int = 0
    """Engine processes behind one model, each with these limits; 0 = one per device."""

    def __post_init__(self) -> None:
        for key, (low, high) in _RANGES.items():
            value = getattr(self, key)
            if not low <= value <= high:
                raise ValueError(f"{key}: {value} is outside {low} ... {high}")
        if self.block_size not in BLOCK_SIZES:
            raise ValueError(f"block_size: {self.block_size} is not one of {BLOCK_SIZES}")

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, str]) -> EngineConfig:
        """Read the `parameters` of config.pbtxt, given as plain strings.

        Raises:
            ValueError: an unknown key, a value that is not a whole number or out of range.
        """
        known = [field.name for field in fields(cls)]
        values: dict[str, int] = {}
        for key, text in parameters.items():
            if key not in known:
                raise ValueError(f"{key}: unknown engine parameter; allowed: {', '.join(known)}")
            try:
                values[key] = int(text)
            except ValueError:
                raise ValueError(f"{key}: {text!r} is not a whole number") from None
        return cls(**values)

    def pool_blocks(self) -> int:
        """Return the number of KV blocks in the pool."""
        if self.num_kv_blocks:
            return self.num_kv_blocks
        num_tokens = max(self.max_num_seqs * DEFAULT_TOKENS_PER_SEQ, self.max_model_len)
        return num_tokens // self.block_size


@dataclass(frozen=True, slots=True)
class GPTConfig:
    """Sizes and origin of the weights beside the engine."""

    checkpoint: str
    untrained: bool
    precision: Precision
    runner: Runner
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    head_dim: int
    num_codebooks: int
    num_audio_tokens: int
    """Rows of one codebook's table; the last one, num_audio_tokens - 1, is end of speech."""
    num_text_tokens: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float

    @classmethod
    def from_file(cls, path: Path) -> GPTConfig:
        """Read gpt_config.json as build/ writes it.

        Raises:
            ValueError: another format, a missing key or an unknown runner or precision.
        """
        raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if raw.get("format") != 1:
            raise ValueError(f"{path}: format {raw.get('format')!r} is not 1; build it again")
        missing = [field.name for field in fields(cls) if field.name not in raw]
        if missing:
            raise ValueError(f"{path}: misses {', '.join(missing)}; build it again")
        if raw["runner"] not in get_args(Runner):
            raise ValueError(f"{path}: runner {raw['runner']!r} is not one of {get_args(Runner)}")
        if raw["precision"] not in get_args(Precision):
            raise ValueError(f"{path}: unknown precision {raw['precision']!r}")
        return cls(**{field.name: raw[field.name] for field in fields(cls)})

    @property
    def end_of_speech(self) -> int:
        """The code that ends the speech, in any codebook."""
        return self.num_audio_tokens - 1
