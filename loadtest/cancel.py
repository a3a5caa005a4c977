"""How long a request lives on after its caller has gone, in engine steps and milliseconds.

    python loadtest/cancel.py                            full size, untrained weights, int8
    python loadtest/cancel.py --repository /tmp/a --rounds 5

Another long request runs meanwhile, so that the engine keeps stepping, and counts its steps. A
caller goes in each of the ways that there are; the metrics tell when its sequence and its blocks
are free. `cancel input` tells the token model itself, without a front that has to notice first.
Prints a table; needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "embedded")]

from chattts_bench import prepare  # noqa: E402
from chattts_bench.arguments import add_repository, add_work, number  # noqa: E402
from chattts_bench.report import table  # noqa: E402
from chattts_client import ChatTTSClient, SpeechOptions  # noqa: E402
from chattts_soak.tokens import TokenStream  # noqa: E402
from chattts_soak.victims import WAYS, Way, victim  # noqa: E402
from chattts_soak.watch import read_metrics  # noqa: E402
from launcher import EmbeddedServer  # noqa: E402

CANCEL_INPUT = "cancel input"
_STEPS = 2048
_TEXT = "the train to london leaves at half past seven"
_OPTIONS: SpeechOptions = {"seed": 1, "min_new_tokens": _STEPS, "max_new_tokens": _STEPS}
_RUNNING = "chattts_sequences_running"
_POLL_S = 0.001
_LIMIT_S = 60.0
_STAY_FACTOR = 3.0
"""Until the gRPC deadline, times what the first audio takes."""
Measured = tuple[float, int]
"""Milliseconds and engine steps from the caller's going to its sequence's end."""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_repository(parser)
    parser.add_argument(
        "--rounds", type=number(1, 1000), default=10, metavar="N", help="default: %(default)s"
    )
    add_work(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every way of going, round by round, and print the table."""
    arguments = parse(argv)
    path = arguments.repository
    if path is None:
        checkpoint = prepare.full_checkpoint(arguments.work)
        path = prepare.repository(arguments.work, checkpoint, "int8").path
    measured: dict[str, list[Measured]] = {}
    server = EmbeddedServer(path)
    server.start()
    try:
        stay_s = _STAY_FACTOR * _first_audio_s(server)
        for _ in range(arguments.rounds):
            for way in WAYS:
                measured.setdefault(way, []).append(_measure(server, way, stay_s))
            measured.setdefault(CANCEL_INPUT, []).append(_measure_cancel_input(server))
    finally:
        server.kill()
    headings = ["way", "ms: median", "least", "most", "steps: median", "least", "most"]
    print(table(headings, [_row(way, found) for way, found in measured.items()]))
    return 0


def _first_audio_s(server: EmbeddedServer) -> float:
    """Return what the first audio takes beside another request."""
    with (
        TokenStream(server.grpc_url, "runner", _STEPS),
        ChatTTSClient(server.grpc_url, max_retries=0) as client,
        client.stream(_TEXT, **_OPTIONS) as stream,
    ):
        started_s = time.monotonic()
        next(stream)
        return time.monotonic() - started_s


def _measure(server: EmbeddedServer, way: Way, stay_s: float) -> Measured:
    _wait_until(lambda: read_metrics(server.metrics_url)[_RUNNING] == 0)
    with (
        TokenStream(server.grpc_url, "runner", _STEPS) as runner,
        victim(way, server.grpc_url, server.http_url, _TEXT, _OPTIONS, stay_s) as leave,
    ):
        _wait_until(lambda: read_metrics(server.metrics_url)[_RUNNING] == 2)
        left_s = leave()
        steps = runner.num_steps
        _wait_until(lambda: read_metrics(server.metrics_url)[_RUNNING] == 1)
        free_s = time.monotonic()
        if runner.is_over.is_set():
            raise RuntimeError(f"the other request ended first: {runner.finish_reason}")
        return 1000 * (free_s - left_s), runner.num_steps - steps


def _measure_cancel_input(server: EmbeddedServer) -> Measured:
    """Return what passes between the call and the answer "cancelled", the way there included."""
    _wait_until(lambda: read_metrics(server.metrics_url)[_RUNNING] == 0)
    with (
        TokenStream(server.grpc_url, "runner", _STEPS) as runner,
        TokenStream(server.grpc_url, "victim", _STEPS) as cancelled,
    ):
        runner.wait_for_step(20)
        cancelled.wait_for_step(10)
        called_s, steps = time.monotonic(), cancelled.num_steps
        cancelled.cancel_by_id()
        if not cancelled.is_over.wait(_LIMIT_S) or cancelled.finish_reason != "cancelled":
            raise RuntimeError(f"not cancelled: {cancelled.finish_reason}")
        return 1000 * (time.monotonic() - called_s), cancelled.num_steps - steps


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the server's metrics do not change")
        time.sleep(_POLL_S)


def _row(way: str, found: Sequence[Measured]) -> list[str]:
    milliseconds, steps = zip(*found, strict=True)
    return [
        way,
        *(f"{one(milliseconds):.0f}" for one in (statistics.median, min, max)),
        *(f"{one(steps):g}" for one in (statistics.median, min, max)),
    ]


if __name__ == "__main__":
    sys.exit(main())
