"""SamplingParams: how one request's tokens are drawn, validated once.

Knows nothing of models or tensors. Names follow the field; the published package says top_P, top_K,
min_new_token and max_new_token for the same knobs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MIN_TEMPERATURE = 1e-5
MAX_TEMPERATURE = 2.0
MIN_REPETITION_PENALTY = 0.5
MAX_REPETITION_PENALTY = 2.0
MAX_NEW_TOKENS = 2048
MAX_SEED = 2**64 - 1


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Knobs of one request.

    Raises:
        ValueError: a value is outside its range; the message names the field and the range.
    """

    seed: int
    """Key of the request's noise, 0 ... 2**64 - 1."""
    temperature: tuple[float, ...] = (0.3,)
    """One value for all codebooks or one per codebook, 0.00001 ... 2."""
    top_p: float = 0.7
    """Nucleus mass, 0 < top_p <= 1; the three likeliest tokens always stay."""
    top_k: int = 20
    """Candidates kept, at least 1; the three likeliest tokens always stay."""
    repetition_penalty: float = 1.05
    """Factor per occurrence among the last 16 tokens, 0.5 ... 2; 1 switches it off."""
    min_new_tokens: int = 0
    """Steps before the end token is allowed, 0 ... max_new_tokens."""
    max_new_tokens: int = MAX_NEW_TOKENS
    """Most steps, 1 ... 2048 (2048 code steps are 43.7 s of audio)."""

    def __post_init__(self) -> None:
        _check_int("seed", self.seed, 0, MAX_SEED)
        for value in self.temperature:
            _check_float("temperature", value, MIN_TEMPERATURE, MAX_TEMPERATURE)
        if not (math.isfinite(self.top_p) and 0.0 < self.top_p <= 1.0):
            raise ValueError(f"top_p: {self.top_p} is outside 0 < top_p <= 1")
        if self.top_k < 1:
            raise ValueError(f"top_k: {self.top_k} is below 1")
        _check_float(
            "repetition_penalty",
            self.repetition_penalty,
            MIN_REPETITION_PENALTY,
            MAX_REPETITION_PENALTY,
        )
        _check_int("max_new_tokens", self.max_new_tokens, 1, MAX_NEW_TOKENS)
        _check_int("min_new_tokens", self.min_new_tokens, 0, self.max_new_tokens)


def _check_float(name: str, value: float, low: float, high: float) -> None:
    if not (math.isfinite(value) and low <= value <= high):
        raise ValueError(f"{name}: {value} is outside {low:g} ... {high:g}")


def _check_int(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name}: {value} is outside {low} ... {high}")
