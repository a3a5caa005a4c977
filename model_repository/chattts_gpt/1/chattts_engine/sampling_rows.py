"""Lay out sequences as the rows of one sampler call."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .sampler import NO_TOKEN, SamplingRows
from .sequence import PENALTY_WINDOW, Sequence


def sampling_rows(
    sequences: SequenceOf[Sequence], num_codebooks: int, end_token: int
) -> SamplingRows:
    """Lay out the knobs of B sequences as B * C rows, codebook fastest.

    Args:
        sequences: B sequences of one mode.
        num_codebooks: C, 1 for text.
        end_token: forbidden for sequences that have not reached min_new_tokens.
    """
    params = [sequence.request.sampling for sequence in sequences]

    def repeat(values: SequenceOf[float], dtype: type[np.generic]) -> NDArray[Any]:
        return np.repeat(np.array(values, dtype=dtype), num_codebooks)

    temperature: list[float] = []
    for p in params:
        per_codebook = len(p.temperature) == num_codebooks
        temperature += p.temperature if per_codebook else p.temperature * num_codebooks
    history = np.full((len(sequences), num_codebooks, PENALTY_WINDOW), NO_TOKEN, dtype=np.int64)
    for row, sequence in enumerate(sequences):
        recent = sequence.recent_tokens()
        history[row, :, : len(recent)] = recent.T
    is_early = [s.num_generated < p.min_new_tokens for s, p in zip(sequences, params, strict=True)]
    return SamplingRows(
        temperature=np.array(temperature, np.float32),
        top_p=repeat([p.top_p for p in params], np.float64),
        top_k=repeat([p.top_k for p in params], np.int64),
        repetition_penalty=repeat([p.repetition_penalty for p in params], np.float32),
        history=history.reshape(-1, PENALTY_WINDOW),
        end_token=repeat([end_token if early else NO_TOKEN for early in is_early], np.int64),
        seeds=repeat([s.noise_seed for s in sequences], np.uint64),
        steps=repeat([s.num_generated for s in sequences], np.int64),
        codebooks=np.tile(np.arange(num_codebooks), len(sequences)),
    )
