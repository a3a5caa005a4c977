"""Cases: contestants take turns at every concurrency, round by round; medians come out.

A contestant is the engine in process, the whole path through server and client, or a baseline.
Taking turns lets a drifting machine hit all of them alike.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import psutil

from . import processes, speech
from .built import Built
from .plan import BASELINE_BATCHES, PROMPT, STEPS_PER_SECOND, TEXT, Kind, Plan
from .worker import Worker

Measured = Mapping[str, Any]


class Contestant(Protocol):
    """Something that generates fixed numbers of steps for several requests at once."""

    kind: Kind
    variant: str
    """A repository's precision, or its folder's name where several have the same."""

    def concurrencies(self, plan: Plan) -> Sequence[int]:
        """How many requests at once it is measured with."""

    def run(self, concurrency: int, steps: int) -> Measured:
        """Run one case once; elapsed_s is there, everything else depends on the kind."""


class EngineContestant:
    """The engine in process, without server, vocoder and client."""

    kind: Kind = "engine"

    def __init__(self, worker: Worker, variant: str) -> None:
        self._worker = worker
        self._processes = [psutil.Process(worker.pid)]
        self.variant = variant

    def concurrencies(self, plan: Plan) -> Sequence[int]:
        """See Contestant."""
        return plan.concurrency

    def run(self, concurrency: int, steps: int) -> Measured:
        """See Contestant; adds step_s, host_share and peak_rss."""
        processes.reset_peak_rss(self._processes)
        measured = self._worker.call("run", prompt=PROMPT, concurrency=concurrency, steps=steps)
        host_share = 1.0 - measured.pop("session_s") / sum(measured["step_s"])
        peak_rss = processes.peak_rss(self._processes)
        return measured | {"host_share": host_share, "peak_rss": peak_rss}


class ServerContestant:
    """The whole path: client, server, pipeline, engine, vocoder; streaming."""

    kind: Kind = "server"

    def __init__(self, stack: ExitStack, built: Built, variant: str) -> None:
        server, self._client = stack.enter_context(speech.running(built.path))
        assert server.pid is not None
        self._processes = processes.server_tree(server.pid)
        self.variant = variant

    def concurrencies(self, plan: Plan) -> Sequence[int]:
        """See Contestant."""
        return plan.concurrency

    def run(self, concurrency: int, steps: int) -> Measured:
        """See Contestant; adds first_audio_s, audio_s, cpu_s by part, peak_rss and pss."""
        processes.reset_peak_rss(self._processes)
        before = processes.cpu_s(self._processes)
        requests = speech.equal_requests(TEXT, concurrency, steps)
        spoken, elapsed_s = speech.speak_all(self._client, requests)
        after = processes.cpu_s(self._processes)
        return {
            "elapsed_s": elapsed_s,
            "first_audio_s": [one.first_audio_s for one in spoken],
            "audio_s": sum(one.audio_s for one in spoken),
            "cpu_s": {part: after[part] - before[part] for part in after},
            "peak_rss": processes.peak_rss(self._processes),
            "pss": processes.memory(self._processes).pss,
        }


class BaselineContestant:
    """The published package or the plain loop that stands in for it; float32."""

    variant = "fp32"

    def __init__(self, worker: Worker, kind: Kind, prompt_ids: list[int]) -> None:
        self.kind = kind
        self._worker = worker
        self._prompt_ids = prompt_ids
        self._processes = [psutil.Process(worker.pid)]

    def concurrencies(self, plan: Plan) -> Sequence[int]:
        """See Contestant."""
        return BASELINE_BATCHES

    def run(self, concurrency: int, steps: int) -> Measured:
        """See Contestant; one padded batch, as the package does it."""
        processes.reset_peak_rss(self._processes)
        measured = self._worker.call(
            "run", text=TEXT, prompt_ids=self._prompt_ids, batch=concurrency, steps=steps, seed=1
        )
        return measured | {"peak_rss": processes.peak_rss(self._processes)}


@dataclass(slots=True)
class Case:
    """All rounds of one contestant at one concurrency."""

    kind: Kind
    variant: str
    concurrency: int
    steps: int
    rounds: list[Measured] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Medians over the rounds; percentiles over the steps or streams of all rounds."""
        tokens = self.concurrency * self.steps
        tokens_per_s = statistics.median(tokens / one["elapsed_s"] for one in self.rounds)
        figures: dict[str, Any] = {
            "kind": self.kind,
            "variant": self.variant,
            "concurrency": self.concurrency,
            "steps": self.steps,
            "tokens_per_s": tokens_per_s,
            "tokens_per_s_of_rounds": [tokens / one["elapsed_s"] for one in self.rounds],
            "audio_s_per_s": tokens_per_s / STEPS_PER_SECOND,
        }
        for name in ("peak_rss", "pss", "host_share"):
            if name in self.rounds[0]:
                figures[name] = statistics.median(one[name] for one in self.rounds)
        for name, figure in (("step_s", "step_ms"), ("first_audio_s", "first_audio_ms")):
            if name in self.rounds[0]:
                pooled = np.concatenate([one[name] for one in self.rounds])
                for percentile in (50, 99):
                    value = 1000.0 * float(np.percentile(pooled, percentile))
                    figures[f"{figure}_p{percentile}"] = value
        if "whole_s" in self.rounds[0]:
            figures["whole_tokens_per_s"] = statistics.median(
                tokens / one["whole_s"] for one in self.rounds
            )
        if self.kind == "server":
            figures["audio_s_per_s"] = statistics.median(
                one["audio_s"] / one["elapsed_s"] for one in self.rounds
            )
            figures["cpu_s"] = {
                part: statistics.median(one["cpu_s"][part] for one in self.rounds)
                for part in self.rounds[0]["cpu_s"]
            }
        return figures


def run_cases(
    contestants: Sequence[Contestant],
    plan: Plan,
    between: Callable[[], None],
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Warm every contestant up, then let them take turns; return one summary per case.

    Args:
        contestants: in the order of their turns.
        plan: rounds, steps and concurrencies.
        between: called in every round before each concurrency.
        say: takes progress.
    """
    for contestant in contestants:
        contestant.run(1, min(8, plan.steps))
    cases: dict[tuple[Kind, str, int], Case] = {}
    levels = sorted({level for one in contestants for level in one.concurrencies(plan)})
    for number in range(plan.rounds):
        for level in levels:
            between()
            for contestant in contestants:
                if level not in contestant.concurrencies(plan):
                    continue
                key = (contestant.kind, contestant.variant, level)
                case = cases.setdefault(key, Case(*key, steps=plan.steps))
                case.rounds.append(contestant.run(level, plan.steps))
                rate = level * plan.steps / case.rounds[-1]["elapsed_s"]
                say(f"round {number + 1}: {' '.join(map(str, key))}: {rate:.1f} tokens/s")
    return [case.summary() for case in cases.values()]
