"""One request among random neighbours: its codes and hidden states must keep every bit."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from chattts_engine import Engine, GenerationRequest, SamplingParams
from chattts_engine.sequence import Mode
from numpy.typing import NDArray

_TARGET = "target"
_TARGET_SEED = 12345
_LONGEST_PROMPT = 64


def speak_among_neighbours(
    engine: Engine, prompt_ids: NDArray[np.int64], concurrency: int, steps: int
) -> dict[str, Any]:
    """Generate one request while `concurrency` - 1 random others come and go.

    The neighbours' prompts, lengths, modes and moments of arrival are drawn from `concurrency`; the
    request itself comes when some of them are running, and is the first to be pre-empted.

    Returns:
        digest of the request's codes (T, C) and hidden states (T, H), and num_preemptions
        meanwhile.
    """
    draw = np.random.default_rng(concurrency)
    sampling = SamplingParams(seed=_TARGET_SEED, min_new_tokens=steps, max_new_tokens=steps)
    target = GenerationRequest(_TARGET, "code", prompt_ids, sampling, priority=3)
    arrivals = [(int(draw.integers(steps // 2)) if concurrency > 1 else 0, target)]
    arrivals += [
        (int(draw.integers(steps)), _neighbour(number, steps, draw))
        for number in range(concurrency - 1)
    ]
    preempted_before = engine.scheduler.num_preemptions
    digest = hashlib.sha256()
    step = 0
    while arrivals or engine.has_unfinished:
        for _, request in [one for one in arrivals if one[0] <= step]:
            engine.add_request(request, now_s=float(step))
        arrivals = [one for one in arrivals if one[0] > step]
        for output in engine.step(now_s=float(step)):
            if output.sequence.id == _TARGET and output.token is not None:
                assert output.hidden is not None
                digest.update(output.token.tobytes() + output.hidden.tobytes())
        step += 1
    return {
        "digest": digest.hexdigest(),
        "num_preemptions": engine.scheduler.num_preemptions - preempted_before,
    }


def _neighbour(number: int, steps: int, draw: np.random.Generator) -> GenerationRequest:
    length = int(draw.integers(max(1, steps // 4), steps + 1))
    sampling = SamplingParams(seed=number, min_new_tokens=length, max_new_tokens=length)
    prompt_ids = draw.integers(1, 100, draw.integers(1, _LONGEST_PROMPT))
    mode: Mode = "text" if draw.random() < 0.25 else "code"
    return GenerationRequest(f"neighbour {number}", mode, prompt_ids, sampling)
