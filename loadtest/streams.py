"""Concurrent streams through an embedded server: throughput, first audio, real-time factor.

    python loadtest/streams.py --concurrency 1 8 16
    python loadtest/streams.py --repository /tmp/a /tmp/b --steps 150    (side by side, interleaved)

Every round starts all streams at once, with seeds 0 ... N-1. Repositories take turns, round by
round, so that a drifting machine hits them alike. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "embedded"))

from chattts_client import Audio, ChatTTSClient, SpeechOptions  # noqa: E402
from launcher import EmbeddedServer  # noqa: E402

TEXT = "the train to london leaves at half past seven"
REQUEST_LIMIT_S = 600.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the rounds and print a table, then one JSON line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    own = ROOT / "model_repository"
    parser.add_argument("--repository", type=Path, nargs="+", default=[own])
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 8, 16])
    parser.add_argument("--steps", type=int, default=0, help="fixed length; 0 = until it ends")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    rows = []
    for concurrency in arguments.concurrency:
        rounds: dict[Path, list[dict[str, float]]] = {path: [] for path in arguments.repository}
        with ExitStack() as stack:
            clients = {path: _start(stack, path) for path in arguments.repository}
            for _ in range(arguments.rounds + 1):
                for path, client in clients.items():
                    rounds[path].append(run_round(client, concurrency, arguments.steps))
        rows += [_row(path, concurrency, found[1:]) for path, found in rounds.items()]
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()))
    print(json.dumps(rows))
    return 0


def run_round(client: ChatTTSClient, concurrency: int, steps: int) -> dict[str, float]:
    """Speak `concurrency` streams at once; return what the round measured."""

    def speak(seed: int) -> Audio:
        options: SpeechOptions = {"seed": seed}
        if steps:
            options |= {"min_new_tokens": steps, "max_new_tokens": steps}
        with client.stream(TEXT, **options) as stream:
            return stream.result()

    started = time.perf_counter()
    with ThreadPoolExecutor(concurrency) as pool:
        spoken = list(pool.map(speak, range(concurrency)))
    elapsed_s = time.perf_counter() - started
    return {
        "audio_s_per_s": sum(audio.duration_s for audio in spoken) / elapsed_s,
        "first_audio_ms": 1000 * statistics.median(a.time_to_first_audio_s for a in spoken),
        "real_time_factor": statistics.median(audio.real_time_factor for audio in spoken),
    }


def _start(stack: ExitStack, repository: Path) -> ChatTTSClient:
    server = EmbeddedServer(repository)
    server.start()
    stack.callback(server.kill)
    return stack.enter_context(ChatTTSClient(server.grpc_url, timeout_s=REQUEST_LIMIT_S))


def _row(path: Path, concurrency: int, rounds: list[dict[str, float]]) -> dict[str, Any]:
    """Return the medians over the rounds after the first, which warms up."""
    medians = {key: statistics.median(found[key] for found in rounds) for key in rounds[0]}
    rounded = {key: float(f"{value:.3g}") for key, value in medians.items()}
    return {"repository": str(path), "concurrency": concurrency, **rounded}


if __name__ == "__main__":
    sys.exit(main())
