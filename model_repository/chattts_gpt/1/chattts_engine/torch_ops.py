"""The network's fused operations in plain PyTorch: what runs on CPU, and what a kernel must equal.

`decode_attention` goes row by row through the block tables, so it is the readable reference for
torch_kernels, and a row's bits cannot depend on its neighbours.

Letters in shapes: B rows, H hidden size, I intermediate size, A heads, D head size, P positions.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


class KeysValues(NamedTuple):
    """One layer's part of the paged pool."""

    keys: Tensor
    """(blocks, A, block size, D), rotated."""
    values: Tensor
    """(blocks, A, block size, D)"""


class Rotary(NamedTuple):
    """Cosine and sine of every position's angles."""

    cos: Tensor
    """(P, D/2) float32"""
    sin: Tensor
    """(P, D/2) float32"""


class Operations(Protocol):
    """What torch_ops and torch_kernels both offer."""

    def add_rms_norm(
        self, residual: Tensor, delta: Tensor | None, weight: Tensor, eps: float, dtype: torch.dtype
    ) -> Tensor:
        """See torch_ops."""

    def gated_silu(self, gate_up: Tensor) -> Tensor:
        """See torch_ops."""

    def decode_attention(
        self, qkv: Tensor, pool: KeysValues, tables: Tensor, positions: Tensor, rotary: Rotary
    ) -> Tensor:
        """See torch_ops."""


def add_rms_norm(
    residual: Tensor, delta: Tensor | None, weight: Tensor, eps: float, dtype: torch.dtype
) -> Tensor:
    """Add `delta` to `residual` in place and return the sum's RMS norm.

    Args:
        residual: (B, H) float32.
        delta: (B, H) of any float type, or None to add nothing.
        weight: (H,) float32.
        eps: added to the mean square.
        dtype: of the result.

    Returns:
        (B, H) in `dtype`.
    """
    if delta is not None:
        residual += delta
    scale = (residual.square().mean(dim=-1, keepdim=True) + eps).rsqrt()
    return (residual * scale * weight).to(dtype)


def gated_silu(gate_up: Tensor) -> Tensor:
    """Return silu(gate) * up, (B, I), for gate and up side by side, (B, 2 * I)."""
    gate, up = gate_up.float().chunk(2, dim=-1)
    return (F.silu(gate) * up).to(gate_up.dtype)


def decode_attention(
    qkv: Tensor, pool: KeysValues, tables: Tensor, positions: Tensor, rotary: Rotary
) -> Tensor:
    """Keep one position's key and value of each row, and attend to all of the row's positions.

    Args:
        qkv: (B, 3 * A * D) queries, keys and values, not yet rotated.
        pool: where the row's earlier keys and values lie; changed in place.
        tables: (B, blocks per row) int32, the row's blocks in order of position.
        positions: (B,) int32, the position to compute, or -1 for a row that is padding.
        rotary: angles.

    Returns:
        (B, A * D), zero for padding. Scores and sums are float32.
    """
    num_heads, block_size, head_dim = pool.keys.shape[1:]
    merged = torch.zeros_like(qkv[:, : num_heads * head_dim])
    for row, position in enumerate(positions.tolist()):
        if position < 0:
            continue
        query, key, value = qkv[row].view(3, num_heads, head_dim)
        cos, sin = rotary.cos[position], rotary.sin[position]
        block, offset = tables[row, position // block_size], position % block_size
        pool.keys[block, :, offset] = rotate(key, cos, sin).to(pool.keys.dtype)
        pool.values[block, :, offset] = value
        blocks = tables[row, : position // block_size + 1]
        keys, values = (in_order(part, blocks)[:, : position + 1].float() for part in pool)
        scores = torch.einsum("ad,ald->al", rotate(query, cos, sin), keys) / math.sqrt(head_dim)
        merged[row] = torch.einsum("al,ald->ad", scores.softmax(dim=-1), values).flatten()
    return merged


def rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (j, j + D/2) of (..., D) heads by (..., D/2) angles; float32."""
    first, second = heads.float().chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def in_order(part: Tensor, blocks: Tensor) -> Tensor:
    """Gather (A, L, D) keys or values in order of position for (N,) blocks; L = N * block size."""
    return part[blocks.long()].transpose(0, 1).flatten(1, 2)
