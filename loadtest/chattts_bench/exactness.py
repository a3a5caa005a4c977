"""What speed must not cost: equal bits at any concurrency, and int8 close to float32."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import speech
from .built import Built
from .plan import PROMPT, TEXT, Plan
from .worker import Worker

_TARGET_SEED = 12345
_LONGEST_PROMPT = 64
_SENTENCES = (
    "the train to london leaves at half past seven",
    "hello anna, how are you today",
    "the server is working",
    "one two three four five six seven eight",
)


def engine_identity(worker: Worker, plan: Plan) -> dict[str, Any]:
    """Compare one request's codes and hidden states over all concurrencies."""
    found = {
        concurrency: worker.call(
            "isolate", prompt=PROMPT, concurrency=concurrency, steps=plan.identity_steps
        )
        for concurrency in plan.identity_concurrency
    }
    return {
        "concurrency": list(found),
        "digests": [one["digest"] for one in found.values()],
        "num_preemptions": sum(one["num_preemptions"] for one in found.values()),
    }


def preempting_pool(built: Built, plan: Plan) -> str:
    """Return the engine parameter that makes a pool of three requests' blocks."""
    block_tokens = int(built.engine_parameters["block_size"])
    blocks = 3 * math.ceil((_LONGEST_PROMPT + plan.identity_steps) / block_tokens)
    return f"num_kv_blocks={blocks}"


def server_identity(repository: Path, plan: Plan) -> dict[str, Any]:
    """Compare one request's audio over all concurrencies, neighbours arriving at any moment."""
    digests = []
    with speech.running(repository) as (_, client):
        for concurrency in plan.identity_concurrency:
            draw = np.random.default_rng(concurrency)
            target = speech.Request(TEXT, plan.identity_steps, _TARGET_SEED, draw.uniform(0, 0.3))
            neighbours = [
                speech.Request(
                    _SENTENCES[draw.integers(len(_SENTENCES))],
                    int(draw.integers(8, plan.identity_steps)),
                    seed,
                    draw.uniform(0, 1.0),
                )
                for seed in range(concurrency - 1)
            ]
            spoken, _ = speech.speak_all(client, [target, *neighbours])
            digests.append(hashlib.sha256(spoken[0].samples.tobytes()).hexdigest())
    return {"concurrency": list(plan.identity_concurrency), "digests": digests}


def compare_precisions(workers: Mapping[str, Worker], plan: Plan, folder: Path) -> dict[str, Any]:
    """Run int8 along float32's own tokens and compare logits and draws, noise being equal.

    Args:
        workers: `trace` workers of the precisions "fp32" and "int8".
        plan: how many requests and steps.
        folder: where the traces go.

    Returns:
        logits_cosine (mean and least), top_1_agreement and changed_tokens (shares of all codes).
    """
    prompts = _prompts(plan.precision_requests)
    files = {precision: str(folder / f"trace-{precision}.npz") for precision in workers}
    arguments = {"prompts": prompts, "steps": plan.precision_steps}
    workers["fp32"].call("trace", **arguments, forced=None, output=files["fp32"])
    workers["int8"].call("trace", **arguments, forced=files["fp32"], output=files["int8"])
    exact, rounded = np.load(files["fp32"]), np.load(files["int8"])
    a, b = exact["logits"].astype(np.float64), rounded["logits"].astype(np.float64)
    cosine = (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return {
        "requests": plan.precision_requests,
        "steps": plan.precision_steps,
        "logits_cosine": float(cosine.mean()),
        "logits_cosine_least": float(cosine.min()),
        "top_1_agreement": float((a.argmax(-1) == b.argmax(-1)).mean()),
        "changed_tokens": float((exact["tokens"] != rounded["tokens"]).mean()),
    }


def _prompts(count: int) -> Sequence[str]:
    sentences = [_SENTENCES[number % len(_SENTENCES)] for number in range(count)]
    return [f"[Stts][empty_spk][speed_5]{sentence}[Ptts]" for sentence in sentences]
