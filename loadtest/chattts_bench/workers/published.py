"""Baseline: the published package itself, from an environment that holds it.

    python -m chattts_bench.workers.published CHECKPOINT

Only its public call `infer` is used. Two clocks run: over its token generator, which is what the
engine alone is compared with, and over the whole call, which also makes audio.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ChatTTS

from .answer import answer


class Published:
    """The package, loaded from a checkpoint in its own layout."""

    def __init__(self, checkpoint: Path) -> None:
        self._chat = ChatTTS.Chat()
        # Where its files lie; the check of their hashes would refuse other weights than its own.
        self._chat.download_models = lambda *_, **__: str(checkpoint)
        if not self._chat.load(source="custom", custom_path=str(checkpoint), device="cpu"):
            raise RuntimeError(f"the published package does not load {checkpoint}")
        self._generate = self._chat.gpt.generate
        self._chat.gpt.generate = self._timed
        self._generator_s = 0.0

    def run(self, text: str, batch: int, steps: int, seed: int) -> dict[str, Any]:
        """Speak a text `batch` times in one batch; return the seconds of tokens and of all."""
        params = ChatTTS.Chat.InferCodeParams(
            min_new_token=steps, max_new_token=steps, manual_seed=seed, show_tqdm=False
        )
        self._generator_s = 0.0
        started = time.perf_counter()
        self._chat.infer(
            [text] * batch, skip_refine_text=True, split_text=False, params_infer_code=params
        )
        whole_s = time.perf_counter() - started
        return {"elapsed_s": self._generator_s, "whole_s": whole_s}

    def _timed(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        results = self._generate(*arguments, **options)
        while True:
            started = time.perf_counter()
            result = next(results, None)
            self._generator_s += time.perf_counter() - started
            if result is None:
                return
            yield result


def main() -> None:
    """Load the checkpoint that the command line names and answer commands."""
    published = Published(Path(sys.argv[1]))

    def run(text: str, prompt_ids: list[int], batch: int, steps: int, seed: int) -> dict[str, Any]:
        del prompt_ids
        return published.run(text, batch, steps, seed)

    answer({"run": run})


if __name__ == "__main__":
    main()
