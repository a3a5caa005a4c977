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

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "embedded")]

from chattts_bench.plan import SECTIONS, Plan  # noqa: E402
from chattts_bench.plots import draw  # noqa: E402
from chattts_bench.report import render  # noqa: E402
from chattts_bench.run import Options, run  # noqa: E402


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=_ROOT / "bench-results", metavar="DIR")
    parser.add_argument(
        "--work", type=Path, default=Path.home() / ".cache" / "chattts-bench", metavar="DIR"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=SECTIONS,
        default=SECTIONS,
        metavar="SECTION",
        help=f"default: all of {', '.join(SECTIONS)}",
    )
    parser.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="default: untrained, at full size"
    )
    parser.add_argument(
        "--repository",
        type=Path,
        nargs="+",
        default=[],
        metavar="DIR",
        help="measure these instead of building; two of one precision go by their folders' names",
    )
    parser.add_argument(
        "--baseline", choices=("llama", "published", "both", "none"), default="llama"
    )
    parser.add_argument("--quick", action="store_true", help="small, the demo voice, no baseline")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--concurrency", type=int, nargs="+")
    parser.add_argument("--precision", choices=("int8", "fp32"), nargs="+")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0 when it ran, whatever it found."""
    arguments = parse(argv)
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
        repositories=tuple(path.resolve() for path in arguments.repository),
        trained_checkpoint=demo,
        baseline="none" if arguments.quick else arguments.baseline,
        work=arguments.work.resolve(),
    )
    report = run(options)
    arguments.output.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=1)
    (arguments.output / "report.json").write_text(text + "\n", encoding="utf-8")
    if report["cases"]:
        draw(report, arguments.output)
    print(render(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
