"""Steps that the torch runner draws itself, against one step at a time drawn on the host.

Both run through the engine. The host's way is the same runner with `decode_steps` taken away, so
the engine embeds and samples; its hidden states are held against published values elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chattts_engine import (
    EngineConfig,
    GenerationRequest,
    SamplingParams,
    TorchOptions,
    load_engine,
)
from chattts_engine.engine import Engine
from chattts_engine.runner import FusedRunner, RunnerDeadError
from chattts_engine.sampling_rows import sampling_rows
from chattts_engine.sequence import Sequence as EngineSequence
from conftest import TINY_CHECKPOINT, RepositoryFactory
from engine_runs import Result, run_together
from golden import NUM_TEXTS, TINY_ARRAYS, assert_close

torch = pytest.importorskip("torch")
WEIGHTS = "chattts_gpt/1/weights"
CONFIG = EngineConfig(max_num_seqs=6, max_model_len=512, num_threads=1)


@pytest.fixture(scope="module")
def weights(build_repository: RepositoryFactory) -> Path:
    return build_repository(TINY_CHECKPOINT, "fp32", "torch") / WEIGHTS


class HostDrawn:
    """A Runner that only computes."""

    def __init__(self, runner: Any) -> None:
        for name in ("prefill", "decode", "release", "code_logits", "text_logits"):
            setattr(self, name, getattr(runner, name))


def make_engine(weights: Path, config: EngineConfig = CONFIG, **options: Any) -> Engine:
    return load_engine(weights, config, torch_options=TorchOptions(**options)).engine


def host_drawn(weights: Path, config: EngineConfig = CONFIG) -> Engine:
    loaded = load_engine(weights, config)
    engine = loaded.engine
    runner: Any = HostDrawn(engine.runner)
    assert not isinstance(runner, FusedRunner)
    end_of_text = loaded.tokenizer.end_of_text_id
    return Engine(engine.config, engine.gpt, runner, engine._embeddings, end_of_text)


def random_requests(seed: int, number: int = 10) -> list[GenerationRequest]:
    """Requests of all kinds: some end by themselves, some are of mode text."""
    rng = np.random.default_rng(seed)
    requests = []
    for index in range(number):
        steps = int(rng.integers(3, 60))
        params = SamplingParams(
            seed=int(rng.integers(2**63)),
            temperature=tuple(rng.uniform(0.05, 1.5, 4).round(3)) if index % 5 else (0.7,),
            top_p=float(rng.choice([0.3, 0.7, 1.0])),
            top_k=int(rng.choice([1, 20, 626])),
            repetition_penalty=float(rng.choice([1.0, 1.05, 1.5])) if index % 5 else 1.0,
            min_new_tokens=int(rng.integers(steps + 1)),
            max_new_tokens=steps,
        )
        mode: Any = "code" if index % 5 else "text"
        ids = TINY_ARRAYS[f"ids_{index % NUM_TEXTS}"].astype(np.int64)
        speaker = TINY_ARRAYS["spk_vector"]
        requests.append(GenerationRequest(str(index), mode, ids, params, speaker_embedding=speaker))
    return requests


def assert_same(
    actual: Mapping[str, Result], wanted: Mapping[str, Result], exact: bool = True
) -> None:
    assert actual.keys() == wanted.keys()
    for name, (tokens, hidden) in wanted.items():
        np.testing.assert_array_equal(actual[name][0], tokens)
        if exact:
            np.testing.assert_array_equal(actual[name][1], hidden)
        elif len(hidden):
            assert_close(actual[name][1], hidden)


@pytest.fixture(scope="module", params=range(3))
def requests_and_results(
    request: pytest.FixtureRequest, weights: Path
) -> tuple[list[GenerationRequest], dict[str, Result]]:
    requests = random_requests(request.param)
    return requests, run_together(host_drawn(weights), requests)


@pytest.mark.parametrize("max_fused_steps", [1, 3, 8])
def test_fused_steps_give_the_bits_of_single_ones(
    weights: Path, requests_and_results: Any, max_fused_steps: int
) -> None:
    requests, wanted = requests_and_results
    engine = make_engine(weights, max_fused_steps=max_fused_steps)
    assert isinstance(engine.runner, FusedRunner)
    assert_same(run_together(engine, requests), wanted)


@pytest.mark.parametrize("batch_sizes", [(4,), (1, 2, 8)])
def test_padded_batches_give_the_same_tokens(
    weights: Path, requests_and_results: Any, batch_sizes: tuple[int, ...]
) -> None:
    requests, wanted = requests_and_results
    engine = make_engine(weights, batch_sizes=batch_sizes, max_fused_steps=5)
    assert_same(run_together(engine, requests), wanted, exact=False)


def test_preemption_between_fused_steps_changes_no_bit(weights: Path) -> None:
    requests = [
        replace(request, sampling=replace(request.sampling, max_new_tokens=60, min_new_tokens=60))
        for request in random_requests(7)
    ]
    wanted = run_together(host_drawn(weights), requests)
    engine = make_engine(weights, replace(CONFIG, num_kv_blocks=14))
    assert_same(run_together(engine, requests), wanted)
    assert engine.scheduler.num_preemptions > 0


def test_logits_that_are_not_finite_end_their_request_alone(weights: Path) -> None:
    """Drawn on the device, where the host sees no logits."""
    requests = random_requests(0)
    wanted = run_together(host_drawn(weights), requests)
    culprit = max((r.id for r in requests if r.mode == "code"), key=lambda i: len(wanted[i][0]))
    assert len(wanted[culprit][0]) > 8
    engine = make_engine(weights, max_fused_steps=3)
    network: Any = engine.runner._network  # type: ignore[attr-defined]
    compute, spoilt = network.code_logits, torch.tensor(wanted[culprit][1][7])

    def code_logits(hidden: Any) -> Any:
        is_spoilt = (hidden == spoilt).all(dim=1, keepdim=True)
        return compute(hidden).masked_fill(is_spoilt, torch.nan)

    network.code_logits = code_logits
    tokens, hidden = wanted[culprit]
    assert_same(run_together(engine, requests), {**wanted, culprit: (tokens[:7], hidden[:7])})


def test_an_engine_without_a_gpu_shows_no_gpu_memory(weights: Path) -> None:
    engine = make_engine(weights)
    assert isinstance(engine.runner, FusedRunner)
    snapshot = engine.snapshot()
    assert (snapshot.gpu_used_bytes, snapshot.gpu_limit_bytes) == (0, 0)


def test_a_device_error_says_that_the_runner_is_dead(weights: Path) -> None:
    runner: Any = make_engine(weights).runner

    def fail(*arguments: object) -> None:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    runner._network.prefill = fail
    sequence = EngineSequence.create(random_requests(0)[1], 4, 0.0)
    with pytest.raises(RunnerDeadError, match="illegal memory access"):
        runner.prefill(sequence, np.zeros((1, 64), np.float32), 0)


def started(engine: Engine, request: GenerationRequest, blocks: list[int]) -> EngineSequence:
    """A sequence with a prefilled prompt and one token, at home in given blocks."""
    sequence = EngineSequence.create(request, engine.gpt.num_codebooks, 0.0)
    sequence.block_table = blocks
    engine.runner.prefill(sequence, engine._embeddings.prompt(request), 0)
    sequence.num_computed_tokens = request.num_prompt_tokens
    sequence.append(np.array([1, 2, 3, 4], dtype=np.int32))
    return sequence


def test_a_row_past_its_limit_writes_into_nobody_s_block(weights: Path) -> None:
    """Block 0 is what tables are padded with: a row that ran on beyond its own would hit it."""
    long, short = (
        replace(
            random_requests(0)[1],
            prompt_token_ids=TINY_ARRAYS["ids_0"][:14].astype(np.int64),
            speaker_embedding=None,
            sampling=SamplingParams(seed=1, min_new_tokens=steps, max_new_tokens=steps),
        )
        for steps in (40, 2)
    )
    results = []
    for requests in ([long], [long, short]):
        engine = make_engine(weights, max_fused_steps=30, batch_sizes=(2,))
        blocks = [[5, 0, 6], [3]]  # the short one's 16 positions fill its block
        sequences = [started(engine, r, b) for r, b in zip(requests, blocks, strict=False)]
        rows = sampling_rows(sequences, engine.gpt.num_codebooks, engine.gpt.end_of_speech)
        runner: Any = engine.runner
        decoded = runner.decode_steps(sequences, rows, 30)
        results.append((decoded.tokens[:, 0], decoded.hidden[:, 0]))
    for alone, beside in zip(*results, strict=True):
        np.testing.assert_array_equal(beside, alone)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_stays_close(weights: Path, dtype: str) -> None:
    request = random_requests(0)[1]
    hidden = {}
    for each in ("float32", dtype):
        engine = make_engine(weights, dtype=each)
        hidden[each] = run_together(engine, [request])["1"][1][0]
    cosine = np.dot(*hidden.values()) / np.prod([np.linalg.norm(h) for h in hidden.values()])
    assert cosine > 0.999
    assert (hidden[dtype] != hidden["float32"]).any()


def test_a_cuda_device_that_is_not_there_is_named(weights: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(RuntimeError, match="cuda:0: PyTorch .* sees no CUDA device"):
        make_engine(weights, device="cuda:0")


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.mark.usefixtures("without_torch")
def test_a_missing_torch_is_named(weights: Path) -> None:
    with pytest.raises(ImportError, match="built with --runner torch, but torch is not installed"):
        load_engine(weights, CONFIG)
