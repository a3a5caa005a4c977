"""The Triton kernels against torch_ops; runs in Triton's interpreter on CPU, or on a GPU as it is.

test_torch_kernels.py runs this file in a process of its own, since Triton decides between compiler
and interpreter once, when it is imported.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
from chattts_engine import (
    EngineConfig,
    GenerationRequest,
    SamplingParams,
    TorchOptions,
    load_engine,
    torch_kernels,
    torch_ops,
    torch_runner,
)
from chattts_engine.torch_ops import KeysValues, Rotary
from conftest import TINY_CHECKPOINT, RepositoryFactory
from engine_runs import run_together
from golden import GREEDY_TEMPERATURE, TINY_ARRAYS
from golden import assert_close as assert_close_to_golden

DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
NUM_BLOCKS = 48
BLOCKS_PER_ROW = 8
POSITIONS = NUM_BLOCKS * 64
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
ULPS = 2
"""Allowed difference of a result in units of its own type's last place (of the largest value)."""

each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def assert_close(actual: torch.Tensor, wanted: torch.Tensor) -> None:
    assert actual.dtype == wanted.dtype
    # float32 sums of hundreds of terms in another order are a few units apart themselves
    ulps = 16 if actual.dtype == torch.float32 else ULPS
    bound = ulps * torch.finfo(actual.dtype).eps * wanted.float().abs().max().item()
    assert (actual.float() - wanted.float()).abs().max().item() <= bound


def random_step(dtype: torch.dtype, heads: int, dim: int, block_size: int, seed: int) -> Any:
    """Queries, pool, shuffled block tables and positions: 0, 1, edges of blocks, and padding."""
    gen = torch.Generator().manual_seed(seed)
    limit = BLOCKS_PER_ROW * block_size - 1
    positions = [0, -1, 1, block_size - 1, block_size, min(130, limit), limit, -1]
    tables = torch.randint(NUM_BLOCKS, (len(positions), BLOCKS_PER_ROW), generator=gen)
    used = torch.randperm(NUM_BLOCKS, generator=gen)
    for row, position in enumerate(positions):  # a block belongs to one sequence
        count = max(position, 0) // block_size + 1
        tables[row, :count], used = used[:count], used[count:]
    pool = torch.randn(2, NUM_BLOCKS, heads, block_size, dim, generator=gen).to(dtype)
    angles = torch.rand(POSITIONS, dim // 2, generator=gen) * 6.3
    qkv = torch.randn(len(positions), 3 * heads * dim, generator=gen).to(dtype)
    return (
        qkv.to(DEVICE),
        pool.to(DEVICE),
        tables.int().to(DEVICE),
        torch.tensor(positions, dtype=torch.int32, device=DEVICE),
        Rotary(angles.cos().to(DEVICE), angles.sin().to(DEVICE)),
    )


@each_dtype
@pytest.mark.parametrize(
    ("heads", "dim", "block_size"),
    [(12, 64, 16), (2, 64, 32), (3, 48, 16), (2, 16, 64), (1, 14, 16)],
)
def test_decode_attention(dtype: torch.dtype, heads: int, dim: int, block_size: int) -> None:
    qkv, pool, tables, positions, rotary = random_step(dtype, heads, dim, block_size, seed=heads)
    pools = KeysValues(*pool.clone()), KeysValues(*pool.clone())
    wanted = torch_ops.decode_attention(qkv, pools[0], tables, positions, rotary)
    actual = torch_kernels.decode_attention(qkv, pools[1], tables, positions, rotary)
    assert_close(actual, wanted)
    assert not actual[positions < 0].any()
    for wanted_part, part in zip(*pools, strict=True):
        assert_close(part, wanted_part)
    # all but one position of each row is untouched
    changed = (pools[1].values != pool[1]).any(dim=1).any(dim=-1).sum().item()
    assert changed == (positions >= 0).sum().item()


@each_dtype
def test_a_row_s_bits_depend_on_that_row_alone(dtype: torch.dtype) -> None:
    qkv, pool, tables, positions, rotary = random_step(dtype, 12, 64, 16, seed=5)
    parts = KeysValues(*pool.clone())
    together = torch_kernels.decode_attention(qkv, parts, tables, positions, rotary)
    order = [5, 0, 6, 3]
    for rows in ([row] for row in range(len(qkv))), [order]:
        for some in rows:
            arguments = (each[some].contiguous() for each in (qkv, tables, positions))
            some_qkv, some_tables, some_positions = arguments
            alone = torch_kernels.decode_attention(
                some_qkv, KeysValues(*pool.clone()), some_tables, some_positions, rotary
            )
            assert torch.equal(alone, together[some])


@each_dtype
@pytest.mark.parametrize("size", [768, 52])
def test_add_rms_norm(dtype: torch.dtype, size: int) -> None:
    gen = torch.Generator().manual_seed(size)
    residual = torch.randn(5, size, generator=gen).to(DEVICE)
    delta = torch.randn(5, size, generator=gen).to(DEVICE, dtype)
    weight = torch.randn(size, generator=gen).to(DEVICE)
    for added in (delta, None):
        sums = residual.clone(), residual.clone()
        wanted = torch_ops.add_rms_norm(sums[0], added, weight, 1e-6, dtype)
        assert_close(torch_kernels.add_rms_norm(sums[1], added, weight, 1e-6, dtype), wanted)
        assert torch.equal(sums[0], sums[1])


@each_dtype
@pytest.mark.parametrize("size", [3072, 100])
def test_gated_silu(dtype: torch.dtype, size: int) -> None:
    gen = torch.Generator().manual_seed(size)
    gate_up = (4 * torch.randn(5, 2 * size, generator=gen)).to(DEVICE, dtype)
    assert_close(torch_kernels.gated_silu(gate_up), torch_ops.gated_silu(gate_up))


@pytest.mark.skipif(DEVICE == "cuda", reason="tests/gpu runs whole engines there")
def test_the_runner_over_the_kernels_gives_the_published_codes(
    build_repository: RepositoryFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a GPU runs, short of the GPU: padded rows, kernels, fused steps."""
    monkeypatch.setattr(torch_runner, "_operations", lambda options: torch_kernels)
    weights = build_repository(TINY_CHECKPOINT, "fp32", "torch") / "chattts_gpt/1/weights"
    options = TorchOptions(batch_sizes=(4,), max_fused_steps=4)
    loaded = load_engine(weights, EngineConfig(), torch_options=options)
    sampling = SamplingParams(
        seed=0, temperature=(GREEDY_TEMPERATURE,), min_new_tokens=9, max_new_tokens=9
    )
    speaker = TINY_ARRAYS["spk_vector"]
    requests = []
    for text in range(3):
        ids = TINY_ARRAYS[f"ids_{text}"].astype(np.int64)
        requests.append(
            GenerationRequest(str(text), "code", ids, sampling, speaker_embedding=speaker)
        )
    for text, (codes, hidden) in run_together(loaded.engine, requests).items():
        np.testing.assert_array_equal(codes, TINY_ARRAYS[f"greedy_codes_{text}"][:9])
        assert_close_to_golden(hidden, TINY_ARRAYS[f"greedy_hidden_{text}"][:9])
