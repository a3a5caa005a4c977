"""Build an engine from the weights folder that build/ wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .config import EngineConfig, GPTConfig
from .embeddings import Embeddings
from .engine import Engine
from .runner import Runner
from .sampler import Sampler
from .sampling_params import SamplingParams
from .sequence import GenerationRequest
from .tokenizer import Tokenizer

WARM_UP_TOKENS = 4


@dataclass(frozen=True, slots=True)
class LoadedEngine:
    """An engine with the tokenizer that its prompts need."""

    engine: Engine
    tokenizer: Tokenizer


def load_engine(
    weights: Path, config: EngineConfig, sampler: Sampler | None = None
) -> LoadedEngine:
    """Read weights/ and return an engine that is ready to step.

    Args:
        weights: folder with gpt_config.json, tokenizer.json, embeddings.safetensors and the
            runner's files.
        config: limits of the engine.
        sampler: another sampler than the default, for parity tests.

    Raises:
        FileNotFoundError: the folder was not built.
        ValueError: it was built by another version, or its parts do not fit together.
    """
    gpt = GPTConfig.from_file(weights / "gpt_config.json")
    tokenizer = Tokenizer(weights / "tokenizer.json")
    embeddings = Embeddings.from_file(weights / "embeddings.safetensors", tokenizer.speaker_id)
    if embeddings.num_text_tokens != gpt.num_text_tokens:
        raise ValueError(f"{weights}: text table and gpt_config.json disagree; build it again")
    runner = _load_runner(weights, gpt, config)
    engine = Engine(config, gpt, runner, embeddings, tokenizer.end_of_text_id, sampler)
    return LoadedEngine(engine, tokenizer)


def warm_up(engine: Engine) -> None:
    """Generate a few tokens of each mode, so that the first caller does not wait for allocations.

    Raises:
        RuntimeError: the weights do not even give finite numbers.
    """
    sampling = SamplingParams(seed=0, min_new_tokens=WARM_UP_TOKENS, max_new_tokens=WARM_UP_TOKENS)
    for mode in ("code", "text"):
        request = GenerationRequest(f"warm-up {mode}", mode, np.zeros(1, np.int64), sampling)
        engine.add_request(request, now_s=0.0)
    while engine.has_unfinished:
        for output in engine.step(now_s=0.0):
            if output.finish_reason == "error":
                raise RuntimeError(f"warm-up: {output.sequence.error}")


def _load_runner(weights: Path, gpt: GPTConfig, config: EngineConfig) -> Runner:
    # Imported here so that each runner's library is needed only where it runs.
    if gpt.runner == "onnx":
        from .onnx_runner import OnnxRunner

        return OnnxRunner(weights, gpt, config)
    from .torch_runner import TorchRunner

    return TorchRunner(weights, gpt, config)
