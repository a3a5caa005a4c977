"""Readers of command line arguments: what is nonsense is refused before a long run begins."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

DEMO = Path(__file__).resolve().parents[2] / "checkpoints" / "demo"
WORK = Path.home() / ".cache" / "chattts-bench"
_BUILT = Path(__file__).resolve().parents[2] / "model_repository"


def number(low: int, high: int) -> Callable[[str], int]:
    """Return a reader of whole numbers in low ... high."""

    def read(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is outside {low} ... {high}")
        return int(text)

    return read


def repository(text: str) -> Path:
    """Return the folder of a built model repository."""
    path = Path(text).resolve()
    if not (path / "chattts_gpt" / "1" / "weights" / "gpt_config.json").is_file():
        raise argparse.ArgumentTypeError(
            f"{text} is no built repository; build/build_repository.py makes one"
        )
    return path


def checkpoint(text: str) -> Path:
    """Return the folder of a checkpoint."""
    path = Path(text).resolve()
    if not (path / "asset").is_dir():
        raise argparse.ArgumentTypeError(f"{text} is no checkpoint: it has no folder asset")
    return path


def folder(text: str) -> Path:
    """Return a folder that exists now, so that a long run does not fail at its end."""
    path = Path(text).resolve()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error.strerror}") from None
    return path


def add_served(parser: argparse.ArgumentParser) -> None:
    """Add --repository, or --checkpoint and --precision to build one; by default the demo's."""
    what = parser.add_mutually_exclusive_group()
    add_repository(what)
    what.add_argument(
        "--checkpoint",
        type=checkpoint,
        default=str(DEMO),
        metavar="DIR",
        help="default: %(default)s",
    )
    parser.add_argument("--precision", choices=("int8", "int8-weights", "fp32"), default="int8")


def add_repository(parser: argparse._ActionsContainer) -> None:
    """Add --repository, where one is built without it."""
    parser.add_argument(
        "--repository", type=repository, metavar="DIR", help="serve this instead of building"
    )


def add_built(parser: argparse.ArgumentParser) -> None:
    """Add --repository, where none is built."""
    parser.add_argument(
        "--repository",
        type=repository,
        default=str(_BUILT),
        metavar="DIR",
        help="built; %(default)s",
    )


def add_work(parser: argparse.ArgumentParser, kept: str = "what is built and kept") -> None:
    """Add --work, the folder for what one run leaves to the next."""
    parser.add_argument(
        "--work",
        type=folder,
        default=str(WORK),
        metavar="DIR",
        help=f"for {kept}; default: %(default)s",
    )
