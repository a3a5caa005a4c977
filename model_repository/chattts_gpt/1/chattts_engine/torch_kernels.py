"""The operations of torch_ops as Triton-language kernels, for CUDA devices of sm_80 and later.

Each row is one program (or one per head or slice), so neither the batch nor the row's place in it
can change the order of a sum: the bits of a row follow from its own values, position and length.
The online softmax over tiles is that of FlashAttention (Dao et al., 2022), without a split of the
keys over programs.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from .torch_ops import KeysValues, Rotary

TILE = 128
"""Positions whose keys are loaded together. Part of the order of sums: changing it changes bits."""
ATTENTION_WARPS = 8
SLICE = 1024
"""Values of one gated_silu program."""


@triton.jit
def _add_rms_norm(
    residual, delta, weight, out, eps,
    HAS_DELTA: tl.constexpr, SIZE: tl.constexpr, SIZE_PADDED: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0).to(tl.int64) * SIZE
    at = tl.arange(0, SIZE_PADDED)
    inside = at < SIZE
    row = tl.load(residual + start + at, mask=inside, other=0.0)
    if HAS_DELTA:
        row += tl.load(delta + start + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(residual + start + at, row, mask=inside)
    scale = 1.0 / tl.sqrt_rn(tl.sum(row * row, axis=0) / SIZE + eps)
    normed = row * scale * tl.load(weight + at, mask=inside, other=0.0)
    tl.store(out + start + at, normed.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _gated_silu(gate_up, out, SIZE: tl.constexpr, SLICE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * SLICE + tl.arange(0, SLICE)
    inside = at < SIZE
    gate = tl.load(gate_up + row * 2 * SIZE + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_up + (row * 2 + 1) * SIZE + at, mask=inside, other=0.0).to(tl.float32)
    gated = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out + row * SIZE + at, gated.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _decode_attention(
    qkv, out, keys, values, tables, positions, cos, sin, scale, table_width,
    NUM_HEADS: tl.constexpr, DIM: tl.constexpr, DIM_PADDED: tl.constexpr,
    HALF_PADDED: tl.constexpr, BLOCK_SIZE: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    position = tl.load(positions + row)
    is_row = position >= 0  # padding reads and writes nothing but its zeros in `out`
    table = tables + row * table_width
    half = tl.arange(0, HALF_PADDED)
    in_half = (half < DIM // 2) & is_row
    dims = tl.arange(0, DIM_PADDED)
    in_dims = (dims < DIM) & is_row

    angles = position * (DIM // 2) + half
    cosine = tl.load(cos + angles, mask=in_half, other=0.0)
    sine = tl.load(sin + angles, mask=in_half, other=0.0)
    query = qkv + row * 3 * NUM_HEADS * DIM + head * DIM
    q1 = tl.load(query + half, mask=in_half, other=0.0).to(tl.float32)
    q2 = tl.load(query + DIM // 2 + half, mask=in_half, other=0.0).to(tl.float32)
    key = query + NUM_HEADS * DIM
    k1 = tl.load(key + half, mask=in_half, other=0.0).to(tl.float32)
    k2 = tl.load(key + DIM // 2 + half, mask=in_half, other=0.0).to(tl.float32)
    value = tl.load(key + NUM_HEADS * DIM + dims, mask=in_dims, other=0.0)
    query1, query2 = (q1 * cosine - q2 * sine) * scale, (q2 * cosine + q1 * sine) * scale
    key1 = (k1 * cosine - k2 * sine).to(keys.dtype.element_ty)
    key2 = (k2 * cosine + k1 * sine).to(keys.dtype.element_ty)

    block = tl.load(table + position // BLOCK_SIZE, mask=is_row, other=0).to(tl.int64)
    slot = ((block * NUM_HEADS + head) * BLOCK_SIZE + position % BLOCK_SIZE) * DIM
    tl.store(keys + slot + half, key1, mask=in_half)
    tl.store(keys + slot + DIM // 2 + half, key2, mask=in_half)
    tl.store(values + slot + dims, value, mask=in_dims)

    # The softmax starts with the position itself, from registers.
    largest = tl.sum(query1 * key1.to(tl.float32) + query2 * key2.to(tl.float32), axis=0)
    total = 1.0
    merged = value.to(tl.float32)
    for start in range(0, position, TILE):
        at = start + tl.arange(0, TILE)
        is_before = at < position
        blocks = tl.load(table + at // BLOCK_SIZE, mask=is_before, other=0).to(tl.int64)
        slots = ((blocks * NUM_HEADS + head) * BLOCK_SIZE + at % BLOCK_SIZE) * DIM
        mask = is_before[:, None] & in_half[None, :]
        at_half = slots[:, None] + half[None, :]
        tile1 = tl.load(keys + at_half, mask=mask, other=0.0).to(tl.float32)
        tile2 = tl.load(keys + DIM // 2 + at_half, mask=mask, other=0.0).to(tl.float32)
        scores = tl.sum(query1[None, :] * tile1 + query2[None, :] * tile2, axis=1)
        scores = tl.where(is_before, scores, float("-inf"))
        mask = is_before[:, None] & in_dims[None, :]
        tile = tl.load(values + slots[:, None] + dims[None, :], mask=mask, other=0.0)
        new_largest = tl.maximum(largest, tl.max(scores, axis=0))
        shrink = tl.exp(largest - new_largest)
        weights = tl.exp(scores - new_largest)
        merged = merged * shrink + tl.sum(weights[:, None] * tile.to(tl.float32), axis=0)
        total = total * shrink + tl.sum(weights, axis=0)
        largest = new_largest
    result = (merged / total).to(out.dtype.element_ty)
    tl.store(out + (row * NUM_HEADS + head) * DIM + dims, result, mask=dims < DIM)


def add_rms_norm(
    residual: Tensor, delta: Tensor | None, weight: Tensor, eps: float, dtype: torch.dtype
) -> Tensor:
    """See torch_ops; all tensors contiguous."""
    batch, size = residual.shape
    out = torch.empty_like(residual, dtype=dtype)
    _add_rms_norm[(batch,)](
        residual,
        residual if delta is None else delta,
        weight,
        out,
        eps,
        HAS_DELTA=delta is not None,
        SIZE=size,
        SIZE_PADDED=triton.next_power_of_2(size),
    )
    return out


def gated_silu(gate_up: Tensor) -> Tensor:
    """See torch_ops; contiguous."""
    batch, size = gate_up.shape[0], gate_up.shape[1] // 2
    out = gate_up.new_empty(batch, size)
    _gated_silu[(batch, triton.cdiv(size, SLICE))](gate_up, out, SIZE=size, SLICE=SLICE)
    return out


def decode_attention(
    qkv: Tensor, pool: KeysValues, tables: Tensor, positions: Tensor, rotary: Rotary
) -> Tensor:
    """See torch_ops; all tensors contiguous."""
    num_heads, block_size, head_dim = pool.keys.shape[1:]
    out = qkv.new_empty(len(qkv), num_heads * head_dim)
    _decode_attention[(len(qkv), num_heads)](
        qkv,
        out,
        pool.keys,
        pool.values,
        tables,
        positions,
        rotary.cos,
        rotary.sin,
        1.0 / math.sqrt(head_dim),
        tables.shape[1],
        NUM_HEADS=num_heads,
        DIM=head_dim,
        DIM_PADDED=triton.next_power_of_2(head_dim),
        HALF_PADDED=triton.next_power_of_2(head_dim // 2),
        BLOCK_SIZE=block_size,
        TILE=TILE,
        num_warps=ATTENTION_WARPS,
    )
    return out
