"""perf_analyzer on the speech model and on the vocoder, over requests at once.

    make perf                                           the small voice in int8, about three minutes
    python loadtest/perf.py --concurrency 1 8 --requests 40
    python loadtest/perf.py --only vocoder

Serves what it builds. The speech model is decoupled and asked as a stream; perf_analyzer's own
latency is then that of the first response, so first audio, real-time factor and percentiles are
computed from its profile export. The vocoder's come from its CSV, over windows of time: with a
number of requests it divides by whole seconds. Progress and tables go to
standard error, one line of JSON to standard output; input data, exports and CSV files to --output.
Needs the extra `bench`; perf_analyzer itself is installed below --work. Exit code: 0 it ran, 1 it
could not, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "embedded")]

import numpy as np  # noqa: E402
from chattts_bench import prepare  # noqa: E402
from chattts_bench.arguments import add_served, add_work, folder, number  # noqa: E402
from chattts_bench.report import table  # noqa: E402
from chattts_load import report, texts  # noqa: E402
from chattts_load.figures import Figures, figures  # noqa: E402
from chattts_load.memory import most_held, of_processes  # noqa: E402
from chattts_load.perf_analyzer import (  # noqa: E402
    PerfAnalyzer,
    PerfAnalyzerError,
    read_latencies,
    read_speech_export,
    speech_input,
    tensor_input,
)
from chattts_load.records import Record  # noqa: E402
from chattts_load.room import with_room  # noqa: E402
from launcher import EmbeddedServer  # noqa: E402

INTERRUPTED = 130
MODELS = ("speech", "vocoder")
_STEPS = 24
_SECONDS_PER_CALL = _STEPS * 512 / 24000
_WINDOWS = ("--measurement-interval", "2000", "--stability-percentage", "999")
"""Three windows of 2 s; how far they differ is ours to judge, not a reason to go on."""
_TEXTS = 40
_SEED = 1


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--concurrency",
        type=number(1, 256),
        nargs="+",
        default=[1, 8, 16, 32, 64],
        metavar="N",
        help="requests at once; default: 1 8 16 32 64",
    )
    parser.add_argument(
        "--requests",
        type=number(1, 10**6),
        default=60,
        metavar="N",
        help="of each speech step, and at least four per request at once; default: %(default)s",
    )
    parser.add_argument("--only", choices=MODELS, help="default: both")
    add_served(parser)
    parser.add_argument(
        "--output",
        type=folder,
        default=str(_ROOT / "perf-results"),
        metavar="DIR",
        help="default: %(default)s",
    )
    add_work(parser, "what is built, installed and kept")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run perf_analyzer."""
    arguments = parse(argv)
    begun = time.monotonic()
    models = MODELS if arguments.only is None else (arguments.only,)
    counts = sorted(set(arguments.concurrency))
    try:
        analyzer = PerfAnalyzer.install(arguments.work)
        path = (
            arguments.repository
            or prepare.repository(arguments.work, arguments.checkpoint, arguments.precision).path
        )
        result: dict[str, Any] = {}
        with _serving(with_room(path, arguments.output / "repository", max(counts))) as server:
            runner = Runner(analyzer, server, arguments.output, arguments.requests)
            if "speech" in models:
                result["speech"] = runner.speech(counts)
            if "vocoder" in models:
                result["vocoder"] = runner.vocoder(path, counts)
    except (PerfAnalyzerError, ValueError) as error:
        print(f"perf: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("perf: interrupted", file=sys.stderr)
        return INTERRUPTED
    print(json.dumps({"seconds": round(time.monotonic() - begun, 1), **result}))
    return 0


class Runner:
    """Runs perf_analyzer on one server, step by step."""

    def __init__(
        self, analyzer: PerfAnalyzer, server: EmbeddedServer, output: Path, requests: int
    ) -> None:
        self._analyzer = analyzer
        self._server = server
        self._output = output
        self._requests = requests

    def speech(self, counts: Sequence[int]) -> list[dict[str, Any]]:
        """Ask the model chattts for streams, with so many at once; print and return figures."""
        mix = texts.TextMix(
            texts.load_texts(),
            texts.read_weights(texts.DEFAULT_LENGTHS, texts.LENGTHS),
            texts.read_weights(texts.DEFAULT_LANGUAGES, texts.LANGUAGES),
            _SEED,
        )
        data = self._output / "speech_input.json"
        drawn = [mix.draw() for _ in range(_TEXTS)]
        data.write_text(json.dumps(speech_input(drawn)), encoding="utf-8")
        steps = [self._speech_step(data, count) for count in counts]
        print(report.markdown(steps), file=sys.stderr)
        report.write_csv(steps, self._output / "speech.csv")
        return [asdict(step) for step in steps]

    def _speech_step(self, data: Path, count: int) -> Figures:
        export = self._output / f"speech_{count}_export.json"
        export.unlink(missing_ok=True)  # perf_analyzer refuses to write over it
        assert self._server.pid is not None
        with most_held(of_processes(self._server.pid)) as held:
            self._run(
                "chattts",
                data,
                count,
                *("--request-count", str(max(self._requests, 4 * count))),
                *("--streaming", "--profile-export-file", str(export)),
            )
        records = read_speech_export(export, texts.load_texts())
        settle_s, seconds = full_load(records)
        return figures(records, count, settle_s, seconds, held.num_bytes)

    def vocoder(self, path: Path, counts: Sequence[int]) -> list[dict[str, Any]]:
        """Ask the vocoder for 24 steps at a time; print and return figures."""
        facts = json.loads((path / "chattts/1/weights/checkpoint.json").read_text("utf-8"))
        draw = np.random.default_rng(_SEED)
        row = {
            "hidden": draw.standard_normal((_STEPS, facts["hidden_size"]), dtype=np.float32),
            "mask": np.ones(_STEPS, dtype=np.float32),
            "state": np.zeros(facts["vocoder_state_size"], dtype=np.float32),
        }
        data = self._output / "vocoder_input.json"
        data.write_text(json.dumps(tensor_input([row])), encoding="utf-8")
        steps = [self._vocoder_step(data, count) for count in counts]
        headings = ("at once", "calls/s", "audio s/s", "batch", "p50 ms", "p95 ms", "p99 ms")
        print(table(headings, [_vocoder_row(step) for step in steps]), file=sys.stderr)
        return steps

    def _vocoder_step(self, data: Path, count: int) -> dict[str, Any]:
        before = self._vocoder_counts()
        report_path = self._output / f"vocoder_{count}.csv"
        self._run("chattts_vocoder", data, count, "-f", str(report_path), *_WINDOWS)
        calls, executions = (
            after - earlier for after, earlier in zip(self._vocoder_counts(), before, strict=True)
        )
        latencies = read_latencies(report_path)
        return {
            "concurrency": count,
            **latencies,
            "audio_s_per_s": latencies["qps"] * _SECONDS_PER_CALL,
            "batch_mean": calls / executions,
        }

    def _run(self, model: str, data: Path, count: int, *more: str) -> None:
        print(f"{model}: {count} at once", file=sys.stderr, flush=True)
        self._analyzer.run(
            *("-m", model, "-i", "grpc", "-u", self._server.grpc_url, "--async"),
            *("--input-data", str(data), "--concurrency-range", str(count)),
            *more,
        )

    def _vocoder_counts(self) -> tuple[float, float]:
        """Rows and batches of the vocoder so far."""
        with urllib.request.urlopen(self._server.metrics_url, timeout=10) as response:
            lines = response.read().decode().splitlines()
        rows, batches = (
            sum(
                float(line.rsplit(" ", 1)[1])
                for line in lines
                if line.startswith(f"{family}{{") and '"chattts_vocoder"' in line
            )
            for family in ("nv_inference_count", "nv_inference_exec_count")
        )
        return rows, batches


def full_load(records: Sequence[Record]) -> tuple[float, float]:
    """When all requests at once were running.

    Returns:
        Seconds from the first call to the first end, and from there to the last call: before and
        after it there are fewer at once. With as few requests as run at once, all of the time.
    """
    first_s = min(record.started_s for record in records)
    first_end_s = min(record.ended_s for record in records)
    last_s = max(record.started_s for record in records)
    if last_s <= first_end_s:
        return 0.0, max(record.ended_s for record in records) - first_s + 1e-6
    return first_end_s - first_s, last_s - first_end_s


def _vocoder_row(step: dict[str, Any]) -> list[str]:
    return [
        str(step["concurrency"]),
        f"{step['qps']:.0f}",
        f"{step['audio_s_per_s']:.1f}",
        f"{step['batch_mean']:.1f}",
        *(f"{1000 * step[f'latency_p{number}_s']:.1f}" for number in (50, 95, 99)),
    ]


@contextmanager
def _serving(path: Path) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(path)
    server.start()
    try:
        yield server
    finally:
        server.kill()


if __name__ == "__main__":
    sys.exit(main())
