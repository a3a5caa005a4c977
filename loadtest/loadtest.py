"""Load test: locust at fixed steps of users, a report, and a profile for capacity.py.

    make loadtest                                       the small voice in int8, about five minutes
    python loadtest/loadtest.py --concurrency 1 8 --seconds 30
    python loadtest/loadtest.py --kinds stream unary http --lengths long=1
    python loadtest/loadtest.py --shape spike --users 32 --seconds 120
    python loadtest/loadtest.py --url gpu-host:8001 --http-url gpu-host:8000

Serves what it builds, unless --url names a server that runs. Users never pause: as many requests
run at once as there are users. --shape runs one load over time instead of steps. Progress and the
table go to standard error, one line of JSON to standard output, and to --output: report.html,
steps.csv, table.md, profile.json, locust's own CSV files and one line per request. Needs the extra
`load`. Exit code: 0 it ran, 1 it could not, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "embedded")]

from capacity import positive  # noqa: E402
from chattts_bench.arguments import add_served, add_work, folder, number  # noqa: E402
from chattts_client import ChatTTSError  # noqa: E402
from chattts_load import texts  # noqa: E402
from chattts_load.shapes import SHAPES, Shape  # noqa: E402
from launcher import EmbeddedServerError  # noqa: E402

INTERRUPTED = 130
_DAY_S = 86400
_USERS = 16
_RATE = 2.0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--concurrency",
        type=number(1, 256),
        nargs="+",
        default=[1, 2, 4, 8, 16, 32, 64],
        metavar="N",
        help="users of each step; default: 1 2 4 8 16 32 64",
    )
    parser.add_argument(
        "--seconds",
        type=number(2, _DAY_S),
        default=20,
        metavar="N",
        help="of each step or of the shape; default: %(default)s",
    )
    parser.add_argument(
        "--settle",
        type=number(0, 3600),
        default=4,
        metavar="N",
        help="seconds at the start of each that do not count; default: %(default)s",
    )
    parser.add_argument(
        "--kinds",
        nargs="+",
        choices=("stream", "unary", "http"),
        default=["stream"],
        help="ways to ask; streams are eight times as frequent as each other kind",
    )
    parser.add_argument(
        "--lengths",
        type=_weights(texts.LENGTHS),
        default=texts.DEFAULT_LENGTHS,
        help="weights of short, medium and long texts; default: %(default)s",
    )
    parser.add_argument(
        "--languages",
        type=_weights(texts.LANGUAGES),
        default=texts.DEFAULT_LANGUAGES,
        help="weights; default: %(default)s",
    )
    parser.add_argument(
        "--no-checks",
        action="store_true",
        help="leave out the second client and the check of the profile",
    )
    parser.add_argument("--shape", choices=SHAPES, help="one load over time instead of steps")
    parser.add_argument(
        "--users",
        type=number(1, 256),
        metavar="N",
        help=f"of the shape, at most; default: {_USERS}",
    )
    parser.add_argument(
        "--rate",
        type=positive,
        metavar="N",
        help=f"poisson: arrivals per second; default: {_RATE:g}",
    )
    parser.add_argument(
        "--url", metavar="HOST:PORT", help="gRPC of a server that runs; nothing is served here"
    )
    parser.add_argument("--http-url", default="localhost:8000", metavar="HOST:PORT")
    parser.add_argument(
        "--metrics-url",
        metavar="HOST:PORT",
        help="of the server of --url: its memory is looked up there; default: it is not known",
    )
    add_served(parser)
    parser.add_argument(
        "--output",
        type=folder,
        default=str(_ROOT / "loadtest-results"),
        metavar="DIR",
        help="default: %(default)s",
    )
    add_work(parser)
    arguments = parser.parse_args(argv)
    if arguments.settle >= arguments.seconds:
        parser.error("--settle: nothing would be left of --seconds")
    if arguments.metrics_url and not arguments.url:
        parser.error("--metrics-url: only with --url; of a server that is served here all is known")
    if arguments.rate is not None and arguments.shape != "poisson":
        parser.error("--rate: only --shape poisson has one")
    if arguments.users is not None and arguments.shape in (None, "poisson"):
        parser.error("--users: only a --shape other than poisson has a number of its own")
    return arguments


def _weights(names: Sequence[str]) -> Callable[[str], str]:
    """Return a reader of weights that hands them on as they are written."""

    def read(text: str) -> str:
        texts.read_weights(text, names)
        return text

    return read


def main(argv: Sequence[str] | None = None) -> int:
    """Run the load test."""
    arguments = parse(argv)
    # Imported now, so that --help works without the extra.
    from chattts_bench import prepare
    from chattts_load.locust_process import LocustError
    from chattts_load.run import Options, run_shape, run_steps

    path = None
    if not arguments.url:
        path = (
            arguments.repository
            or prepare.repository(arguments.work, arguments.checkpoint, arguments.precision).path
        )
    options = Options(
        output=arguments.output,
        repository=path,
        grpc_url=arguments.url or "",
        http_url=arguments.http_url,
        metrics_url=arguments.metrics_url or "",
        concurrency=sorted(set(arguments.concurrency)),
        seconds=arguments.seconds,
        settle_s=arguments.settle,
        kinds=arguments.kinds,
        lengths=arguments.lengths,
        languages=arguments.languages,
        with_checks=not arguments.no_checks,
    )
    try:
        if arguments.shape:
            shape = Shape(arguments.shape, arguments.users or _USERS, arguments.seconds)
            result = run_shape(options, shape, arguments.rate or _RATE)
        else:
            result = run_steps(options)
    except (LocustError, EmbeddedServerError, ChatTTSError, ValueError) as error:
        print(f"loadtest: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("loadtest: interrupted", file=sys.stderr)
        return INTERRUPTED
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
