"""What metrics and the log of requests cost: one server with them, one without, side by side.

    python loadtest/metrics_cost.py
    python loadtest/metrics_cost.py --repository /tmp/a --streams 16 --rounds 20

Both run all the time, and each round loads one and then the other, in turns first, with the same
streams. Prints a table and, last, one line of JSON: the medians over the rounds of how much
throughput is lost and how much more processor time a second of audio takes, in percent, with the
middle 90 % of such medians (bootstrap over the rounds). Processor time is the steadier of the two
where other programs run. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chattts_bench.arguments import add_built, number
from chattts_bench.report import table
from chattts_client import ChatTTSClient

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "embedded")]

from chattts_bench.processes import cpu_s, server_tree  # noqa: E402
from chattts_bench.speech import equal_requests, running, speak_all  # noqa: E402
from launcher import EmbeddedServer  # noqa: E402

TARGET_PERCENT = 2.0
_TEXT = "the train to london leaves at half past seven"
_OFF = {"metrics": "false", "log_sampling": "0"}
_NUM_BOOTSTRAPS = 2000


@dataclass(frozen=True, slots=True)
class Load:
    """One load of one server."""

    audio_s_per_s: float
    """Seconds of audio per second."""
    cpu_s_per_audio_s: float
    """Processor seconds of all processes of the server per second of audio."""


def copy_without(source: Path, target: Path) -> Path:
    """Copy a repository, metrics and log switched off; return the copy."""
    shutil.copytree(source, target)
    for config in target.glob("*/config.pbtxt"):
        text = config.read_text(encoding="utf-8")
        for key, value in _OFF.items():
            pattern = rf'(key: "{key}" value: {{ string_value: )"[^"]*"'
            text = re.sub(pattern, rf'\1"{value}"', text)
        config.write_text(text, encoding="utf-8")
    return target


def load(server: EmbeddedServer, client: ChatTTSClient, streams: int, steps: int) -> Load:
    """Let a server speak so many streams at once, twice."""
    assert server.pid is not None
    processes = server_tree(server.pid)
    before = sum(cpu_s(processes).values())
    audio_s = elapsed_s = 0.0
    for _ in range(2):
        spoken, took_s = speak_all(client, equal_requests(_TEXT, streams, steps))
        audio_s += sum(one.audio_s for one in spoken)
        elapsed_s += took_s
    used_s = sum(cpu_s(processes).values()) - before
    return Load(audio_s / elapsed_s, used_s / audio_s)


def compare(on: Path, off: Path, arguments: argparse.Namespace) -> list[tuple[Load, Load]]:
    """Load both servers in turns; return what each round measured with and without."""
    rounds = []
    with ExitStack() as stack:
        servers = [stack.enter_context(running(path)) for path in (on, off)]
        for server in servers:
            load(*server, arguments.streams, arguments.steps)  # warm
        for index in range(arguments.rounds):
            measured = {}
            for which in (0, 1) if index % 2 else (1, 0):
                measured[which] = load(*servers[which], arguments.streams, arguments.steps)
            rounds.append((measured[0], measured[1]))
    return rounds


def median_and_range(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, and the 5th and 95th percentile of medians of such samples."""
    draw = random.Random(0)
    medians = sorted(
        statistics.median(draw.choices(values, k=len(values))) for _ in range(_NUM_BOOTSTRAPS)
    )
    low, high = medians[_NUM_BOOTSTRAPS // 20], medians[-_NUM_BOOTSTRAPS // 20]
    return statistics.median(values), low, high


def summary(rounds: Sequence[tuple[Load, Load]]) -> dict[str, Any]:
    """Return what is lost, in percent."""
    lost = [100 * (1 - on.audio_s_per_s / off.audio_s_per_s) for on, off in rounds]
    more = [100 * (on.cpu_s_per_audio_s / off.cpu_s_per_audio_s - 1) for on, off in rounds]
    figures = {"throughput_lost": lost, "processor_time_more": more}
    found: dict[str, Any] = {"rounds": len(rounds), "target_percent": TARGET_PERCENT}
    for name, values in figures.items():
        middle, low, high = median_and_range(values)
        found[f"{name}_percent"] = round(middle, 2)
        found[f"{name}_percent_range"] = [round(low, 2), round(high, 2)]
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_built(parser)
    parser.add_argument("--streams", type=number(1, 64), default=8, help="at once; %(default)s")
    parser.add_argument("--steps", type=number(24, 2048), default=192, help="each; %(default)s")
    parser.add_argument("--rounds", type=number(2, 1000), default=12, help="%(default)s")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        off = copy_without(arguments.repository, Path(folder) / "models")
        rounds = compare(arguments.repository, off, arguments)
    rows = [
        [
            name,
            f"{statistics.median(one.audio_s_per_s for one in loads):.2f}",
            f"{1000 * statistics.median(one.cpu_s_per_audio_s for one in loads):.1f}",
        ]
        for name, loads in zip(("on", "off"), zip(*rounds, strict=True), strict=True)
    ]
    print(table(["metrics and log", "audio s/s", "processor ms per audio s"], rows))
    print(json.dumps(summary(rounds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
