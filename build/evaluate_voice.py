"""Evaluate a voice on sentences that it never met, and print one line of JSON.

    python build/evaluate_voice.py checkpoints/NAME
    python build/evaluate_voice.py checkpoints/NAME --server http://localhost:8000 --set second

English: words that a recognizer hears right. Mandarin: sentences whose nearest recording of the
teacher is their own. Both: whether speech ends by itself, how long it is beside the teacher's, and
what the samples look like. Needs the extra `train` and the packages of
build/train_voice/apt-packages.txt.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from artifacts import WORDS_FILE
from checkpoint import CheckpointError
from train_voice.arguments import count
from train_voice.corpus import words_of
from train_voice.evaluation import evaluate, resynthesize
from train_voice.held_out import (
    HELD_OUT_FILE,
    HeldOut,
    first_set,
    made_of,
    second_ear,
    second_set,
    thinned,
)
from train_voice.recognizer import DICTIONARY_FILE, EVALUATION_FOLDER, MODEL_FILE, Ear
from train_voice.speaking import (
    CheckpointSpeaker,
    ServerSpeaker,
    SpeakerError,
    TeacherSpeaker,
    voices_of,
)
from train_voice.teachers import TeacherError


class Unfit(ValueError):
    """A checkpoint without what the evaluation needs, or nothing to ask."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    options = _parser().parse_args(argv)
    try:
        result = _result(options)
    except (CheckpointError, SpeakerError, TeacherError, Unfit, OSError) as error:
        print(f"evaluate_voice: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result, ensure_ascii=False))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", type=Path, help="folder of the checkpoint")
    speaker = parser.add_mutually_exclusive_group()
    speaker.add_argument("--server", metavar="URL", help="ask this server, not this process")
    speaker.add_argument(
        "--teacher", action="store_true", help="ask the teachers: the best figures"
    )
    parser.add_argument(
        "--set",
        choices=("first", "second"),
        default="first",
        help="what its corpus kept back, or a set of other templates (default first)",
    )
    parser.add_argument(
        "--ear", type=Path, metavar="OTHER", help="first set and recognizer of another checkpoint"
    )
    parser.add_argument(
        "--words", type=Path, metavar="OTHER", help="only sentences of this checkpoint's words"
    )
    parser.add_argument("--sentences", type=count, help="per language, at most (default all)")
    parser.add_argument(
        "--recordings", type=count, default=1, help="of the teacher per sentence (default 1)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (default 1)")
    return parser


def _result(options: argparse.Namespace) -> dict[str, Any]:
    source: Path = options.ear or options.checkpoint
    folder = source / EVALUATION_FOLDER
    _need(folder / MODEL_FILE, folder / DICTIONARY_FILE)
    held_out = _held_out(options, source)
    with second_ear(folder) if options.set == "second" else nullcontext(Ear(folder)) as ear:
        return _evaluated(options, ear, held_out)


def _evaluated(
    options: argparse.Namespace, ear: Ear, held_out: Sequence[HeldOut]
) -> dict[str, Any]:
    root: Path = options.checkpoint
    if options.teacher:
        return evaluate(TeacherSpeaker(), ear, held_out, recordings=options.recordings)
    if options.server:
        server = ServerSpeaker(options.server, voices_of(root), options.seed)
        return evaluate(server, ear, held_out, recordings=options.recordings)
    voice = CheckpointSpeaker(root, options.seed)
    return evaluate(voice, ear, held_out, partial(resynthesize, voice.voice), options.recordings)


def _held_out(options: argparse.Namespace, source: Path) -> list[HeldOut]:
    """Return what is said.

    Raises:
        Unfit: a file is missing, or no sentence is left.
    """
    if options.set == "first":
        _need(source / EVALUATION_FOLDER / HELD_OUT_FILE)
    items = second_set() if options.set == "second" else first_set(source)
    if options.words:
        path = options.words / WORDS_FILE
        _need(path)
        lines = path.read_text(encoding="utf-8").splitlines()
        items = made_of(items, {word for line in lines for word in words_of(line)})
    items = thinned(items, options.sentences or len(items))
    if not items:
        raise Unfit(f"no sentence is made of the words of {options.words}")
    return items


def _need(*paths: Path) -> None:
    for path in paths:
        if not path.is_file():
            raise Unfit(f"{path} is missing: is that a checkpoint of build/train_voice?")


if __name__ == "__main__":
    sys.exit(main())
