"""The torch reference runner: against published values, the ONNX runner and cacheless NumPy.

test_engine_golden.py runs every golden case through it as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_gpt
from chattts_engine import EngineConfig, GenerationRequest, SamplingParams, load_engine
from chattts_engine.config import GPTConfig
from chattts_engine.engine import Engine
from chattts_engine.sequence import Sequence as EngineSequence
from checkpoint import Checkpoint
from conftest import TINY_CHECKPOINT, RepositoryFactory
from golden import GREEDY_TEMPERATURE, NUM_TEXTS, TINY_ARRAYS, assert_close
from layout import GptSizes, gpt_tensors
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

torch = pytest.importorskip("torch")
WEIGHTS = "chattts_gpt/1/weights"
SPEAKER = TINY_ARRAYS["spk_vector"]
ODD_SIZES = GptSizes(
    hidden_size=52,
    intermediate_size=100,
    num_layers=2,
    num_heads=3,
    head_dim=14,
    num_codebooks=2,
    num_audio_tokens=37,
    num_text_tokens=53,
    max_position_embeddings=64,
    rms_norm_eps=1e-6,
    rope_theta=500.0,
)
"""No width fills whole vector registers: products and tails round differently beside other rows."""


@dataclass
class Generated:
    """What an engine made of one request."""

    tokens: NDArray[np.int32]
    hidden: NDArray[np.float32]
    reason: str | None


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny products gain nothing from threads, and lose much on a machine that is busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def weights(build_repository: RepositoryFactory) -> Path:
    return build_repository(TINY_CHECKPOINT, "fp32", "torch") / WEIGHTS


def make_engine(weights: Path, **limits: int) -> Engine:
    config = EngineConfig(**{"max_num_seqs": 16, "max_model_len": 512, **limits})
    return load_engine(weights, config).engine


def make_request(number: int, steps: int, min_steps: int, **sampling: Any) -> GenerationRequest:
    params = SamplingParams(seed=number, min_new_tokens=min_steps, max_new_tokens=steps, **sampling)
    ids = TINY_ARRAYS[f"ids_{number % NUM_TEXTS}"].astype(np.int64)
    return GenerationRequest(str(number), "code", ids, params, speaker_embedding=SPEAKER)


def run(
    engine: Engine, requests: Sequence[GenerationRequest], arrivals: Sequence[int] | None = None
) -> dict[str, Generated]:
    """Run requests, each submitted before the engine step of its arrival (the first by default)."""
    waiting = list(zip(arrivals or [0] * len(requests), requests, strict=True))
    tokens: dict[str, list[Any]] = {request.id: [] for request in requests}
    hidden: dict[str, list[Any]] = {request.id: [] for request in requests}
    reasons: dict[str, str | None] = {}
    now = 0
    while waiting or engine.has_unfinished:
        for _, request in [item for item in waiting if item[0] == now]:
            engine.add_request(request, float(now))
        waiting = [item for item in waiting if item[0] != now]
        for output in engine.step(float(now)):
            reasons[output.sequence.id] = output.sequence.finish_reason
            if output.token is not None:
                tokens[output.sequence.id].append(output.token)
                hidden[output.sequence.id].append(output.hidden)
        now += 1
    return {
        name: Generated(np.array(tokens[name]), np.array(hidden[name]), reasons[name])
        for name in tokens
    }


def run_alone(weights: Path, requests: Sequence[GenerationRequest]) -> dict[str, Generated]:
    engine = make_engine(weights)
    return {request.id: run(engine, [request])[request.id] for request in requests}


def assert_same_bits(actual: Mapping[str, Generated], wanted: Mapping[str, Generated]) -> None:
    assert actual.keys() == wanted.keys()
    for name in wanted:
        np.testing.assert_array_equal(actual[name].tokens, wanted[name].tokens)
        np.testing.assert_array_equal(actual[name].hidden, wanted[name].hidden)
        assert actual[name].reason == wanted[name].reason


def make_runner(weights: Path, sizes: GptSizes, config: EngineConfig) -> Any:
    from chattts_engine.torch_runner import TorchRunner

    values = {name: getattr(sizes, name) for name in sizes.__dataclass_fields__}
    gpt = GPTConfig(checkpoint="test", untrained=True, precision="fp32", runner="torch", **values)
    return TorchRunner(weights, gpt, config)


def make_sequence(block_table: list[int], num_computed_tokens: int = 0) -> EngineSequence:
    sequence = EngineSequence.create(make_request(0, 1, 0), 4, 0.0)
    sequence.block_table = block_table
    sequence.num_computed_tokens = num_computed_tokens
    return sequence


def write_random_weights(folder: Path, sizes: GptSizes, rng: np.random.Generator) -> None:
    shapes = gpt_tensors(sizes)
    shapes["head_text.weight"] = (sizes.num_text_tokens, sizes.hidden_size)
    for codebook in range(sizes.num_codebooks):
        shapes[f"head_code.{codebook}.weight"] = (sizes.num_audio_tokens, sizes.hidden_size)
    tensors = {name: rng.normal(size=shape) / shape[-1] ** 0.5 for name, shape in shapes.items()}
    save_file(
        {name: tensor.astype(np.float32) for name, tensor in tensors.items()},
        folder / "gpt.safetensors",
    )
    table = rng.normal(size=(sizes.num_codebooks, sizes.num_audio_tokens, sizes.hidden_size))
    save_file({"emb_code": table.astype(np.float32)}, folder / "embeddings.safetensors")


@pytest.mark.parametrize("text", range(NUM_TEXTS))
def test_prefill_gives_the_published_hidden_states_and_logits(weights: Path, text: int) -> None:
    sizes = Checkpoint.open(TINY_CHECKPOINT).gpt
    runner = make_runner(weights, sizes, EngineConfig(num_kv_blocks=8))
    hidden = runner.prefill(make_sequence([6, 3]), TINY_ARRAYS[f"embed_{text}"], 0)
    assert_close(hidden, TINY_ARRAYS[f"prefill_hidden_{text}"])
    assert_close(runner.code_logits(hidden[-1:])[0], TINY_ARRAYS[f"prefill_logits_{text}"])


def test_four_texts_in_one_batch_keep_the_published_codes_and_hidden_states(
    weights: Path,
) -> None:
    requests = [
        make_request(text, 40, 40, temperature=(GREEDY_TEMPERATURE,)) for text in range(NUM_TEXTS)
    ]
    together = run(make_engine(weights), requests)
    for text in range(NUM_TEXTS):
        np.testing.assert_array_equal(
            together[str(text)].tokens, TINY_ARRAYS[f"greedy_codes_{text}"]
        )
        assert_close(together[str(text)].hidden, TINY_ARRAYS[f"greedy_hidden_{text}"])
    assert_same_bits(together, run_alone(weights, requests))


@pytest.mark.parametrize("seed", range(3))
def test_random_arrivals_give_the_tokens_of_the_onnx_runner_and_the_bits_of_alone(
    weights: Path, build_repository: RepositoryFactory, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, 60, size=12)
    requests = [
        make_request(100 * seed + i, int(length), int(length) // 2)
        for i, length in enumerate(lengths)
    ]
    arrivals = [int(step) for step in rng.integers(0, 50, size=len(requests))]
    together = run(make_engine(weights, max_num_seqs=5), requests, arrivals)
    assert_same_bits(together, run_alone(weights, requests))

    onnx_weights = build_repository(TINY_CHECKPOINT) / WEIGHTS
    onnx = run(make_engine(onnx_weights, max_num_seqs=5), requests, arrivals[::-1])
    for name, wanted in onnx.items():
        np.testing.assert_array_equal(together[name].tokens, wanted.tokens)
        assert together[name].reason == wanted.reason
        assert_close(together[name].hidden, wanted.hidden)


@pytest.mark.parametrize("block_size", [16, 32, 64])
def test_many_blocks_of_mixed_sequences_equal_one_pass_without_a_cache(
    weights: Path, block_size: int
) -> None:
    requests = [make_request(number, 200, 200) for number in range(NUM_TEXTS)]
    results = run(make_engine(weights, block_size=block_size), requests, arrivals=[0, 3, 5, 20])

    checkpoint = Checkpoint.open(TINY_CHECKPOINT)
    embed, tensors = checkpoint.load("Embed"), checkpoint.load("gpt")
    for name, result in results.items():
        inputs = np.concatenate(
            [TINY_ARRAYS[f"embed_{name}"], reference_gpt.embed_codes(result.tokens[:-1], embed)]
        )
        wanted = reference_gpt.hidden_states(inputs, tensors, checkpoint.gpt)
        assert_close(result.hidden, wanted[-len(result.tokens) :])


def test_preemption_changes_no_bit(weights: Path) -> None:
    requests = [make_request(number, 60, 60) for number in range(6)]
    engine = make_engine(weights, num_kv_blocks=12)
    assert_same_bits(run(engine, requests), run_alone(weights, requests))
    assert engine.scheduler.num_preemptions > 0


def test_any_number_of_neighbours_changes_no_bit_at_sizes_that_fill_no_register(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    write_random_weights(tmp_path, ODD_SIZES, rng)
    runner = make_runner(tmp_path, ODD_SIZES, EngineConfig(num_kv_blocks=48))
    sequences = []
    for number in range(16):
        sequence = make_sequence([number, 47 - number], 1 + number)
        runner.prefill(sequence, rng.normal(size=(1 + number, 52)).astype(np.float32), 0)
        sequences.append(sequence)
    inputs = rng.normal(size=(16, 52)).astype(np.float32)

    alone = [runner.decode([s], row[None]) for s, row in zip(sequences, inputs, strict=True)]
    for batch in range(2, 17):
        rows = rng.permutation(16)[:batch]
        hidden = runner.decode([sequences[row] for row in rows], inputs[rows])
        np.testing.assert_array_equal(hidden, np.concatenate([alone[row] for row in rows]))
        for logits in (runner.code_logits, runner.text_logits):
            one_by_one = np.concatenate([logits(alone[row]) for row in rows])
            np.testing.assert_array_equal(logits(hidden), one_by_one)


def test_a_file_of_other_sizes_is_refused_by_name(weights: Path, tmp_path: Path) -> None:
    tensors = load_file(weights / "gpt.safetensors")
    del tensors["layers.1.mlp.up_proj.weight"]
    save_file(tensors, tmp_path / "gpt.safetensors")
    sizes = Checkpoint.open(TINY_CHECKPOINT).gpt
    with pytest.raises(ValueError, match=r"layers\.1\.mlp\.up_proj\.weight; build it again"):
        make_runner(tmp_path, sizes, EngineConfig())
    with pytest.raises(ValueError, match="gpt_config.json"):
        make_runner(weights, replace(sizes, num_audio_tokens=600), EngineConfig())


def test_the_thread_count_of_the_configuration_is_used(weights: Path) -> None:
    sizes = Checkpoint.open(TINY_CHECKPOINT).gpt
    for num_threads in (2, 1):
        make_runner(weights, sizes, EngineConfig(num_threads=num_threads))
        assert torch.get_num_threads() == num_threads
