"""How many KV blocks a GPU's memory gives; the memory's size is the one thing made up here."""

from __future__ import annotations

from typing import Any

import pytest
from chattts_engine import EngineConfig, TorchOptions
from fakes import FAKE_GPT

torch = pytest.importorskip("torch")
torch_runner = pytest.importorskip("chattts_engine.torch_runner")

CUDA = TorchOptions("cuda:0", gpu_memory_utilization=0.5)
VALUE_BYTES = 2
BLOCK_BYTES = 2 * 2 * 16 * 4 * VALUE_BYTES
"""Keys and values of FAKE_GPT's one layer: 2 heads of 4, 16 positions."""
LIMITS: dict[str, Any] = {"max_num_seqs": 4, "max_model_len": 256}
LONGEST = 256 // 16


def pool_blocks(monkeypatch: pytest.MonkeyPatch, num_fitting: int, **limits: int) -> int:
    """On a device where half the memory is `num_fitting` blocks more than what is used."""
    total = 1 << 20
    free = total // 2 + num_fitting * BLOCK_BYTES
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, total))
    config = EngineConfig(**{**LIMITS, **limits})
    blocks: int = torch_runner._pool_blocks(FAKE_GPT, config, CUDA, VALUE_BYTES)
    return blocks


def test_as_much_as_can_be_used_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pool_blocks(monkeypatch, 1000) == 4 * LONGEST


def test_what_fits_when_less_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pool_blocks(monkeypatch, 3 * LONGEST) == 3 * LONGEST
    assert pool_blocks(monkeypatch, LONGEST) == LONGEST


def test_a_number_given_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pool_blocks(monkeypatch, 1000, num_kv_blocks=500) == 500
    assert pool_blocks(monkeypatch, 5, num_kv_blocks=5) == 5


@pytest.mark.parametrize(
    ("num_fitting", "limits", "reason"),
    [
        (LONGEST - 1, {}, "max_model_len: 16 KV blocks of .* room for 15 within"),
        (5, {"num_kv_blocks": 6}, "num_kv_blocks: 6 KV blocks .* gpu_memory_utilization 0.5"),
        (-100, {}, "room for 0 within"),
    ],
)
def test_too_little_memory_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, num_fitting: int, limits: dict[str, int], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        pool_blocks(monkeypatch, num_fitting, **limits)
