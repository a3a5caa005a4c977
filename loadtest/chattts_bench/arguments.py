"""Readers of command line arguments: what is nonsense is refused before a long run begins."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


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
