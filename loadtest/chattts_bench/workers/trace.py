"""Logits of an engine along given tokens: what two precisions are compared by.

python -m chattts_bench.workers.trace REPOSITORY
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from chattts_engine import GenerationRequest, SamplingParams
from chattts_engine.sampler import Sampler, SamplingRows
from numpy.typing import NDArray

from .answer import answer
from .engine import load


class TracingSampler(Sampler):
    """Draws as the engine does, notes logits and draws, and can answer with other tokens.

    It knows a row's request by its seed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.logits: dict[tuple[int, int, int], NDArray[np.float32]] = {}
        """(V,) by (seed, step, codebook)."""
        self.drawn: dict[tuple[int, int, int], int] = {}
        self.forced: NDArray[np.int64] | None = None
        """(requests, steps, C) tokens to go on with instead of the drawn ones."""

    def sample(self, logits: NDArray[np.float32], rows: SamplingRows) -> NDArray[np.int64]:
        """See Sampler."""
        tokens = super().sample(logits.copy(), rows)
        for row, token in enumerate(tokens):
            key = (int(rows.seeds[row]), int(rows.steps[row]), int(rows.codebooks[row]))
            self.logits[key] = logits[row].copy()
            self.drawn[key] = int(token)
            if self.forced is not None:
                tokens[row] = self.forced[key]
        return tokens


def main() -> None:
    """Load the repository that the command line names and answer commands."""
    sampler = TracingSampler()
    loaded = load(Path(sys.argv[1]), {}, sampler)
    engine = loaded.engine

    def trace(prompts: list[str], steps: int, forced: str | None, output: str) -> dict[str, Any]:
        """Write logits (R, T, C, V) and drawn tokens (R, T, C) of R requests to an .npz file."""
        sampler.forced = np.load(forced)["tokens"] if forced else None
        sampler.logits.clear()
        sampler.drawn.clear()
        for seed, prompt in enumerate(prompts):
            sampling = SamplingParams(seed=seed, min_new_tokens=steps, max_new_tokens=steps)
            ids = loaded.tokenizer.encode(prompt)
            engine.add_request(GenerationRequest(f"{seed}", "code", ids, sampling), now_s=0.0)
        while engine.has_unfinished:
            engine.step(now_s=0.0)
        shape = (len(prompts), steps, engine.gpt.num_codebooks)
        keys = sorted(sampler.logits)
        np.savez(
            output,
            logits=np.stack([sampler.logits[key] for key in keys]).reshape(*shape, -1),
            tokens=np.array([sampler.drawn[key] for key in keys]).reshape(shape),
        )
        return {"file": output}

    answer({"trace": trace})


if __name__ == "__main__":
    main()
