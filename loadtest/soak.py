"""Soak test: mixed traffic on a real server; then nothing may have grown, failed or been lost.

    make soak                                           20 minutes, the small voice in int8
    python loadtest/soak.py --seconds 60
    python loadtest/soak.py --repository /tmp/a --seed 7

Normal, cancelled, slow, malformed, long, late and too many requests, over gRPC and HTTP, from
threads and asyncio; all samples are compared with those that the server spoke at the start. Every
10 seconds one line goes to standard error, the table at the end to standard output, and the report
to --output. Needs the extra `bench`. Ctrl-C ends the traffic early. Exit code:
0 nothing is wrong, 1 something is, 130 interrupted and nothing wrong until then.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "embedded")]

from chattts_bench import prepare  # noqa: E402
from chattts_bench.arguments import add_served, add_work, folder, number  # noqa: E402
from chattts_soak.report import as_json, render  # noqa: E402
from chattts_soak.run import Options, run  # noqa: E402

INTERRUPTED = 130
_DAY_S = 86400


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds",
        type=number(10, _DAY_S),
        default=1200,
        metavar="N",
        help="of traffic, a fifth of it warm-up; default: %(default)s",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of the traffic; default: %(default)s"
    )
    add_served(parser)
    parser.add_argument(
        "--output",
        type=folder,
        default=str(_ROOT / "soak-results"),
        metavar="DIR",
        help="for report.json; default: %(default)s",
    )
    add_work(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the soak test and write its report."""
    arguments = parse(argv)
    path = (
        arguments.repository
        or prepare.repository(arguments.work, arguments.checkpoint, arguments.precision).path
    )
    options = Options(path, arguments.seconds, arguments.seed)
    try:
        record = run(options)
    except KeyboardInterrupt:
        print("soak: interrupted", file=sys.stderr)
        return INTERRUPTED
    report = as_json(options, record)
    text = json.dumps(report, indent=1)
    (arguments.output / "report.json").write_text(text + "\n", encoding="utf-8")
    print(render(report))
    if record.faults:
        return 1
    return INTERRUPTED if record.is_partial else 0


if __name__ == "__main__":
    sys.exit(main())
