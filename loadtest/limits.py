"""How quickly one request too many is refused, and what readers that do not read cost the others.

    python loadtest/limits.py
    python loadtest/limits.py --repository /tmp/a --probes 500

The server is filled to its limit (`max_streams` of chattts); probes are then sent one after another
over one connection, each timed until its refusal. After that, four callers speak beside eight
streams that are read and beside eight that are not, in turns. Needs the extra `bench`. The table
goes to standard output.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from chattts_bench import processes
from chattts_bench.arguments import add_built, number
from chattts_client import ChatTTSClient, ServerUnavailableError, SpeechOptions

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "embedded")]

from launcher import EmbeddedServer  # noqa: E402

MAX_STREAMS = 64
"""`max_streams` in chattts/config.pbtxt."""
NUM_READERS, NUM_OTHERS, NUM_UTTERANCES = 8, 4, 8
LIMIT_S = 300.0
_TEXT = "hello world"
_LONG_TEXT = "hello world. " * 8


def steps(number_of: int, seed: int) -> SpeechOptions:
    """Options of an utterance of a fixed length per segment."""
    return {"seed": seed, "min_new_tokens": number_of, "max_new_tokens": number_of}


@contextlib.contextmanager
def streams(server: EmbeddedServer, number_of: int, is_read: bool) -> Iterator[None]:
    """Run long streams beside the block, each on a connection of its own, and stop them after it.

    Args:
        server: it runs.
        number_of: streams.
        is_read: whether what comes is read; if not, one piece is.
    """
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(number_of) as pool:
        opened = []
        for seed in range(number_of):
            client = stack.enter_context(
                ChatTTSClient(server.grpc_url, timeout_s=LIMIT_S, max_retries=0)
            )
            opened.append(stack.enter_context(client.stream(_LONG_TEXT, **steps(2048, seed))))
        list(pool.map(next, opened))
        is_over = threading.Event()
        readers = [pool.submit(_read, stream, is_over) for stream in opened if is_read]
        yield
        is_over.set()
        for reader in readers:
            reader.result()


def _read(stream: Iterator[object], is_over: threading.Event) -> None:
    for _ in stream:
        if is_over.is_set():
            return


def refusals(server: EmbeddedServer, num_probes: int) -> tuple[list[float], Counter[str]]:
    """Fill the server; return seconds until each refusal, and what the probes were told."""
    seconds, told = [], Counter[str]()
    with (
        ChatTTSClient(server.grpc_url, timeout_s=LIMIT_S, max_retries=0) as client,
        streams(server, MAX_STREAMS, is_read=False),
    ):
        for _ in range(num_probes):
            started_s = time.perf_counter()
            try:
                client.synthesize(_TEXT, **steps(1, 0))
            except ServerUnavailableError as error:
                seconds.append(time.perf_counter() - started_s)
                told[str(error)] += 1
            else:
                told["accepted"] += 1
    return seconds, told


def pace(server: EmbeddedServer, is_read: bool) -> tuple[float, int]:
    """Return audio seconds per second of callers beside streams, and the server's bytes then."""

    def speak(seed: int) -> float:
        with ChatTTSClient(server.grpc_url, timeout_s=LIMIT_S, max_retries=0) as client:
            return client.synthesize(_TEXT, **steps(150, seed)).duration_s

    assert server.pid is not None
    with streams(server, NUM_READERS, is_read), ThreadPoolExecutor(NUM_OTHERS) as pool:
        started_s = time.perf_counter()
        spoken_s = sum(pool.map(speak, range(NUM_UTTERANCES)))
        elapsed_s = time.perf_counter() - started_s
        held = processes.memory(processes.server_tree(server.pid)).pss
    return spoken_s / elapsed_s, held


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_built(parser)
    parser.add_argument("--probes", type=number(1, 100_000), default=200, help="%(default)s")
    parser.add_argument("--rounds", type=number(1, 1000), default=5, help="%(default)s")
    arguments = parser.parse_args(argv)
    with EmbeddedServer(arguments.repository) as server:
        seconds, told = refusals(server, arguments.probes)
        for message, count in told.most_common():
            print(f"{count} x {message}")
        if seconds:
            p50, p99, most = np.percentile(seconds, [50, 99, 100]) * 1000
            print(f"refused after: p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {most:.1f} ms")
        rounds = [(pace(server, True), pace(server, False)) for _ in range(int(arguments.rounds))]
    for name, index in (("read", 0), ("not read", 1)):
        speeds = [pair[index][0] for pair in rounds]
        held = max(pair[index][1] for pair in rounds)
        print(
            f"beside {NUM_READERS} streams {name}: {statistics.median(speeds):.1f} audio s/s "
            f"({min(speeds):.1f} ... {max(speeds):.1f}), {held / 1e6:.0f} MB in all processes"
        )
    return int("accepted" in told)


if __name__ == "__main__":
    sys.exit(main())
