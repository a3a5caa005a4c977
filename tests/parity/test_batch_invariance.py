"""A request's tokens and hidden states are the same bits alone, in company, after pre-emption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chattts_engine import (
    EngineConfig,
    GenerationRequest,
    LoadedEngine,
    SamplingParams,
    load_engine,
)
from conftest import DEMO_CHECKPOINT, RepositoryFactory
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

TEXTS = [
    "the train to london leaves at half past seven",
    "hello anna, how are you today",
    "ten",
    "今天是三月六日，星期二",
]
CHUNK = 4
"""Prompt tokens per call: every prompt but the shortest takes several steps."""
LENGTHS = [90, 12, 55, 33, 71, 5, 48, 26, 80, 19, 64, 40, 9, 30, 52, 15]
Steps = list[tuple[NDArray[np.int32], NDArray[np.int32]]]


@pytest.fixture(scope="module", params=["fp32", "int8", "int8-weights"])
def weights(request: pytest.FixtureRequest, build_repository: RepositoryFactory) -> Path:
    repository = build_repository(DEMO_CHECKPOINT, request.param)
    return repository / "chattts_gpt" / "1" / "weights"


def make_config(**limits: int) -> EngineConfig:
    budget = {"max_num_batched_tokens": 2 * CHUNK, "prefill_chunk_tokens": CHUNK}
    return EngineConfig(**budget, **limits)


def make_request(loaded: LoadedEngine, number: int) -> GenerationRequest:
    length = LENGTHS[number]
    return GenerationRequest(
        id=str(number),
        mode="code",
        prompt_token_ids=loaded.tokenizer.encode(
            f"[Stts][empty_spk][speed_5]{TEXTS[number % len(TEXTS)]}[Ptts]"
        ),
        sampling=SamplingParams(seed=number, min_new_tokens=length, max_new_tokens=length),
    )


def run(loaded: LoadedEngine, numbers: list[int], *gaps: int) -> dict[str, Steps]:
    """Submit requests, so many steps apart; return each one's tokens and hidden states as bits."""
    results: dict[str, Steps] = {str(number): [] for number in numbers}

    def step() -> None:
        for output in loaded.engine.step(0.0):
            if output.token is not None and output.hidden is not None:
                bits: Any = output.hidden.view(np.int32)
                results[output.sequence.id].append((output.token, bits))

    for position, number in enumerate(numbers):
        loaded.engine.add_request(make_request(loaded, number), float(position))
        for _ in range(gaps[position % len(gaps)] if gaps else 0):
            step()
    while loaded.engine.has_unfinished:
        step()
    return results


def assert_same_bits(actual: dict[str, Steps], expected: dict[str, Steps]) -> None:
    for name, steps in actual.items():
        assert len(steps) == len(expected[name])
        for (token, hidden), (expected_token, expected_hidden) in zip(
            steps, expected[name], strict=True
        ):
            np.testing.assert_array_equal(token, expected_token)
            np.testing.assert_array_equal(hidden, expected_hidden)


@pytest.fixture(scope="module")
def alone(weights: Path) -> dict[str, Steps]:
    loaded = load_engine(weights, make_config(num_threads=1))
    results: dict[str, Steps] = {}
    for number in range(len(LENGTHS)):
        results |= run(loaded, [number])
    return results


@pytest.mark.parametrize(("max_num_seqs", "gap_steps"), [(16, 0), (5, 0), (16, 3)])
def test_neighbours_change_no_bit(
    weights: Path, alone: dict[str, Steps], max_num_seqs: int, gap_steps: int
) -> None:
    loaded = load_engine(weights, make_config(max_num_seqs=max_num_seqs))
    assert_same_bits(run(loaded, list(range(len(LENGTHS))), gap_steps), alone)
    assert loaded.engine.stats.num_decode_steps < sum(LENGTHS) / 3


@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data())
def test_no_schedule_changes_a_bit(
    weights: Path, alone: dict[str, Steps], data: st.DataObject
) -> None:
    """Any requests in any order at any moments, few slots, a small pool, any prefill budget."""
    numbers = data.draw(
        st.lists(st.integers(0, len(LENGTHS) - 1), min_size=3, max_size=10, unique=True)
    )
    gaps = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=6))
    config = EngineConfig(
        max_num_seqs=data.draw(st.integers(2, 16)),
        max_model_len=256,
        num_kv_blocks=data.draw(st.integers(16, 48)),
        max_num_batched_tokens=data.draw(st.integers(1, 40)),
        prefill_chunk_tokens=CHUNK,
    )
    assert_same_bits(run(load_engine(weights, config), numbers, *gaps), alone)


def test_preemption_changes_no_bit(weights: Path, alone: dict[str, Steps]) -> None:
    loaded = load_engine(weights, make_config(max_num_seqs=8, num_kv_blocks=24))
    assert_same_bits(run(loaded, list(range(len(LENGTHS)))), alone)
    assert loaded.engine.scheduler.num_preemptions > 0


def test_prefill_in_chunks_computes_what_prefill_at_once_computes(weights: Path) -> None:
    """Up to rounding (int8 levels too): chunks depend on the configuration, not on the load."""

    def last_hidden(chunk: int) -> NDArray[np.float32]:
        loaded = load_engine(weights, EngineConfig(prefill_chunk_tokens=chunk))
        steps = run(loaded, [0])["0"]
        return np.stack([hidden.view(np.float32) for _, hidden in steps[:2]])

    whole, chunked = last_hidden(64), last_hidden(3)
    assert np.abs(chunked - whole).max() < 1e-2 * np.abs(whole).max()
