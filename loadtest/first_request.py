"""Ready means warm: how much longer the first request takes than the tenth.

    python loadtest/first_request.py
    python loadtest/first_request.py --repository /tmp/a --servers 20

Each server is started anew, gets ten equal requests one after another as soon as it is ready, and
is ended. Prints the time to first audio and the whole time of the first and of the tenth, medians
over the servers, and the median of their ratios. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from chattts_bench.arguments import add_built, number
from chattts_bench.report import table
from chattts_client import ChatTTSClient

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "embedded")]

from launcher import EmbeddedServer  # noqa: E402

NUM_REQUESTS = 10
_TEXT = "the train to london leaves at half past seven"
_STEPS = 96
Timing = tuple[float, float]
"""Seconds to the first audio, and to the end."""


def timings(path: Path) -> list[Timing]:
    """Start a server and time its first requests."""
    found = []
    with EmbeddedServer(path) as server, ChatTTSClient(server.grpc_url, max_retries=0) as client:
        for _ in range(NUM_REQUESTS):
            with client.stream(
                _TEXT, seed=1, min_new_tokens=_STEPS, max_new_tokens=_STEPS
            ) as stream:
                for _ in stream:
                    pass
            audio = stream.result()
            assert audio.time_to_first_audio_s is not None  # these steps always sound
            found.append((audio.time_to_first_audio_s, audio.elapsed_s))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_built(parser)
    parser.add_argument("--servers", type=number(1, 1000), default=10, help="%(default)s")
    arguments = parser.parse_args(argv)
    servers = [timings(arguments.repository) for _ in range(int(arguments.servers))]
    rows = []
    for index, name in enumerate(("first audio", "whole")):
        pairs = [(found[0][index], found[-1][index]) for found in servers]
        ratios = [first / last for first, last in pairs]
        milliseconds = [1000 * statistics.median(times) for times in zip(*pairs, strict=True)]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} ... {max(ratios):.2f})"
        rows.append([name, *(f"{one:.0f}" for one in milliseconds), spread])
    print(table(["", "first, ms", "tenth, ms", "ratio"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
