"""Lets the token model speak: the published sampling, row by row, with a cache.

Letters in shapes: B rows, N prompt positions, V codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from layout import NUM_CODEBOOKS
from torch import Tensor

from train_voice.gpt import Cache, TokenModel
from train_voice.token_data import END
from train_voice.tokenizer import Prompt

WINDOW = 16
"""Steps that the repetition penalty looks back."""
MIN_KEPT = 3
"""Candidates that top-p and top-k leave at least."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How codes are drawn; the published defaults."""

    temperature: float = 0.3
    top_p: float = 0.7
    top_k: int = 20
    repetition_penalty: float = 1.05


@dataclass(frozen=True, slots=True)
class Generated:
    """What one row said."""

    codes: Tensor
    """(T, 4)"""
    hidden: Tensor
    """(T, H)"""
    has_ended: bool
    """False: it was cut at the largest number of steps."""


@torch.no_grad()
def generate(
    model: TokenModel,
    prompts: Sequence[Prompt],
    speakers: Tensor,
    speaker_id: int,
    max_steps: int,
    sampling: Sampling | None = None,
    seed: int = 0,
) -> list[Generated]:
    """Speak a batch of prompts.

    Args:
        model: the token model.
        prompts: of each row.
        speakers: (B, H), used where a prompt has the speaker token.
        speaker_id: id of that token.
        max_steps: a row that has not ended by then is cut.
        sampling: the published defaults if None.
        seed: of the draws.
    """
    sampling = sampling or Sampling()
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([len(prompt.ids) for prompt in prompts])
    rows, longest = len(prompts), int(lengths.max())
    ids = torch.zeros(rows, longest, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt.ids)] = torch.tensor(prompt.ids)
    cache = Cache(model.sizes, rows, longest + max_steps)
    hidden, _ = model.llama(model.embed_prompts(ids, ids == speaker_id, speakers), cache=cache)
    last = hidden[torch.arange(rows), lengths - 1]
    codes = torch.zeros(rows, 0, NUM_CODEBOOKS, dtype=torch.long)
    hiddens: list[Tensor] = []
    ends = torch.full((rows,), max_steps)
    for step in range(max_steps):
        logits = torch.stack([head(last) for head in model.embed.head_code], dim=1)
        drawn = draw(logits, codes, sampling, generator)
        has_ended = (drawn == END).any(dim=1) & (ends == max_steps)
        ends = torch.where(has_ended, step, ends)
        if bool((ends < max_steps).all()):
            break
        hiddens.append(last)
        drawn = drawn.masked_fill(drawn == END, 0)
        codes = torch.cat([codes, drawn[:, None]], dim=1)
        last = model.llama.step(model.embed.embed_codes(drawn), cache, lengths + step)
    stacked = torch.stack(hiddens, dim=1) if hiddens else torch.zeros(rows, 0, last.shape[1])
    return [
        Generated(codes[row, :end], stacked[row, :end], end < max_steps)
        for row, end in enumerate(ends.tolist())
    ]


def draw(logits: Tensor, past: Tensor, sampling: Sampling, generator: torch.Generator) -> Tensor:
    """Return one code per row and codebook, (B, 4).

    Args:
        logits: (B, 4, V)
        past: (B, T, 4) codes said so far.
        sampling: temperature, then penalty, top-p and top-k, in this order.
        generator: of the draw.
    """
    logits = logits / sampling.temperature
    recent = past[:, -WINDOW:].transpose(1, 2)
    counts = torch.zeros_like(logits).scatter_add(2, recent, torch.ones(recent.shape))
    factor = sampling.repetition_penalty**counts
    logits = torch.where(logits < 0, logits * factor, logits / factor)
    ordered, order = logits.sort(dim=-1)
    removed = ordered.softmax(dim=-1).cumsum(dim=-1) <= 1 - sampling.top_p
    removed[..., : -max(sampling.top_k, MIN_KEPT)] = True
    removed[..., -MIN_KEPT:] = False
    ordered = ordered.masked_fill(removed, -torch.inf)
    chances = ordered.softmax(dim=-1).flatten(0, 1)
    place = torch.multinomial(chances, 1, generator=generator).view(*logits.shape[:2], 1)
    return order.gather(2, place)[..., 0]
