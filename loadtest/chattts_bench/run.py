"""Run: build what is needed, run the asked sections in order, return one report."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import exactness, prepare, processes, speech, targets, upkeep
from .built import Built
from .cases import BaselineContestant, Contestant, EngineContestant, ServerContestant, run_cases
from .floor import MachineMeter, StepCost
from .plan import BASELINES, PROMPT, Plan
from .worker import Worker

_CASE_SECTIONS = frozenset({"engine", "server", "baseline"})
_SERVED_CHECKS = frozenset({"realtime", "idle", "linear"})


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for."""

    plan: Plan
    sections: frozenset[str]
    checkpoint: Path | None
    """None = untrained, at full size."""
    repositories: tuple[Path, ...]
    """Measured as they are; empty = built from the checkpoint."""
    trained_checkpoint: Path
    """A voice whose precisions are compared too: random weights say little about trained ones."""
    baseline: str
    work: Path
    """A folder that exists."""


def run(options: Options) -> dict[str, Any]:
    """Run the sections and return the report, ready for JSON."""
    started = time.monotonic()
    builds = _builds(options)
    first = next(iter(builds.values()))
    report: dict[str, Any] = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": processes.processor_name(),
        "cores": len(os.sched_getaffinity(0)),
        "checkpoint": first.gpt["checkpoint"],
        "untrained": first.gpt["untrained"],
        "max_num_seqs": first.max_num_seqs,
        "baseline": options.baseline if "baseline" in options.sections else "none",
        "plan": asdict(options.plan),
        "cases": [],
        "checks": {},
    }
    meter = MachineMeter(options.plan.bandwidth_bytes, first)
    if options.sections & _CASE_SECTIONS:
        report["cases"] = _cases(options, builds, meter)
    elif "floor" in options.sections:
        meter.measure()
    if "floor" in options.sections:
        machine = meter.median()
        report["machine"] = asdict(machine)
        report["machine_measured"] = [asdict(one) for one in meter.measured]
        costs = {variant: StepCost.of(built) for variant, built in builds.items()}
        report["step_costs"] = {variant: asdict(cost) for variant, cost in costs.items()}
        known = [case for case in report["cases"] if case["variant"] in costs]
        prompt_tokens = len(first.encode(PROMPT))
        targets.add_floors(known, costs, machine, prompt_tokens, first.max_num_seqs)
    report["checks"] = dict(_checks(options, builds))
    report["targets"] = [] if options.plan.is_quick else targets.judge_all(report)
    report["elapsed_s"] = time.monotonic() - started
    return report


def _builds(options: Options) -> dict[str, Built]:
    """Repositories by variant; the checks of one repository use the first."""
    if options.repositories:
        given = [Built(path) for path in options.repositories]
        precisions = [built.precision for built in given]
        are_unique = len(set(precisions)) == len(precisions)
        return {built.precision if are_unique else built.path.name: built for built in given}
    checkpoint = options.checkpoint or prepare.full_checkpoint(options.work)
    return {
        precision: prepare.repository(options.work, checkpoint, precision)
        for precision in options.plan.precisions
    }


def _cases(
    options: Options, builds: Mapping[str, Built], meter: MachineMeter
) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        contestants: list[Contestant] = []
        for variant, built in builds.items():
            if "engine" in options.sections:
                worker = stack.enter_context(_engine_worker(options, built, "engine"))
                contestants.append(EngineContestant(worker, variant))
            if "server" in options.sections:
                contestants.append(ServerContestant(stack, built, variant))
        if "baseline" in options.sections:
            contestants += _baselines(options, builds, stack)
        measure = meter.measure if "floor" in options.sections else lambda: None
        return run_cases(contestants, options.plan, measure, _say)


def _baselines(
    options: Options, builds: Mapping[str, Built], stack: ExitStack
) -> Iterator[Contestant]:
    checkpoint = options.checkpoint or prepare.full_checkpoint(options.work)
    prompt_ids = next(iter(builds.values())).encode(PROMPT)
    for name in BASELINES:
        if options.baseline in (name, "both"):
            python = prepare.baseline_python(options.work, name)
            log = options.work / f"{name}.log"
            worker = stack.enter_context(Worker(python, name, [str(checkpoint)], log))
            yield BaselineContestant(worker, name, prompt_ids)


def _checks(options: Options, builds: Mapping[str, Built]) -> Iterator[tuple[str, Any]]:
    plan = options.plan
    served = next(iter(builds.values()))
    for name, check in (("start", upkeep.start_to_ready), ("memory", upkeep.memory_under_load)):
        if name in options.sections:
            _say(name)
            yield name, check(served.path, plan)
    if options.sections & _SERVED_CHECKS:
        with speech.running(served.path) as (server, client):
            if "idle" in options.sections:
                _say("idle")
                yield "idle", upkeep.idle(server, client, plan)
            if "realtime" in options.sections:
                _say("realtime")
                yield "realtime", upkeep.realtime_streams(client, plan)
            if "linear" in options.sections:
                _say("linear")
                yield "linear", upkeep.linear_cost(server, client, plan)
    if "precision" in options.sections:
        yield "precision", dict(_precision_checks(options, builds))
    if "identity" in options.sections:
        yield "identity", dict(_identity_checks(options, builds))


def _precision_checks(options: Options, builds: Mapping[str, Built]) -> Iterator[tuple[str, Any]]:
    """Compare the precisions of the measured checkpoint, if both are there, and of a trained."""
    trained = {
        precision: prepare.repository(options.work, options.trained_checkpoint, precision)
        for precision in ("int8", "fp32")
    }
    for pair in (builds, trained):
        name = next(iter(pair.values())).gpt["checkpoint"]
        if {"int8", "fp32"} <= pair.keys():
            _say(f"precision, {name}")
            with ExitStack() as stack:
                workers = {
                    precision: stack.enter_context(_engine_worker(options, built, "trace"))
                    for precision, built in pair.items()
                }
                yield name, exactness.compare_precisions(workers, options.plan, options.work)


def _identity_checks(options: Options, builds: Mapping[str, Built]) -> Iterator[tuple[str, Any]]:
    for variant, built in builds.items():
        _say(f"identity, {variant}")
        small_pool = exactness.preempting_pool(built, options.plan)
        for name, overrides in (("engine", ()), ("engine, small pool", (small_pool,))):
            with _engine_worker(options, built, "engine", *overrides) as worker:
                yield f"{name}, {variant}", exactness.engine_identity(worker, options.plan)
        yield f"whole path, {variant}", exactness.server_identity(built.path, options.plan)


@contextmanager
def _engine_worker(
    options: Options, built: Built, module: str, *overrides: str
) -> Iterator[Worker]:
    log = options.work / f"{module}-{built.path.name}.log"
    arguments = [str(built.path), *overrides]
    python = Path(sys.executable)
    with Worker(python, module, arguments, log, [built.engine_code]) as worker:
        yield worker


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
