"""The GPT in plain NumPy: embeddings, Llama over the full context, heads.

No cache, no batch: the slow, readable truth that the ONNX graphs are checked against.
Shapes: T positions, H hidden size, A heads, D head size, C codebooks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import reference_ops as ops
from checkpoint import Array, Tensors
from gpt_graph import folded_head
from layout import GptSizes

Integers = npt.NDArray[np.integer[Any]]
Observer = Callable[[Array, Array], None]
NORM_FLOOR = 1e-12
"""Smallest speaker norm divided by."""


def normalize_speaker(vector: npt.NDArray[np.float16]) -> Array:
    """Return a speaker vector (H,) divided by its length, rounded like float16 arithmetic.

    The norm is rounded to float16 before the division, so the result is not exactly of length 1.
    """
    norm = np.float16(max(float(np.linalg.norm(vector.astype(np.float64))), NORM_FLOOR))
    return (vector.astype(np.float32) / np.float32(norm)).astype(np.float16).astype(np.float32)


def embed_prompt(
    ids: Integers,
    embed: Tensors,
    speaker: tuple[int, npt.NDArray[np.float16]] | None = None,
    prompt_codes: Integers | None = None,
) -> Array:
    """Return the input embeddings of a prompt.

    Args:
        ids: (T,) text token ids.
        embed: tensors of Embed.safetensors.
        speaker: id of the speaker token, and the (H,) vector that replaces its embedding.
        prompt_codes: (P, C) codes of an audio prompt, appended.

    Returns:
        (T + P, H) float32.
    """
    rows: Array = embed["emb_text.weight"][ids]
    if speaker is not None:
        token, vector = speaker
        rows[ids == token] = normalize_speaker(vector)
    if prompt_codes is None:
        return rows
    return np.concatenate([rows, embed_codes(prompt_codes, embed)])


def embed_codes(codes: Integers, embed: Tensors) -> Array:
    """Return the (T, H) sum of the embeddings of (T, C) codes, one table per codebook."""
    total = np.zeros((len(codes), embed["emb_code.0.weight"].shape[1]), np.float32)
    for codebook, column in enumerate(codes.T):
        total += embed[f"emb_code.{codebook}.weight"][column]
    return total


def _rotate(heads: Array, sizes: GptSizes) -> Array:
    """Apply the rotary embedding to (A, T, D) at the positions 0 ... T-1; pairs (j, j + D/2)."""
    half = sizes.head_dim // 2
    frequency = sizes.rope_theta ** -(np.arange(half) / half)
    angle = np.outer(np.arange(heads.shape[1]), frequency)
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    first, second = heads[..., :half], heads[..., half:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def _attention(
    rows: Array, tensors: Tensors, prefix: str, sizes: GptSizes, observe: Observer | None
) -> Array:
    def heads(name: str) -> Array:
        projected = rows @ tensors[f"{prefix}{name}_proj.weight"].T
        return projected.reshape(len(rows), sizes.num_heads, sizes.head_dim).transpose(1, 0, 2)

    query, key, value = _rotate(heads("q"), sizes), _rotate(heads("k"), sizes), heads("v")
    if observe is not None:
        observe(key, value)
    scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(sizes.head_dim))
    future = np.triu(np.ones((len(rows), len(rows)), bool), 1)
    weights = ops.softmax(np.where(future, np.float32(-np.inf), scores))
    merged = (weights @ value).transpose(1, 0, 2).reshape(len(rows), sizes.attention_size)
    return merged @ tensors[f"{prefix}o_proj.weight"].T


def _mlp(rows: Array, tensors: Tensors, prefix: str) -> Array:
    gate = ops.silu(rows @ tensors[f"{prefix}gate_proj.weight"].T)
    up = rows @ tensors[f"{prefix}up_proj.weight"].T
    return (gate * up) @ tensors[f"{prefix}down_proj.weight"].T


def hidden_states(
    embeds: Array, tensors: Tensors, sizes: GptSizes, observe: Observer | None = None
) -> Array:
    """Return the hidden states (T, H) after the final norm for input embeddings (T, H).

    Args:
        embeds: (T, H) float32.
        tensors: the tensors of gpt/model.safetensors.
        sizes: the checkpoint's GPT sizes.
        observe: called for each layer in order with its rotated keys and its values, (A, T, D).
    """
    rows, epsilon = embeds, sizes.rms_norm_eps
    for layer in range(sizes.num_layers):
        prefix = f"layers.{layer}."
        normed = ops.rms_norm(rows, tensors[f"{prefix}input_layernorm.weight"], epsilon)
        rows = rows + _attention(normed, tensors, f"{prefix}self_attn.", sizes, observe)
        normed = ops.rms_norm(rows, tensors[f"{prefix}post_attention_layernorm.weight"], epsilon)
        rows = rows + _mlp(normed, tensors, f"{prefix}mlp.")
    return ops.rms_norm(rows, tensors["norm.weight"], epsilon)


def code_logits(hidden: Array, embed: Tensors, sizes: GptSizes) -> Array:
    """Return the (T, C, audio tokens) logits of hidden states (T, H)."""
    heads = [folded_head(embed, f"code.{i}") for i in range(sizes.num_codebooks)]
    return np.stack([hidden @ head.T for head in heads], axis=1)


def text_logits(hidden: Array, embed: Tensors) -> Array:
    """Return the (T, text tokens) logits of hidden states (T, H)."""
    return hidden @ folded_head(embed, "text").T
