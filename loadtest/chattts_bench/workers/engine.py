"""The engine in process: runs a built repository's own copy of chattts_engine.

    python -m chattts_bench.workers.engine REPOSITORY [PARAMETER=VALUE ...]

The engine's settings are those of the repository's config.pbtxt; the command line overrides them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import onnxruntime as ort
from chattts_engine import (
    EngineConfig,
    GenerationRequest,
    LoadedEngine,
    SamplingParams,
    load_engine,
    warm_up,
)
from chattts_engine.sampler import Sampler

from ..built import Built
from .answer import answer
from .isolation import speak_among_neighbours

_SESSION_CALLS = ("run", "run_with_iobinding")


def load(
    repository: Path, overrides: Mapping[str, str], sampler: Sampler | None = None
) -> LoadedEngine:
    """Load the engine of a built repository as its server would, and warm it up.

    Args:
        repository: built model repository.
        overrides: engine parameters that differ from its config.pbtxt.
        sampler: another sampler than the default.
    """
    built = Built(repository)
    known = {field.name for field in fields(EngineConfig)}  # the others are the torch runner's
    parameters = {key: text for key, text in built.engine_parameters.items() if key in known}
    config = EngineConfig.from_parameters(parameters | dict(overrides))
    loaded = load_engine(built.weights, config, sampler)
    warm_up(loaded.engine)
    return loaded


class MeasuredEngine:
    """One engine and what is measured of it."""

    def __init__(self, repository: Path, overrides: Mapping[str, str]) -> None:
        self._session_s = 0.0
        for name in _SESSION_CALLS:
            self._time_session_call(name)
        loaded = load(repository, overrides)
        self._engine = loaded.engine
        self._tokenizer = loaded.tokenizer

    def run(self, prompt: str, concurrency: int, steps: int) -> dict[str, Any]:
        """Generate `steps` steps for each of `concurrency` requests that arrive at once.

        Returns:
            elapsed_s, step_s (seconds of every engine step, prefill included) and session_s
            (seconds inside onnxruntime; the rest of the steps is Python).
        """
        ids = self._tokenizer.encode(prompt)
        started = time.perf_counter()
        for seed in range(concurrency):
            sampling = SamplingParams(seed=seed, min_new_tokens=steps, max_new_tokens=steps)
            self._engine.add_request(
                GenerationRequest(f"request {seed}", "code", ids, sampling), now_s=0.0
            )
        step_s = []
        num_tokens = 0
        self._session_s = 0.0
        while self._engine.has_unfinished:
            step_started = time.perf_counter()
            outputs = self._engine.step(now_s=0.0)
            step_s.append(time.perf_counter() - step_started)
            num_tokens += sum(output.token is not None for output in outputs)
        elapsed_s = time.perf_counter() - started
        if num_tokens != concurrency * steps:
            raise RuntimeError(f"{num_tokens} tokens, not {concurrency} times {steps}")
        return {"elapsed_s": elapsed_s, "step_s": step_s, "session_s": self._session_s}

    def isolate(self, prompt: str, concurrency: int, steps: int) -> dict[str, Any]:
        """See isolation.speak_among_neighbours."""
        ids = self._tokenizer.encode(prompt)
        return speak_among_neighbours(self._engine, ids, concurrency, steps)

    def _time_session_call(self, name: str) -> None:
        call: Callable[..., Any] = getattr(ort.InferenceSession, name)

        def timed(session: ort.InferenceSession, *arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return call(session, *arguments, **options)
            finally:
                self._session_s += time.perf_counter() - started

        setattr(ort.InferenceSession, name, timed)


def main() -> None:
    """Load the engine that the command line names and answer commands."""
    measured = MeasuredEngine(
        Path(sys.argv[1]), dict(argument.split("=") for argument in sys.argv[2:])
    )
    answer({"run": measured.run, "isolate": measured.isolate})


if __name__ == "__main__":
    main()
