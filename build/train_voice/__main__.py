"""Train a small speaking checkpoint from nothing, on a CPU.

    python build/train_voice/__main__.py --work ~/voice            all stages, some hours
    python build/train_voice/__main__.py --work /tmp/v --quick     every stage, some minutes, noise
    python build/train_voice/__main__.py --work ~/voice --stage export evaluate
    python build/train_voice/__main__.py --work ~/more --from checkpoints/demo

Ctrl-C saves and stops; the same command goes on where it was. See docs/voice.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

# run as a file, Python finds this folder and not its parent
sys.path[0] = str(Path(__file__).resolve().parents[1])

from checkpoint import CheckpointError  # noqa: E402
from files import INTERRUPTED  # noqa: E402

from train_voice.arguments import count  # noqa: E402
from train_voice.corpus import CorpusError  # noqa: E402
from train_voice.settings import FULL, QUICK, Settings, going_on  # noqa: E402
from train_voice.stage_folder import Busy  # noqa: E402
from train_voice.stages import Run  # noqa: E402
from train_voice.starting_point import StartError, start_of  # noqa: E402
from train_voice.teachers import TeacherError  # noqa: E402
from train_voice.training import Interrupted, StateError  # noqa: E402
from train_voice.work_folder import WrongFolder  # noqa: E402

_FAULTS = (
    Busy,
    CheckpointError,
    CorpusError,
    FloatingPointError,
    OSError,
    StartError,
    StateError,
    TeacherError,
    WrongFolder,
)
"""What needs a sentence, not a traceback."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder for data and results")
    parser.add_argument("--quick", action="store_true", help="prove the chain in some minutes")
    parser.add_argument("--stage", nargs="+", metavar="NAME", help="only these, in this order")
    parser.add_argument("--gpt-steps", type=count, help="train the token model so long instead")
    parser.add_argument(
        "--from", dest="start", type=Path, metavar="CHECKPOINT",
        help="go on from this voice, with the words and sentences that the corpus has now",
    )  # fmt: skip
    options = parser.parse_args(argv)
    settings = _settings(options.quick, _goes_on(options), options.gpt_steps)
    print(f"{settings.name} training in {options.work}: {settings.expected}", flush=True)
    run = Run(options.work, settings, lambda line: print(line, flush=True), options.start)
    names = options.stage or list(run.stages)
    unknown = [name for name in names if name not in run.stages]
    if unknown:
        parser.error(f"no stage {unknown[0]}; there are: {', '.join(run.stages)}")
    try:
        run.run(names)
    except (Interrupted, KeyboardInterrupt) as stop:
        print(
            f"train_voice: interrupted {stop}".rstrip() + "; run it again to go on", file=sys.stderr
        )
        return INTERRUPTED
    except _FAULTS as error:
        print(f"train_voice: {error}", file=sys.stderr)
        return 1
    return 0


def _goes_on(options: argparse.Namespace) -> bool:
    return options.start is not None or start_of(options.work) is not None


def _settings(is_quick: bool, is_going_on: bool, gpt_steps: int | None) -> Settings:
    settings = QUICK if is_quick else FULL
    if is_going_on:
        settings = going_on(settings)
    if gpt_steps is not None:
        schedule = dataclasses.replace(settings.gpt, steps=gpt_steps)
        settings = dataclasses.replace(settings, gpt=schedule)
    return settings


if __name__ == "__main__":
    sys.exit(main())
