"""Drawing on the device: the same words, noise and tokens as the host's sampler."""

from __future__ import annotations

import numpy as np
import pytest
from chattts_engine.noise import counter_noise, splitmix64
from chattts_engine.sampler import NO_TOKEN, Sampler, SamplingRows, probabilities
from numpy.typing import NDArray

torch = pytest.importorskip("torch")
torch_sampler = pytest.importorskip("chattts_engine.torch_sampler")

VOCABULARY = 626
END_TOKEN = VOCABULARY - 1
ROWS = 64
WINDOW = 16


def random_seeds(rng: np.random.Generator, size: int) -> NDArray[np.uint64]:
    return rng.integers(0, 2**64, size, dtype=np.uint64)


def random_rows(rng: np.random.Generator, case: int) -> tuple[SamplingRows, NDArray[np.int64]]:
    """Rows with knobs from their whole ranges, and min_new_tokens of each."""
    recent = rng.integers(0, VOCABULARY if case % 2 else 8, (ROWS, WINDOW))
    recent[np.arange(WINDOW) >= rng.integers(0, WINDOW + 1, ROWS)[:, None]] = NO_TOKEN
    steps, min_new_tokens = rng.integers(0, 100, ROWS), rng.integers(0, 50, ROWS)
    temperature = rng.uniform(1e-5, 2, ROWS) if case % 4 else rng.choice([1e-4, 0.3, 0.7], ROWS)
    rows = SamplingRows(
        temperature=temperature.astype(np.float32),
        top_p=rng.choice([1e-3, 0.1, 0.7, 0.9, 1.0, rng.uniform(0.01, 1)], ROWS),
        top_k=rng.integers(1, 700, ROWS),
        repetition_penalty=rng.choice([0.5, 1.0, 1.05, 1.3, 2.0], ROWS).astype(np.float32),
        history=recent,
        end_token=np.where(steps < min_new_tokens, END_TOKEN, NO_TOKEN),
        seeds=random_seeds(rng, ROWS),
        steps=steps,
        codebooks=rng.integers(0, 4, ROWS),
    )
    return rows, min_new_tokens


def random_logits(rng: np.random.Generator, case: int) -> NDArray[np.float32]:
    """Flat, usual and steep ones; every third case is full of ties."""
    logits = rng.normal(size=(ROWS, VOCABULARY)) * rng.choice([0.1, 1, 5, 20])
    return (np.round(2 * logits) / 2 if case % 3 == 0 else logits).astype(np.float32)


def draw_state(rows: SamplingRows, min_new_tokens: NDArray[np.int64]) -> torch_sampler.DrawState:
    order = np.argsort(rows.history != NO_TOKEN, axis=1, kind="stable")
    tensor = torch.from_numpy
    return torch_sampler.DrawState(
        temperature=tensor(rows.temperature),
        outside_mass=tensor((1.0 - rows.top_p).astype(np.float32)),
        top_k=tensor(rows.top_k),
        repetition_penalty=tensor(rows.repetition_penalty),
        history=tensor(np.take_along_axis(rows.history, order, axis=1)),
        min_new_tokens=tensor(min_new_tokens),
        seeds=tensor(rows.seeds.view(np.int64)),
        steps=tensor(rows.steps.copy()),
        codebooks=tensor(rows.codebooks),
    )


def test_words_of_64_bits_are_the_same() -> None:
    seeds = random_seeds(np.random.default_rng(0), 4096)
    words = torch_sampler.splitmix64(torch.from_numpy(seeds.view(np.int64)))
    np.testing.assert_array_equal(words.numpy().view(np.uint64), splitmix64(seeds))


def test_noise_is_the_same_to_the_last_bit_of_the_logarithm() -> None:
    rng = np.random.default_rng(1)
    seeds, steps = random_seeds(rng, 512), rng.integers(0, 2048, 512)
    codebooks, tokens = rng.integers(0, 4, 512), np.arange(VOCABULARY)
    knobs = (torch.from_numpy(each) for each in (seeds.view(np.int64), steps, codebooks))
    actual = torch_sampler.counter_noise(*knobs, VOCABULARY).numpy()
    repeated = (np.repeat(each, VOCABULARY) for each in (seeds, steps, codebooks))
    wanted = counter_noise(*repeated, np.tile(tokens, 512)).reshape(actual.shape)
    # The logarithms of the two libraries may differ by one unit in the last place.
    assert (np.abs(actual - wanted) <= np.spacing(wanted)).all()


@pytest.mark.parametrize("seed", range(4))
def test_tokens_are_those_of_the_host(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for case in range(24):
        rows, min_new_tokens = random_rows(rng, case)
        logits = random_logits(rng, case)
        wanted = probabilities(logits.copy(), rows)
        state = draw_state(rows, min_new_tokens)
        actual = torch_sampler.probabilities(torch.from_numpy(logits), state, END_TOKEN).numpy()
        np.testing.assert_array_equal(actual > 0, wanted > 0)
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-6)
        tokens = torch_sampler.draw(torch.from_numpy(logits), state, END_TOKEN)
        np.testing.assert_array_equal(tokens.numpy(), Sampler().sample(logits.copy(), rows))


def test_steps_in_a_row_are_those_of_the_host() -> None:
    """History, step counter and end mask advance on the device as the host would lay them out."""
    rng = np.random.default_rng(9)
    rows, min_new_tokens = random_rows(rng, 1)
    state = draw_state(rows, min_new_tokens)
    drawn: list[list[int]] = [[t for t in row if t != NO_TOKEN] for row in rows.history.tolist()]
    for step in range(2 * WINDOW):
        logits = random_logits(rng, 1)
        for row, tokens in enumerate(drawn):
            recent = tokens[-WINDOW:]
            rows.history[row] = recent + [NO_TOKEN] * (WINDOW - len(recent))
        rows.end_token[:] = np.where(rows.steps + step < min_new_tokens, END_TOKEN, NO_TOKEN)
        now = SamplingRows(**{f: getattr(rows, f) for f in rows.__dataclass_fields__})
        now.steps = rows.steps + step
        wanted = Sampler().sample(logits.copy(), now)
        tokens_now = torch_sampler.draw(torch.from_numpy(logits), state, END_TOKEN)
        state.advance(tokens_now)
        np.testing.assert_array_equal(tokens_now.numpy(), wanted)
        for tokens, token in zip(drawn, wanted.tolist(), strict=True):
            tokens.append(token)


def test_values_that_are_not_finite_still_give_a_token_of_the_table() -> None:
    rows, min_new_tokens = random_rows(np.random.default_rng(2), 0)
    logits = torch.full((ROWS, VOCABULARY), torch.nan)
    tokens = torch_sampler.draw(logits, draw_state(rows, min_new_tokens), END_TOKEN)
    assert ((tokens >= 0) & (tokens < VOCABULARY)).all()


def test_shapes_depend_on_no_value() -> None:
    """So a CUDA graph can hold the draw: it runs on tensors that have no values at all."""
    rows, min_new_tokens = random_rows(np.random.default_rng(3), 0)
    state = draw_state(rows, min_new_tokens)
    knobs = {name: getattr(state, name).to("meta") for name in state.__dataclass_fields__}
    abstract = torch_sampler.DrawState(**knobs)
    tokens = torch_sampler.draw(torch.empty(ROWS, VOCABULARY, device="meta"), abstract, END_TOKEN)
    abstract.advance(tokens)
    assert (tokens.shape, tokens.dtype, tokens.device.type) == ((ROWS,), torch.int64, "meta")
