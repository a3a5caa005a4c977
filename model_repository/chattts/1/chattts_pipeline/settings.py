"""What operator and checkpoint decide: limits from config.pbtxt, facts from checkpoint.json."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

CHECKPOINT_FORMAT = 1

# Keys of config.pbtxt that belong to Triton's Python backend.
_TRITON_KEYS = frozenset({"EXECUTION_ENV_PATH", "FORCE_CPU_ONLY_INPUT_TENSORS"})

AUTO = "auto"

# Of whole numbers, where it is not 1.
_LOWEST = {"max_segment_characters": 16}


@dataclass(frozen=True, slots=True)
class Settings:
    """The `parameters` block of config.pbtxt."""

    max_text_characters: int
    """Longest text accepted, at least 1."""
    max_streams: int
    """Requests worked on at once, at least 1."""
    parallel_segments: int
    """Segments of one request in the token model at once, at least 1."""
    max_segment_characters: int
    """Longest segment, at least 16: a control token must fit."""
    low_latency_lookahead_steps: int
    """Steps known beyond those that are spoken with latency=low, at least 1."""
    low_latency_first_steps: int
    """Steps of audio in the first piece with latency=low, at least 1."""

    segment_seconds: int | None = None
    """Sentences are joined up to about this much speech, 0: none are; None: as the weights like."""
    metrics: bool = True
    """Count what requests come to; the running ones are counted anyway."""
    log_sampling: float = 1.0
    """Share of the requests that ended OK that are logged, 0 ... 1; others always are."""
    log_text: bool = False
    """Log what was said too."""

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, str]) -> "Settings":
        """Read the settings from key and text value.

        Raises:
            ValueError: An unknown or missing key, or a value that is not in its range.
        """
        names = [field.name for field in fields(cls)]
        unknown = sorted(set(parameters) - set(names) - _TRITON_KEYS)
        if unknown:
            raise ValueError(f"parameter {unknown[0]}: unknown; allowed: {', '.join(names)}")
        needed = {field.name for field in fields(cls) if field.default is MISSING}
        missing = sorted(needed - set(parameters))
        if missing:
            raise ValueError(f"parameter {missing[0]}: missing")
        return cls(
            **{name: _read(name, text) for name, text in parameters.items() if name in names}
        )


def _read(key: str, text: str) -> Any:
    if key in ("metrics", "log_text"):
        return _switch(key, text)
    if key == "segment_seconds":
        return None if text.strip() == AUTO else _whole(key, text, 0)
    if key == "log_sampling":
        return _share(key, text)
    return _whole(key, text, _LOWEST.get(key, 1))


def _whole(key: str, text: str, lowest: int) -> int:
    if not text.strip().isdecimal() or int(text) < lowest:
        raise ValueError(f"parameter {key}: {text!r} is not a whole number of at least {lowest}")
    return int(text)


def _switch(key: str, text: str) -> bool:
    if text.strip() not in ("true", "false"):
        raise ValueError(f"parameter {key}: {text!r} is neither true nor false")
    return text.strip() == "true"


def _share(key: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"parameter {key}: {text!r} is outside 0 ... 1")
    return share


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What the front needs to know about the weights behind it (weights/checkpoint.json)."""

    checkpoint: str
    """Name."""
    untrained: bool
    """The weights are random: output is noise and must be labelled so."""
    precision: str
    """fp32 or int8."""
    sample_rate: int
    """Hz."""
    hidden_size: int
    """H, the length of a hidden state and of a speaker vector."""
    samples_per_step: int
    """Samples that one step of the token model adds."""
    context_steps: int
    """Reach of the vocoder to each side, in steps."""
    vocoder_state_size: int
    """Numbers that the vocoder keeps of one stream between two chunks."""
    special_tokens: tuple[str, ...]
    """The control tokens of the vocabulary."""
    segment_seconds: float
    """Sentences are joined up to about this much speech; 0: one at a time."""
    default_voice: str
    """Voice of a request that names none; empty: no speaker."""

    @classmethod
    def from_file(cls, path: Path) -> "Checkpoint":
        """Read checkpoint.json.

        Raises:
            ValueError: Not a JSON object of this format, or a key is missing.
        """
        values: Any = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict) or values.get("format") != CHECKPOINT_FORMAT:
            raise ValueError(f"{path}: not a checkpoint file of format {CHECKPOINT_FORMAT}")
        names = [field.name for field in fields(cls)]
        missing = [name for name in names if name not in values]
        if missing:
            raise ValueError(f"{path}: {missing[0]} is missing")
        chosen = {name: values[name] for name in names}
        return cls(**chosen | {"special_tokens": tuple(chosen["special_tokens"])})
