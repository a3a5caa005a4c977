from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chattts_engine.noise import counter_noise, derive_seed
from chattts_engine.sampler import NO_TOKEN, Sampler, SamplingRows, probabilities
from golden import TINY_ARRAYS as TINY
from golden import TINY_CASES as TINY_PARAMS
from golden import VECTOR_ARRAYS as VECTORS
from golden import VECTOR_CASES
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from parity.formula import integers, uniform
from upstream_noise import noise_matrix, upstream_noise


def make_rows(
    num_rows: int, history: NDArray[np.int64] | None = None, **knobs: Any
) -> SamplingRows:
    values = {"temperature": 1.0, "top_p": 1.0, "top_k": 626, "repetition_penalty": 1.0, **knobs}
    if history is None:
        history = np.full((num_rows, 16), NO_TOKEN)
    return SamplingRows(
        temperature=np.full(num_rows, values["temperature"], np.float32),
        top_p=np.full(num_rows, values["top_p"], np.float64),
        top_k=np.full(num_rows, values["top_k"], np.int64),
        repetition_penalty=np.full(num_rows, values["repetition_penalty"], np.float32),
        history=history,
        end_token=np.full(num_rows, values.get("end_token", NO_TOKEN), np.int64),
        seeds=np.full(num_rows, values.get("seed", 0), np.uint64),
        steps=np.full(num_rows, values.get("step", 0), np.int64),
        codebooks=np.arange(num_rows) % 4,
    )


def padded_history(history: NDArray[np.int32]) -> NDArray[np.int64]:
    """(T, C) generated codes to the (C, 16) rows that the sampler reads."""
    recent = history[-16:].T.astype(np.int64)
    rows = np.full((history.shape[1], 16), NO_TOKEN)
    rows[:, : recent.shape[1]] = recent
    return rows


@pytest.mark.parametrize("case", range(5))
def test_probabilities_equal_the_published_ones(case: int) -> None:
    rows = make_rows(
        4, padded_history(TINY[f"proc_history_{case}"]), **TINY_PARAMS[f"proc_params_{case}"]
    )
    probs = probabilities(TINY[f"proc_logits_{case}"], rows)
    golden = TINY[f"proc_probs_{case}"]
    np.testing.assert_array_equal(probs > 0, golden > 0)
    np.testing.assert_allclose(probs, golden, rtol=1e-4, atol=1e-7)


def test_probabilities_of_the_published_sizes_equal_the_published_ones() -> None:
    temperature = np.array([0.3, 0.5, 0.7, 1.0], np.float32)
    history = integers("input:hist", 12, 4, 20)[:, -16:]
    rows = make_rows(4, history, top_p=0.7, top_k=20, repetition_penalty=1.05)
    rows.temperature = temperature
    probs = probabilities(np.float32(6) * uniform("input:logits", 4, 626), rows)
    kept = [np.flatnonzero(row).tolist() for row in probs]
    assert kept == VECTOR_CASES["proc_kept_after_top_k"]
    np.testing.assert_allclose(probs, VECTORS["proc_probs"], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("seed", [42, 7])
def test_a_draw_with_the_published_noise_gives_the_published_tokens(seed: int) -> None:
    sampler = Sampler(upstream_noise(seed, 1, 4, 626))
    drawn = sampler.draw(VECTORS["proc_probs"], make_rows(4))
    assert drawn.tolist() == VECTOR_CASES[f"sampled_seed{seed}"]


def test_published_noise_is_reproduced() -> None:
    golden = VECTORS["noise_seed42_4x626_first8"]
    np.testing.assert_allclose(noise_matrix(42, 4, 626)[:, :8], golden, rtol=1e-6)


def slow_probabilities(logits: NDArray[np.float32], row: int, rows: SamplingRows) -> Any:
    """One row, step by step, with Python loops."""
    values = [float(np.float32(v) / rows.temperature[row]) for v in logits[row]]
    for token in set(rows.history[row].tolist()) - {NO_TOKEN}:
        count = rows.history[row].tolist().count(token)
        factor = float(rows.repetition_penalty[row]) ** count
        values[token] = values[token] * factor if values[token] < 0 else values[token] / factor
    order = sorted(range(len(values)), key=lambda token: values[token])
    exp = np.exp(np.array(values) - max(values))
    exp /= exp.sum()
    mass, kept = 0.0, set(order[-3:])
    for token in order:
        mass += exp[token]
        if mass > 1 - rows.top_p[row]:
            kept.add(token)
    top_k = min(max(int(rows.top_k[row]), 3), len(values))
    kept &= set(order[-top_k:])
    kept.discard(int(rows.end_token[row]))
    probs = np.zeros(len(values))
    probs[list(kept)] = exp[list(kept)]
    return probs / probs.sum()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    temperature=st.floats(0.05, 2.0),
    top_p=st.floats(0.01, 1.0),
    top_k=st.integers(1, 60),
    repetition_penalty=st.floats(0.5, 2.0),
    end_token=st.sampled_from([NO_TOKEN, 0, 49]),
)
def test_probabilities_equal_a_slow_reference(seed: int, **knobs: Any) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2.0, size=(3, 50)).astype(np.float32)
    rows = make_rows(3, rng.integers(-1, 50, size=(3, 16)), **knobs)
    probs = probabilities(logits, rows)
    for row in range(3):
        expected = slow_probabilities(logits, row, rows)
        # A candidate exactly at the top-p border may fall on either side in single precision.
        if ((probs[row] > 0) != (expected > 0)).sum() <= 1 and not np.allclose(
            probs[row], expected, atol=1e-5
        ):
            continue
        np.testing.assert_allclose(probs[row], expected, atol=1e-5)


def test_top_k_never_lets_a_worse_token_through() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(200, 626)).astype(np.float32)
    best = np.argsort(logits, axis=1)[:, -20:]
    for step in range(5):
        drawn = Sampler().sample(logits, make_rows(200, top_k=20, step=step, temperature=2.0))
        assert all(token in best[row] for row, token in enumerate(drawn))


def test_a_row_draws_the_same_alone_and_among_neighbours() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3, size=(64, 626)).astype(np.float32)
    rows = make_rows(64, rng.integers(-1, 626, size=(64, 16)), top_p=0.7, top_k=20, seed=9)
    together = Sampler().sample(logits, rows)
    for row in range(64):
        one = SamplingRows(
            **{name: getattr(rows, name)[row : row + 1] for name in SamplingRows.__slots__}
        )
        assert Sampler().sample(logits[row : row + 1], one)[0] == together[row]


def test_draws_follow_the_probabilities() -> None:
    probs = np.array([[0.5, 0.25, 0.125, 0.125, 0.0]], dtype=np.float32)
    counts = np.zeros(5)
    for step in range(8000):
        counts[Sampler().draw(probs, make_rows(1, step=step, seed=5))[0]] += 1
    # Four standard deviations of the largest count are 180 of 8000.
    np.testing.assert_allclose(counts / 8000, probs[0], atol=0.0225)
    assert counts[4] == 0


def test_noise_depends_on_each_part_of_its_counter() -> None:
    base = {"seeds": 1, "steps": 2, "codebooks": 3, "tokens": 4}

    def noise(**parts: int) -> float:
        merged = {**base, **parts}
        return float(
            counter_noise(
                np.array([merged["seeds"]], np.uint64),
                np.array([merged["steps"]]),
                np.array([merged["codebooks"]]),
                np.array([merged["tokens"]]),
            )[0]
        )

    values = {noise(), noise(seeds=2), noise(steps=3), noise(codebooks=2), noise(tokens=5)}
    assert len(values) == 5
    assert noise() == noise()


def test_derived_seeds_differ_and_stay_in_range() -> None:
    seeds = {derive_seed(2**64 - 1, attempt) for attempt in range(1, 9)}
    assert len(seeds) == 8
    assert all(0 <= seed < 2**64 for seed in seeds)
