"""The engine in process against what the published package computed from the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chattts_engine import EngineConfig, GenerationRequest, LoadedEngine, SamplingParams
from chattts_engine.loading import load_engine
from conftest import TINY_CHECKPOINT, RepositoryFactory
from engine_runs import run_together
from golden import (
    GREEDY_TEMPERATURE,
    NUM_TEXTS,
    TINY_ARRAYS,
    TINY_CASES,
    assert_close,
)


@pytest.fixture(scope="module", params=["onnx", "torch"])
def loaded(request: pytest.FixtureRequest, build_repository: RepositoryFactory) -> LoadedEngine:
    if request.param == "torch":
        pytest.importorskip("torch")
    repository = build_repository(TINY_CHECKPOINT, "fp32", request.param)
    return load_engine(repository / "chattts_gpt" / "1" / "weights", EngineConfig(num_threads=1))


def greedy(loaded: LoadedEngine, name: str, prompt: str, steps: int, **fields: Any) -> Any:
    """A request that always takes the likeliest code, for a fixed number of steps."""
    sampling = SamplingParams(
        seed=0,
        temperature=(GREEDY_TEMPERATURE,),
        min_new_tokens=steps,
        max_new_tokens=steps,
        repetition_penalty=1.0 if fields.get("mode") == "text" else 1.05,
    )
    return GenerationRequest(
        id=name,
        mode=fields.pop("mode", "code"),
        prompt_token_ids=loaded.tokenizer.encode(prompt),
        sampling=sampling,
        **fields,
    )


def spoken(loaded: LoadedEngine, text: int, steps: int) -> GenerationRequest:
    return greedy(
        loaded,
        f"text {text}",
        TINY_CASES["decorated"][text],
        steps,
        speaker_embedding=TINY_ARRAYS["spk_vector"],
    )


@pytest.mark.parametrize("text", range(NUM_TEXTS))
def test_token_ids_equal_the_golden_ones(loaded: LoadedEngine, text: int) -> None:
    ids = loaded.tokenizer.encode(TINY_CASES["decorated"][text])
    assert ids.tolist() == TINY_ARRAYS[f"ids_{text}"].tolist()


@pytest.mark.parametrize("text", range(NUM_TEXTS))
def test_greedy_codes_and_hidden_states_alone(loaded: LoadedEngine, text: int) -> None:
    ((codes, hidden),) = run_together(loaded.engine, [spoken(loaded, text, 40)]).values()
    np.testing.assert_array_equal(codes, TINY_ARRAYS[f"greedy_codes_{text}"])
    assert_close(hidden, TINY_ARRAYS[f"greedy_hidden_{text}"])


def test_greedy_codes_of_four_texts_in_one_batch(loaded: LoadedEngine) -> None:
    results = run_together(loaded.engine, [spoken(loaded, text, 24) for text in range(NUM_TEXTS)])
    for text in range(NUM_TEXTS):
        np.testing.assert_array_equal(
            results[f"text {text}"][0], TINY_ARRAYS[f"batch_codes_{text}"]
        )


def test_codes_without_a_speaker(loaded: LoadedEngine) -> None:
    request = greedy(loaded, "a", TINY_CASES["decorated_no_speaker"], 24)
    np.testing.assert_array_equal(
        run_together(loaded.engine, [request])["a"][0], TINY_ARRAYS["nospk_codes"]
    )


def test_codes_that_continue_an_audio_prompt(loaded: LoadedEngine) -> None:
    request = greedy(
        loaded,
        "a",
        TINY_CASES["decorated_prompt"],
        24,
        speaker_embedding=TINY_ARRAYS["spk_vector"],
        audio_prompt_codes=TINY_ARRAYS["prompt_codes"].T,
    )
    text_ids = TINY_ARRAYS["prompt_ids"][: len(request.prompt_token_ids), 0]
    np.testing.assert_array_equal(request.prompt_token_ids, text_ids)
    np.testing.assert_array_equal(
        run_together(loaded.engine, [request])["a"][0], TINY_ARRAYS["prompt_gen_codes"]
    )


def test_refined_text_tokens(loaded: LoadedEngine) -> None:
    request = greedy(loaded, "a", TINY_CASES["refine_decorated"], 24, mode="text")
    np.testing.assert_array_equal(request.prompt_token_ids, TINY_ARRAYS["refine_ids_in"])
    tokens = run_together(loaded.engine, [request])["a"][0]
    np.testing.assert_array_equal(tokens[:, 0], TINY_ARRAYS["refine_tokens"])


def test_int8_logits_stay_close_to_the_golden_ones(build_repository: RepositoryFactory) -> None:
    repository = build_repository(TINY_CHECKPOINT, "int8")
    weights: Path = repository / "chattts_gpt" / "1" / "weights"
    quantised = load_engine(weights, EngineConfig())
    for text in range(NUM_TEXTS):
        ((_, hidden),) = run_together(quantised.engine, [spoken(quantised, text, 1)]).values()
        logits = quantised.engine.runner.code_logits(hidden).reshape(-1).astype(np.float64)
        golden = TINY_ARRAYS[f"prefill_logits_{text}"].reshape(-1).astype(np.float64)
        cosine = logits @ golden / np.linalg.norm(logits) / np.linalg.norm(golden)
        assert cosine >= 0.997
