"""The sampler's arithmetic in PyTorch, for drawing on the device without asking the host.

The same steps in the same order as sampler.py and noise.py, with shapes that do not depend on the
data, so that a CUDA graph can hold them (masked_fill rather than `where` with a number, which
would copy that number from the host). Words of 64 bits are int64 here: sums and products wrap
the same way, and a logical shift is an arithmetic one with the sign bits masked off.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .sampler import MIN_TOKENS_TO_KEEP

_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX_1 = 0xBF58476D1CE4E5B9 - (1 << 64)
_MIX_2 = 0x94D049BB133111EB - (1 << 64)


@dataclass(frozen=True, slots=True, eq=False)
class DrawState:
    """Knobs of N rows on the device; `advance` changes `history` and `steps` in place."""

    temperature: Tensor
    """(N,) float32"""
    outside_mass: Tensor
    """(N,) float32, 1 - top_p."""
    top_k: Tensor
    """(N,) int64, at least 1."""
    repetition_penalty: Tensor
    """(N,) float32"""
    history: Tensor
    """(N, W) int64 recent tokens, the latest last; NO_TOKEN (-1) in front where there are fewer."""
    min_new_tokens: Tensor
    """(N,) int64: the end token is forbidden while steps < min_new_tokens."""
    seeds: Tensor
    """(N,) int64, the bits of the unsigned seed."""
    steps: Tensor
    """(N,) int64, index of the token to draw."""
    codebooks: Tensor
    """(N,) int64"""

    def advance(self, tokens: Tensor) -> None:
        """Take (N,) drawn tokens into the history and go on to the next step."""
        self.history.copy_(torch.cat([self.history[:, 1:], tokens[:, None]], dim=1))
        self.steps.add_(1)


def draw(logits: Tensor, state: DrawState, end_token: int) -> Tensor:
    """Draw one token per row.

    Args:
        logits: (N, V) float32.
        state: knobs of the N rows.
        end_token: forbidden in the rows that have not reached min_new_tokens.

    Returns:
        (N,) int64 token ids in [0, V).
    """
    probs = probabilities(logits, state, end_token)
    noise = counter_noise(state.seeds, state.steps, state.codebooks, logits.shape[1])
    return (probs / noise).masked_fill(probs <= 0, 0.0).argmax(dim=1)


def probabilities(logits: Tensor, state: DrawState, end_token: int) -> Tensor:
    """Return the (N, V) distribution that is drawn from; filtered tokens have probability 0."""
    logits = _penalise(logits / state.temperature[:, None], state)
    logits = _keep_likely(logits, state)
    is_end = torch.arange(logits.shape[1], device=logits.device) == end_token
    is_early = state.steps < state.min_new_tokens
    return _softmax(logits.masked_fill(is_early[:, None] & is_end, -torch.inf))


def counter_noise(seeds: Tensor, steps: Tensor, codebooks: Tensor, vocabulary: int) -> Tensor:
    """Return (N, V) float64 exponential variates for (N,) rows and all tokens."""
    tokens = torch.arange(vocabulary, device=seeds.device)
    place = ((steps << 32) | (codebooks << 24))[:, None] | tokens
    word = splitmix64(splitmix64(seeds)[:, None] ^ place)
    uniform = (_shift_right(word, 11).double() + 0.5) * 2.0**-53
    return -uniform.log()


def splitmix64(words: Tensor) -> Tensor:
    """Mix int64 words; arithmetic is modulo 2**64."""
    x = words + _GOLDEN
    x = (x ^ _shift_right(x, 30)) * _MIX_1
    x = (x ^ _shift_right(x, 27)) * _MIX_2
    return x ^ _shift_right(x, 31)


def _shift_right(words: Tensor, bits: int) -> Tensor:
    """Shift as if the words were unsigned."""
    return (words >> bits) & ((1 << (64 - bits)) - 1)


def _penalise(logits: Tensor, state: DrawState) -> Tensor:
    """Scale the logits of recent tokens by penalty ** count, away from being chosen."""
    is_token = (state.history >= 0).to(logits.dtype)
    counts = torch.zeros_like(logits).scatter_add_(1, state.history.clamp(min=0), is_token)
    factor = state.repetition_penalty[:, None] ** counts
    return torch.where(logits < 0, logits * factor, logits / factor)


def _keep_likely(logits: Tensor, state: DrawState) -> Tensor:
    """Set all but the top-p and top-k candidates to minus infinity."""
    vocabulary = logits.shape[1]
    order = logits.sort(dim=1).values  # ascending
    mass = _softmax(order).cumsum(dim=1, dtype=torch.float64).float()
    num_outside = (mass <= state.outside_mass[:, None])[:, :-MIN_TOKENS_TO_KEEP].sum(dim=1)
    top_k = state.top_k.clamp(MIN_TOKENS_TO_KEEP, vocabulary)
    first_kept = torch.maximum(num_outside, vocabulary - top_k)
    threshold = order.gather(1, first_kept[:, None])
    return logits.masked_fill(logits < threshold, -torch.inf)


def _softmax(logits: Tensor) -> Tensor:
    exp = (logits - logits.amax(dim=1, keepdim=True)).exp()
    return exp / exp.sum(dim=1, keepdim=True)
