"""Measure latency=low: its error over the look-ahead, and how much sooner the first audio comes.

    python loadtest/low_latency.py
    python loadtest/low_latency.py --only speed --repository /tmp/full --steps 192 --rounds 3

Needs the extra `serve`. Errors are those of the smallest pieces throughout, which is the worst that
a listener can get: the small voice on sentences of its domain, and vocoders of the published sizes
with random weights (two strengths of their layers) on noise. Speed is measured on a real server, of
the small voice or of --repository, latency=exact and low in turn. Tables go to standard output, one
JSON line ends them; progress goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(_ROOT / folder) for folder in ("embedded", "build", "model_repository/chattts/1")
]

import numpy as np  # noqa: E402
from chattts_bench import arguments, prepare, speech, untrained  # noqa: E402
from chattts_bench.lookahead import SpokenSegment, compare, decibels  # noqa: E402
from chattts_bench.vocoding import (  # noqa: E402
    SAMPLE_RATE,
    SAMPLES_PER_STEP,
    LocalVocoder,
    hidden_states,
)
from chattts_pipeline import LowLatency  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

DEMO = _ROOT / "checkpoints" / "demo"
LOOKAHEADS = (2, 4, 6, 8, 10, 12, 14, 16, 24, 32, 52)
FIRST_STEPS = 8
CONCURRENCY = (1, 4)
LAYER_SCALES = (0.2, 1.0)
NOISE_STEPS = 150
TEXT = "the train to london leaves at half past seven"
LATENCIES: tuple[Literal["exact", "low"], ...] = ("exact", "low")


def errors(
    name: str, vocoder: LocalVocoder, segments: Sequence[NDArray[np.float32]]
) -> Iterable[dict[str, Any]]:
    """Yield one row per look-ahead, over all segments (T, H)."""
    exact = [vocoder.exact(hidden) for hidden in segments]
    power = sum(float(np.sum(samples**2)) for samples in exact)
    for lookahead in LOOKAHEADS:
        low_latency = LowLatency(lookahead, FIRST_STEPS)
        spoken = [vocoder.low(hidden, low_latency) for hidden in segments]
        found = [
            compare(low, samples, SAMPLE_RATE, SAMPLES_PER_STEP // 2)
            for low, samples in zip(spoken, exact, strict=True)
        ]
        noise = sum(
            one.error * float(np.sum(samples**2)) for one, samples in zip(found, exact, strict=True)
        )
        yield {
            "vocoder": name,
            "look-ahead": lookahead,
            "first audio, steps": lookahead + FIRST_STEPS,
            "error, dB": round(decibels(noise / power), 1),
            "worst 20 ms, dB": round(decibels(max(one.worst_window for one in found)), 1),
            "largest": float(f"{max(one.largest for one in found):.1e}"),
            "step at seam / slope": round(max(one.seam_slope for one in found), 2),
            "calls per piece": round(statistics.mean(calls_of(spoken)), 2),
        }


def calls_of(spoken: Sequence[SpokenSegment]) -> list[int]:
    """Return the vocoder calls of all pieces."""
    return [calls for segment in spoken for calls in segment.calls]


def speeds(repository: Path, steps: int, rounds: int) -> Iterable[dict[str, Any]]:
    """Yield one row per concurrency: exact and low in turn, medians over rounds and streams."""
    with speech.running(repository) as (_, client):
        speech.speak(client, speech.Request(TEXT, steps, seed=0))
        for concurrency in CONCURRENCY:
            requests = speech.equal_requests(TEXT, concurrency, steps)
            spoken: dict[str, list[speech.Spoken]] = {latency: [] for latency in LATENCIES}
            elapsed_s: dict[str, list[float]] = {latency: [] for latency in LATENCIES}
            for _ in range(rounds):
                for latency in LATENCIES:
                    now = [replace(request, latency=latency) for request in requests]
                    streams, seconds = speech.speak_all(client, now)
                    spoken[latency] += streams
                    elapsed_s[latency].append(seconds)
            yield _speed_row(concurrency, spoken, elapsed_s)


def _speed_row(
    concurrency: int,
    spoken: dict[str, list[speech.Spoken]],
    elapsed_s: dict[str, list[float]],
) -> dict[str, Any]:
    row: dict[str, Any] = {"streams": concurrency}
    first_s = {}
    for latency, streams in spoken.items():
        first_s[latency] = statistics.median(one.first_audio_s for one in streams)
        row[f"{latency}: first audio, ms"] = round(1000 * first_s[latency])
        row[f"{latency}: playback waits, ms"] = round(
            1000 * statistics.median(one.waited_s for one in streams)
        )
        row[f"{latency}: all, s"] = round(statistics.median(elapsed_s[latency]), 2)
        num_pieces = statistics.median(len(one.arrivals_s) for one in streams)
        row[f"{latency}: pieces"] = round(num_pieces)
    row["first audio, low / exact"] = round(first_s["low"] / first_s["exact"], 2)
    return row


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("errors", "speed"), help="one of the two parts")
    parser.add_argument(
        "--repository", type=arguments.repository, help="what to time (the small voice, int8)"
    )
    parser.add_argument("--sentences", type=arguments.number(1, 150), default=10)
    parser.add_argument("--steps", type=arguments.number(80, 2048), default=192)
    parser.add_argument("--rounds", type=arguments.number(1, 100), default=5)
    options = parser.parse_args(argv)
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="low-latency-") as folder:
        demo = prepare.repository(Path(folder), DEMO, "int8").path
        if options.only != "speed":
            report["errors"] = _show(_all_errors(Path(folder), demo, options.sentences))
        if options.only != "errors":
            repository = options.repository or demo
            report["speed"] = _show(speeds(repository, options.steps, options.rounds))
    print(json.dumps(report))
    return 0


def _all_errors(folder: Path, demo: Path, num_sentences: int) -> Iterable[dict[str, Any]]:
    sentences = (DEMO / "example_sentences.txt").read_text(encoding="utf-8").splitlines()
    with speech.running(demo) as (server, _):
        spoken = [
            hidden_states(server.grpc_url, demo, sentence, "en", seed=1)
            for sentence in sentences[:num_sentences]
        ]
    yield from errors("small voice", LocalVocoder.of_repository(demo), spoken)
    for scale in LAYER_SCALES:
        vocoder = LocalVocoder(untrained.vocoder(folder, scale), untrained.HIDDEN_SIZE)
        shape = (NOISE_STEPS, vocoder.sizes.hidden_size)
        noise = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        yield from errors(f"published sizes, random, {scale}", vocoder, [noise])


def _show(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print a table as its rows come; return them."""
    shown: list[dict[str, Any]] = []
    for row in rows:
        if not shown:
            print("| " + " | ".join(row) + " |")
            print("|" + "---|" * len(row))
        print("| " + " | ".join(str(value) for value in row.values()) + " |", flush=True)
        shown.append(row)
    print()
    return shown


if __name__ == "__main__":
    sys.exit(main())
