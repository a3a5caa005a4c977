"""A load test from start to end: serve, load step by step, check, write."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from chattts_bench.processes import processor_name
from chattts_client import ChatTTSClient
from launcher import EmbeddedServer
from tritonclient import grpc as triton

from . import checks, plots, report
from .figures import Figures, by_length, figures, timeline
from .locust_process import Target, run_locust
from .memory import UNKNOWN, MemorySource, most_held, of_metrics, of_processes
from .profile import Profile, fit, lengths_of, save
from .records import Record, ended_within
from .room import max_streams_of, with_room
from .shapes import Shape

_CHECK_RATE_SHARE = 0.5
"""Of the highest throughput; the rate at which the profile is checked."""
_CHECK_STEPS = 4
"""How many times as long as a step: a p99 of few requests is chance."""
_BIN_S = 5.0
_TITLE = "ChatTTS on Triton: load test"


@dataclass(frozen=True, slots=True)
class Options:
    """What a load test does."""

    output: Path
    """Folder of the report."""
    repository: Path | None
    """What to serve; None: a server runs already."""
    grpc_url: str
    http_url: str
    """Of that server, HOST:PORT."""
    metrics_url: str
    """Of its metrics, where its memory is looked up; empty: it is not."""
    concurrency: Sequence[int]
    """Requests at once, one step each."""
    seconds: float
    """Of each step, the settling time included."""
    settle_s: float
    """What ends in this time after the first call of a step does not count."""
    kinds: Sequence[str]
    lengths: str
    languages: str
    """As locust_process.Target takes them."""
    with_checks: bool
    """Also let a second client speak, and check the profile against arrivals at random times."""


def run_steps(options: Options) -> dict[str, Any]:
    """Load the server step by step; write the report and the profile.

    Returns:
        What the last line of the output says.

    Raises:
        ValueError: of a step nothing ended well; the metrics say nothing of memory.
        LocustError: locust failed.
    """
    begun = time.monotonic()
    with _target(options, max(options.concurrency)) as (target, memory):
        what = _what(options, target, memory)
        steps, records = _steps(options, target, memory)
        profile = _profile(options, target, what, records)
        found = _checks(options, target, profile, steps) if options.with_checks else {}
    save(profile, options.output / "profile.json")
    report.write_csv(steps, options.output / "steps.csv")
    table = f"{report.markdown(steps)}\n\nMemory: {memory.meaning}."
    (options.output / "table.md").write_text(table + "\n", encoding="utf-8")
    classes = [one for users, kept in records.items() for one in by_length(kept, users)]
    plot = plots.over_concurrency(steps)
    page = report.html(_TITLE, what, steps, classes, plot, _notes(found))
    (options.output / "report.html").write_text(page, encoding="utf-8")
    print(table, file=sys.stderr)
    return {
        "what": what,
        "seconds": round(time.monotonic() - begun, 1),
        "steps": [asdict(step) for step in steps],
        **found,
    }


def run_shape(options: Options, shape: Shape, rate: float) -> dict[str, Any]:
    """Let one shape run; write its figures over time. Raises and returns as `run_steps`."""
    users = 1 if shape.name == "poisson" else shape.users
    with _target(options, users) as (target, memory):
        what = {**_what(options, target, memory), "shape": shape.name, "users": shape.users}
        with most_held(memory) as held:
            records = run_locust(options.output, shape.name, target, shape, rate)
    whole = figures(records, users, options.settle_s, shape.seconds, held.num_bytes)
    stretches = timeline(records, _BIN_S)
    report.write_csv([one for _, one in stretches], options.output / f"{shape.name}.csv")
    classes = by_length(ended_within(records, options.settle_s, shape.seconds), users)
    page = report.html(_TITLE, what, [whole], classes, plots.over_time(stretches), [])
    (options.output / f"{shape.name}.html").write_text(page, encoding="utf-8")
    return {"what": what, "whole": asdict(whole)}


@contextmanager
def _target(options: Options, most: int) -> Iterator[tuple[Target, MemorySource]]:
    """What is loaded, and where the memory of its server is looked up.

    Args:
        options: say which server.
        most: requests at once that ours has room for.
    """
    how = (options.kinds, options.lengths, options.languages)
    if options.repository is None:
        target = Target(options.grpc_url, options.http_url, *how)
        if not options.metrics_url:
            yield target, UNKNOWN
            return
        with ChatTTSClient(options.grpc_url, metrics_url=options.metrics_url) as client:
            yield target, of_metrics(client)
        return
    room = with_room(options.repository, options.output / "repository", most)
    server = EmbeddedServer(room)
    server.start()
    assert server.pid is not None
    try:
        yield Target(server.grpc_url, server.http_url, *how), of_processes(server.pid)
    finally:
        server.kill()


def _what(options: Options, target: Target, memory: MemorySource) -> dict[str, Any]:
    """What was measured, for people; asks the server, which so speaks once before the load."""
    with ChatTTSClient(target.grpc_url) as client:
        summary = client.synthesize("the server is working", voice="en", seed=1)
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "processor of the load": processor_name(),
        "cores of the load": os.cpu_count(),
        "checkpoint": summary.checkpoint,
        "precision": summary.precision,
        "untrained": summary.untrained,
        "users": ", ".join(options.kinds),
        "lengths": options.lengths,
        "languages": options.languages,
        "seconds per step": options.seconds,
        "memory": memory.meaning,
    }


def _steps(
    options: Options, target: Target, memory: MemorySource
) -> tuple[list[Figures], dict[int, list[Record]]]:
    steps, kept = [], {}
    window_s = options.seconds - options.settle_s
    for users in options.concurrency:
        shape = Shape("constant", users, options.seconds)
        with most_held(memory) as held:
            records = run_locust(options.output, f"users-{users}", target, shape)
        step = figures(records, users, options.settle_s, window_s, held.num_bytes)
        print(
            f"{users} at once: {step.qps:.1f} requests/s, mean {step.latency_mean_s:.2f} s, "
            f"p99 {step.latency_p99_s:.2f} s, first audio {step.first_audio_p50_s:.2f} s, "
            f"{step.errors} errors",
            file=sys.stderr,
        )
        steps.append(step)
        kept[users] = ended_within(records, options.settle_s, window_s)
    return steps, kept


def _profile(
    options: Options,
    target: Target,
    what: Mapping[str, Any],
    records: Mapping[int, Sequence[Record]],
) -> Profile:
    """Fit the steps that the token model works on at once; beyond, the simulation queues itself."""
    engine = _parameters(target.grpc_url, "chattts_gpt")
    if options.repository is None:
        max_streams = int(_parameters(target.grpc_url, "chattts")["max_streams"])
    else:  # the server has room for more
        max_streams = max_streams_of(options.repository)
    max_num_seqs = int(engine["max_num_seqs"]) * max(1, int(engine["num_engines"]))
    fitting = {users: kept for users, kept in records.items() if users <= max_num_seqs}
    return Profile(
        what=what,
        max_num_seqs=max_num_seqs,
        max_streams=max_streams,
        points=fit(fitting or records),
        lengths=lengths_of([record for kept in records.values() for record in kept]),
    )


def _parameters(grpc_url: str, model: str) -> dict[str, str]:
    """The `parameters` of a model's config.pbtxt, asked from the server."""
    with triton.InferenceServerClient(grpc_url) as client:
        config = client.get_model_config(model).config
    return {key: value.string_value for key, value in config.parameters.items()}


def _checks(
    options: Options,
    target: Target,
    profile: Profile,
    steps: Sequence[Figures],
) -> dict[str, Any]:
    seconds, settle_s = 2 * options.seconds, options.settle_s
    rate = _CHECK_RATE_SHARE * max(step.qps for step in steps)
    streams = replace(target, kinds=("stream",))
    return {
        "second_client": checks.against_a_second_client(
            options.output,
            replace(streams, lengths="medium=1"),  # alike, so that means settle soon
            streams=2,
            seconds=seconds,
            settle_s=settle_s,
        ),
        "capacity": checks.of_the_profile(
            options.output, streams, profile, rate, _CHECK_STEPS * options.seconds, settle_s
        ),
    }


def _notes(found: Mapping[str, Any]) -> list[str]:
    """What the checks found, in words."""
    if not found:
        return []
    second, capacity = found["second_client"], found["capacity"]
    ratios = capacity["predicted_over_measured"]
    return [
        "Figures are of requests that ended within a step, after its settling time; memory is the "
        "largest of it.",
        f"A second client without gevent, at the same time, the same texts: latency "
        f"{second['latency_ratio']:.3f} and first audio {second['first_audio_ratio']:.3f} of it.",
        f"Arrivals at random times, {capacity['rate']:.2f} per second: the simulation on this "
        f"profile says {ratios['mean']:.2f} of the measured mean, {ratios['p50']:.2f} of p50, "
        f"{ratios['p95']:.2f} of p95, {ratios['p99']:.2f} of p99.",
    ]
