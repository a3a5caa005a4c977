"""Sampler: logits to tokens for a batch of rows, each with its own knobs and noise.

One row is one codebook of one sequence (or the text head of one). Order of the steps: temperature,
repetition penalty, top-p, top-k, end-token mask, softmax, draw. Source: specification of the
published sampling order; the draw is arg max of p / e with exponential noise e.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .noise import Noise, counter_noise

MIN_TOKENS_TO_KEEP = 3
"""Candidates that survive top-p and top-k, whatever their values."""
NO_TOKEN = -1
"""Filler of a history row shorter than the penalty window."""


@dataclass(slots=True)
class SamplingRows:
    """Knobs of N rows, as arrays."""

    temperature: NDArray[np.float32]
    """(N,)"""
    top_p: NDArray[np.float64]
    """(N,)"""
    top_k: NDArray[np.int64]
    """(N,)"""
    repetition_penalty: NDArray[np.float32]
    """(N,)"""
    history: NDArray[np.int64]
    """(N, W) recent tokens of the row, NO_TOKEN where there are fewer."""
    end_token: NDArray[np.int64]
    """(N,) token to forbid, or NO_TOKEN."""
    seeds: NDArray[np.uint64]
    """(N,)"""
    steps: NDArray[np.int64]
    """(N,) index of the token to draw."""
    codebooks: NDArray[np.int64]
    """(N,)"""


class Sampler:
    """Draws tokens; pure but for the noise function it was given."""

    def __init__(self, noise: Noise = counter_noise) -> None:
        self._noise = noise

    def sample(self, logits: NDArray[np.float32], rows: SamplingRows) -> NDArray[np.int64]:
        """Draw one token per row.

        Args:
            logits: (N, V) float32.
            rows: knobs of the N rows.

        Returns:
            (N,) token ids in [0, V).
        """
        return self.draw(probabilities(logits, rows), rows)

    def draw(self, probs: NDArray[np.float32], rows: SamplingRows) -> NDArray[np.int64]:
        """Draw one token per row of (N, V) probabilities."""
        row, token = np.nonzero(probs)
        noise = self._noise(
            rows.seeds[row], rows.steps[row], rows.codebooks[row], token.astype(np.int64)
        )
        scores = np.zeros(probs.shape, dtype=np.float64)
        scores[row, token] = probs[row, token] / noise
        drawn: NDArray[np.int64] = scores.argmax(axis=1)
        return drawn


def probabilities(logits: NDArray[np.float32], rows: SamplingRows) -> NDArray[np.float32]:
    """Return the (N, V) distribution that is drawn from; filtered tokens have probability 0."""
    logits = logits / rows.temperature[:, None]
    _penalise(logits, rows)
    logits = _keep_likely(logits, rows)
    masked = np.flatnonzero(rows.end_token != NO_TOKEN)
    logits[masked, rows.end_token[masked]] = -np.inf
    return _softmax(logits)


def _penalise(logits: NDArray[np.float32], rows: SamplingRows) -> None:
    """Scale the logits of recent tokens by penalty ** count, in place, away from being chosen."""
    row, place = np.nonzero(rows.history != NO_TOKEN)
    token = rows.history[row, place]
    counts = np.count_nonzero(rows.history[row] == token[:, None], axis=1).astype(np.float32)
    factor = rows.repetition_penalty[row] ** counts
    value = logits[row, token]
    # A token that occurs twice is written twice, with the same value.
    logits[row, token] = np.where(value < 0, value * factor, value / factor)


def _keep_likely(logits: NDArray[np.float32], rows: SamplingRows) -> NDArray[np.float32]:
    """Set all but the top-p and top-k candidates to minus infinity."""
    order = np.sort(logits, axis=1)  # ascending
    # The published sum runs in double and is stored as float32.
    mass = np.cumsum(_softmax(order), axis=1, dtype=np.float64).astype(np.float32)
    outside = mass <= (1.0 - rows.top_p).astype(np.float32)[:, None]
    outside[:, -MIN_TOKENS_TO_KEEP:] = False
    num_outside = outside.sum(axis=1)  # a prefix, since the sum only grows

    vocabulary = logits.shape[1]
    top_k = np.clip(rows.top_k, MIN_TOKENS_TO_KEEP, vocabulary)
    first_kept = np.maximum(num_outside, vocabulary - top_k)
    threshold = order[np.arange(len(order)), first_kept]
    return np.where(logits < threshold[:, None], np.float32(-np.inf), logits)


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs: NDArray[np.float32] = exp / exp.sum(axis=1, keepdims=True)
    return probs
