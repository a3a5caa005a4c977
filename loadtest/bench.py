"""Benchmark: engine, whole path and a baseline side by side, with floors, checks and targets.

    make bench                                          all of it, full size, untrained weights
    python loadtest/bench.py --only engine baseline floor --rounds 1
    python loadtest/bench.py --only server --repository /tmp/a --checkpoint checkpoints/demo
    python loadtest/bench.py --quick --output /tmp/out  small and meaningless, for CI

Needs the extras `serve` and `bench`. What it builds lies in --work and is kept. The report goes to
standard output, report.json and two plots to --output, progress to standard error. Environments of
the baselines are installed with pip; where its index serves torch with CUDA only, set
PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu to spare several GB.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "embedded")]

from chattts_bench.arguments import add_work, checkpoint, folder, number, repository  # noqa: E402
from chattts_bench.plan import MAX_STEPS, SECTIONS, Plan  # noqa: E402

if TYPE_CHECKING:
    from chattts_bench.run import Options

INTERRUPTED = 130


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    full = Plan()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output",
        type=folder,
        default=str(_ROOT / "bench-results"),
        metavar="DIR",
        help="for report.json and plots; default: %(default)s",
    )
    add_work(parser, "what the run builds and keeps, up to 5 GB")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=SECTIONS,
        default=SECTIONS,
        metavar="SECTION",
        help=f"default: all of {', '.join(SECTIONS)}",
    )
    parser.add_argument(
        "--checkpoint", type=checkpoint, metavar="DIR", help="default: untrained, at full size"
    )
    parser.add_argument(
        "--repository",
        type=repository,
        nargs="+",
        default=[],
        metavar="DIR",
        help="measure these instead of building; two of one precision go by their folders' names",
    )
    parser.add_argument(
        "--baseline",
        choices=("llama", "published", "both", "none"),
        default="llama",
        help="the plain loop, the package itself, both or none; default: %(default)s",
    )
    parser.add_argument("--quick", action="store_true", help="small, the demo voice, no baseline")
    parser.add_argument(
        "--rounds", type=number(1, 100), metavar="N", help=f"default: {full.rounds}"
    )
    parser.add_argument(
        "--steps",
        type=number(1, MAX_STEPS),
        metavar="N",
        help=f"length of each request, 1 ... {MAX_STEPS}; default: {full.steps}",
    )
    parser.add_argument(
        "--concurrency",
        type=number(1, 256),
        nargs="+",
        metavar="N",
        help=f"requests at once; default: {' '.join(map(str, full.concurrency))}",
    )
    parser.add_argument(
        "--precision",
        choices=("int8", "int8-weights", "fp32"),
        nargs="+",
        help=f"default: {' '.join(full.precisions)}",
    )
    arguments = parser.parse_args(argv)
    names = [path.name for path in arguments.repository]
    if len(set(names)) < len(names):
        parser.error("--repository: two folders of one name cannot be told apart in the report")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0 when it ran, whatever it found."""
    arguments = parse(argv)
    # Imported now, so that --help works without the extra.
    from chattts_bench.run import Options

    plan = Plan.quick() if arguments.quick else Plan()
    plan = replace(
        plan,
        rounds=arguments.rounds or plan.rounds,
        steps=arguments.steps or plan.steps,
        concurrency=tuple(arguments.concurrency or plan.concurrency),
        precisions=tuple(arguments.precision or plan.precisions),
    )
    demo = _ROOT / "checkpoints" / "demo"
    options = Options(
        plan=plan,
        sections=frozenset(arguments.only),
        checkpoint=arguments.checkpoint or (demo if arguments.quick else None),
        repositories=tuple(arguments.repository),
        trained_checkpoint=demo,
        baseline="none" if arguments.quick else arguments.baseline,
        work=arguments.work,
    )
    try:
        _run(options, arguments.output)
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


def _run(options: Options, output: Path) -> None:
    """Measure, write the report and the plots, print the table."""
    from chattts_bench.plots import draw
    from chattts_bench.report import render
    from chattts_bench.run import run

    report = run(options)
    text = json.dumps(report, indent=1)
    (output / "report.json").write_text(text + "\n", encoding="utf-8")
    if report["cases"]:
        draw(report, output)
    print(render(report))


if __name__ == "__main__":
    sys.exit(main())
