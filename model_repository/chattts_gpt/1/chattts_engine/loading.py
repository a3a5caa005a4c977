"""Build an engine from the weights folder that build/ wrote."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from .torch_options import TorchOptions

WARM_UP_TOKENS = 4
CPU_PREFILL, GPU_PREFILL = (64, 64), (256, 1024)
"""Default chunk and budget of a step: on a CPU a chunk takes two or three decode steps, on a GPU it
is bound by launches."""


@dataclass(frozen=True, slots=True)
class LoadedEngine:
    """An engine with the tokenizer that its prompts need."""

    engine: Engine
    tokenizer: Tokenizer


def num_gpus(weights: Path) -> int:
    """Return how many GPUs the runner of these weights can use; 0: it computes on the CPU."""
    if GPTConfig.from_file(weights / "gpt_config.json").runner != "torch":
        return 0
    try:
        import torch
    except ImportError:
        return 0  # load_engine says what is missing
    return torch.cuda.device_count()


def load_engine(
    weights: Path,
    config: EngineConfig,
    sampler: Sampler | None = None,
    torch_options: TorchOptions | None = None,
) -> LoadedEngine:
    """Read weights/ and return an engine that is ready to step.

    Args:
        weights: folder with gpt_config.json, tokenizer.json, embeddings.safetensors and the
            runner's files.
        config: limits of the engine.
        sampler: another sampler than the default, for parity tests.
        torch_options: device and type of weights that were built for torch; the CPU by default.

    Raises:
        FileNotFoundError: the folder was not built.
        ValueError: it was built by another version, its parts do not fit together, or the KV pool
            does not fit the device.
        ImportError: torch or triton is needed and not installed.
        RuntimeError: the device is not there.
    """
    gpt = GPTConfig.from_file(weights / "gpt_config.json")
    options = torch_options or TorchOptions()
    is_on_gpu = gpt.runner == "torch" and options.is_cuda
    config = _with_prefill(config, *(GPU_PREFILL if is_on_gpu else CPU_PREFILL))
    tokenizer = Tokenizer(weights / "tokenizer.json")
    embeddings = Embeddings.from_file(weights / "embeddings.safetensors", tokenizer.speaker_id)
    if embeddings.num_text_tokens != gpt.num_text_tokens:
        raise ValueError(f"{weights}: text table and gpt_config.json disagree; build it again")
    if gpt.runner == "onnx":
        runner = _onnx_runner(weights, gpt, config)
    else:
        runner, config = _torch_runner(weights, gpt, config, options)
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


def _with_prefill(config: EngineConfig, chunk: int, budget: int) -> EngineConfig:
    """Return the config with what 0 stands for."""
    return replace(
        config,
        prefill_chunk_tokens=config.prefill_chunk_tokens or chunk,
        max_num_batched_tokens=config.max_num_batched_tokens or budget,
    )


# The runners are imported here so that each one's library is needed only where it runs.


def _onnx_runner(weights: Path, gpt: GPTConfig, config: EngineConfig) -> Runner:
    from .onnx_runner import OnnxRunner

    return OnnxRunner(weights, gpt, config)


def _torch_runner(
    weights: Path, gpt: GPTConfig, config: EngineConfig, options: TorchOptions
) -> tuple[Runner, EngineConfig]:
    """Return the runner and the config with the number of blocks that its pool got."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{weights}: built with --runner torch, but torch is not installed ({error}); install "
            "the extra torch, or build with --runner onnx"
        ) from error
    from .torch_runner import TorchRunner

    runner = TorchRunner(weights, gpt, config, options)
    return runner, replace(config, num_kv_blocks=runner.num_blocks)
