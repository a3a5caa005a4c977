"""Build an engine from the weights folder that build/ wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .config import EngineConfig, GPTConfig
from .embeddings import Embeddings
from .engine import Engine
from .runner import Runner
from .sampler import Sampler
from .tokenizer import Tokenizer


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


def _load_runner(weights: Path, gpt: GPTConfig, config: EngineConfig) -> Runner:
    # Imported here so that each runner's library is needed only where it runs.
    if gpt.runner == "onnx":
        from .onnx_runner import OnnxRunner

        return OnnxRunner(weights, gpt, config)
    from .torch_runner import TorchRunner

    return TorchRunner(weights, gpt, config)
