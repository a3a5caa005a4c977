"""Draw the dashboard from a real run: a server under load, a real Prometheus, the same queries.

    make dashboard-preview                                      small voice, to docs/dashboard.png
    python loadtest/dashboard_preview.py --seconds 60 --repository /tmp/a --output /tmp/a.png

Needs the extra `bench`, and prometheus (Debian: apt-get install prometheus). Grafana draws the same
from monitoring/grafana/dashboards/chattts.json. The callers come in steps: 2, 4, 8, then 2 again.
Ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "embedded")]

from chattts_bench import prepare  # noqa: E402
from chattts_bench.arguments import add_repository, add_work, number  # noqa: E402
from chattts_dashboard.dashboard import read_panels  # noqa: E402
from chattts_dashboard.drawing import draw  # noqa: E402
from chattts_dashboard.prometheus import PROGRAM, Prometheus  # noqa: E402
from chattts_dashboard.traffic import Traffic  # noqa: E402
from launcher import EmbeddedServer  # noqa: E402

TEXTS = (
    "the train to london leaves at half past seven",
    "hello anna, how are you today",
    "the cat reads a book and the dog sleeps in the garden",
)
STEPS = (2, 4, 8, 2)
"""Callers at once, one after the other."""
RATE_RANGE = "15s"


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=number(20, 3600), default=120, metavar="N", help="default: %(default)s"
    )
    add_repository(parser)
    add_work(parser)
    parser.add_argument(
        "--output",
        type=Path,
        default=_ROOT / "docs" / "dashboard.png",
        metavar="FILE",
        help="default: %(default)s",
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run and draw; return the exit code."""
    arguments = parse(argv)
    if PROGRAM is None:
        print("error: no prometheus; Debian: apt-get install prometheus", file=sys.stderr)
        return 1
    panels = read_panels(RATE_RANGE)
    queries = [query for panel in panels for query in panel.queries]
    checkpoint = _ROOT / "checkpoints" / "demo"
    models = arguments.repository or prepare.repository(arguments.work, checkpoint, "int8").path
    seconds = arguments.seconds / len(STEPS)
    with (
        EmbeddedServer(models, restart=True) as server,
        Prometheus(server.metrics_url.split("/")[2]) as prometheus,
    ):
        start_s = time.time()
        for num_callers in STEPS:
            with Traffic(server.grpc_url, server.http_url, TEXTS, num_callers) as traffic:
                traffic.run_for(seconds)
        end_s = time.time()
        served = prometheus.query("chattts_info > 0")[0].labels
        data = {
            query.expr: prometheus.query_range(query.expr, start_s, end_s, 1.0) for query in queries
        }
    callers = ", ".join(map(str, STEPS))
    title = f"{callers} callers of all kinds at once, {seconds:g} s each; "
    title += f"checkpoint {served['checkpoint']}, {served['precision']}; x: seconds"
    draw(title, panels, data, start_s, arguments.output)
    empty = [query for query in queries if not data[query.expr]]
    summary = {
        "output": str(arguments.output),
        "seconds": round(end_s - start_s, 1),
        "panels": len(panels),
        "queries": len(queries),
        "without_data": [query.legend for query in empty if not query.needs_gpu],
        "without_gpu": sum(query.needs_gpu for query in empty),
    }
    print(json.dumps(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
