"""Scales of the int8 KV cache: how large keys and values get, per channel, measured at build time.

The scales are constants of the graph, so they must hold for every speech. The reference network
runs once over random text and random codes; a margin covers most of what real speech adds to that,
and beyond it a value is clipped. On the small voice, the median channel of real speech reaches 1.05
times the measured magnitude, the worst one 2.5 times.
"""

from __future__ import annotations

import numpy as np
import reference_gpt
from checkpoint import Array, Tensors
from gpt_graph import MAX_LEVEL, SMALLEST_MAGNITUDE, KvScales
from layout import NUM_CODES, GptSizes

NUM_TEXT = 48
NUM_FRAMES = 144
"""Positions in all: enough to meet each channel's range, a second of work at full size."""
MARGIN = 1.5
SEED = 7


def calibrate(sizes: GptSizes, tensors: Tensors, embed: Tensors) -> list[KvScales]:
    """Return the scales of each layer.

    Args:
        sizes: the checkpoint's GPT sizes.
        tensors: the tensors of gpt/model.safetensors.
        embed: the tensors of Embed.safetensors.
    """
    scales: list[KvScales] = []

    def observe(key: Array, value: Array) -> None:
        half = sizes.head_dim // 2
        # Positions turn each pair of key channels: either may reach the length of the pair.
        length = np.hypot(key[..., :half], key[..., half:])
        pairs = np.concatenate([length, length], axis=-1)
        scales.append(KvScales(_scale(pairs), _scale(np.abs(value))))

    reference_gpt.hidden_states(_sample(sizes, embed), tensors, sizes, observe)
    return scales


def _scale(magnitude: Array) -> Array:
    """Return the (heads, head_dim) scales for magnitudes (heads, T, head_dim)."""
    largest: Array = magnitude.max(axis=1) * np.float32(MARGIN / MAX_LEVEL)
    return np.maximum(largest, SMALLEST_MAGNITUDE).astype(np.float32)


def _sample(sizes: GptSizes, embed: Tensors) -> Array:
    random = np.random.default_rng(SEED)
    ids = random.integers(0, sizes.num_text_tokens, NUM_TEXT)
    frames = random.integers(0, NUM_CODES, (NUM_FRAMES, sizes.num_codebooks))
    return reference_gpt.embed_prompt(ids, embed, prompt_codes=frames)
