"""Speed of the torch runner: whole engine and single steps, against the memory's floor.

Nothing here depends on what the weights say, so they are untrained and every request runs its full
length.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from chattts_engine import (
    Engine,
    EngineConfig,
    GenerationRequest,
    SamplingParams,
    TorchOptions,
    load_engine,
)
from chattts_engine.sampling_rows import sampling_rows
from safetensors import safe_open

MAX_NUM_SEQS = 64
CONCURRENCIES = (1, 16, 64)
PROMPT_TOKENS = 64
STEPS = 256
ROUNDS = 12
COPY_BYTES = 4 << 30
REPEATS = 10


def measure(weights: Path, device: str, concurrencies: tuple[int, ...] = CONCURRENCIES) -> Any:
    """Return bandwidth, and for each concurrency tokens per second, step time and floor."""
    bandwidth = memory_bandwidth(device)
    largest = concurrencies[-1]
    limits = EngineConfig(
        max_num_seqs=largest,
        max_model_len=1024,
        prefill_chunk_tokens=PROMPT_TOKENS,
        max_num_batched_tokens=largest * PROMPT_TOKENS,
    )
    report: dict[str, Any] = {"bandwidth_gb_s": round(bandwidth / 1e9, 1), "runs": []}
    for batch_sizes in ((), (1, 16, 64)):
        options = TorchOptions(device, batch_sizes=batch_sizes)
        started = time.perf_counter()
        engine = load_engine(weights, limits, torch_options=options).engine
        load_s = time.perf_counter() - started
        for concurrency in concurrencies:
            step_s = step_seconds(engine, concurrency)
            floor_s = step_bytes(weights, engine, options, concurrency) / bandwidth
            report["runs"].append(
                {
                    "batch_sizes": options.sizes(largest),
                    "dtype": options.dtype_name,
                    "concurrency": concurrency,
                    "tokens_per_s": round(tokens_per_second(engine, concurrency), 1),
                    "step_ms_p50": round(step_s * 1e3, 3),
                    "floor_ms": round(floor_s * 1e3, 3),
                    "load_s": round(load_s, 1),
                }
            )
    return report


def memory_bandwidth(device: str) -> float:
    """Return bytes read and written per second by a copy within the device, the best of several."""
    size = COPY_BYTES if device.startswith("cuda") else 64 << 20
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    best = min(timed(lambda: target.copy_(source), device) for _ in range(REPEATS))
    return 2 * size / best


def timed(action: Any, device: str) -> float:
    """Return the seconds until the device has done an action."""
    wait(device)
    started = time.perf_counter()
    action()
    wait(device)
    return time.perf_counter() - started


def wait(device: str) -> None:
    """Wait for the device."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def step_bytes(weights: Path, engine: Engine, options: TorchOptions, concurrency: int) -> float:
    """Return the bytes that a decode step has to read: layers, code head, keys and values."""
    gpt = engine.gpt
    value_bytes = getattr(torch, options.dtype_name).itemsize
    with safe_open(weights / "gpt.safetensors", framework="np") as file:
        shapes = {name: file.get_slice(name).get_shape() for name in sorted(file.keys())}
    layers = sum(math.prod(shape) for name, shape in shapes.items() if name[:7] == "layers.")
    head = gpt.num_codebooks * gpt.num_audio_tokens * gpt.hidden_size * 4
    positions = concurrency * (PROMPT_TOKENS + STEPS / 2)
    keys_values = positions * gpt.num_layers * 2 * gpt.num_heads * gpt.head_dim
    return (layers + keys_values) * value_bytes + head


def make_requests(engine: Engine, concurrency: int) -> list[GenerationRequest]:
    """Make requests of equal prompts and lengths that cannot end early."""
    rng = np.random.default_rng(0)
    return [
        GenerationRequest(
            str(index),
            "code",
            rng.integers(0, engine.gpt.num_text_tokens, PROMPT_TOKENS),
            SamplingParams(seed=index, min_new_tokens=STEPS, max_new_tokens=STEPS),
        )
        for index in range(concurrency)
    ]


def tokens_per_second(engine: Engine, concurrency: int) -> float:
    """Return steps of all requests over the time from first submission to last token."""
    requests = make_requests(engine, concurrency)
    started = time.perf_counter()
    for request in requests:
        engine.add_request(request, 0.0)
    while engine.has_unfinished:
        engine.step(0.0)
    return concurrency * STEPS / (time.perf_counter() - started)


def step_seconds(engine: Engine, concurrency: int) -> float:
    """Return the median time of a decode step, drawing included, in the middle of the requests."""
    runner: Any = engine.runner
    for request in make_requests(engine, concurrency):
        engine.add_request(request, 0.0)
    sequences = list(engine._sequences.values())
    while min(sequence.num_generated for sequence in sequences) < STEPS // 2:
        engine.step(0.0)
    rows = sampling_rows(sequences, engine.gpt.num_codebooks, engine.gpt.end_of_speech)
    steps = runner.max_fused_steps
    device = runner._device
    times = [
        timed(lambda: runner.decode_steps(sequences, rows, steps), device) for _ in range(ROUNDS)
    ]
    for sequence in sequences:
        engine.abort(sequence.id)
    return float(np.median(times)) / steps
