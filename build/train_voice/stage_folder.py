"""The folder of one stage: one process at a time, and what its result was made of."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from files import write_bytes

LOCK_FILE = ".lock"
BASIS_FILE = "made-of.txt"


class Busy(RuntimeError):
    """Another process works in the same folder."""


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, which is made if need be; the system takes it back from whoever dies.

    Raises:
        Busy: another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK_FILE).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy(f"{folder}: another process works here") from error
        yield


def basis_of(folder: Path) -> str:
    """Return what a stage's result was made of, "" if that was never noted."""
    path = folder / BASIS_FILE
    return path.read_text(encoding="utf-8") if path.exists() else ""


def note_basis(folder: Path, basis: str) -> None:
    """Note what a stage's result is made of."""
    write_bytes(folder / BASIS_FILE, basis.encode())


def set_aside_unless_of(result: Path, basis: str, say: Callable[[str], None]) -> None:
    """Keep a stage's saved file only if it was made of `basis`, and note the basis.

    Another one is renamed, not removed: it may be hours of work.

    Raises:
        Busy: another process is at work in its folder.
    """
    with alone_in(result.parent):
        before = basis_of(result.parent)
        if result.exists() and before != basis:
            old = result.with_name(f"{result.name}.old")
            result.rename(old)
            say(f"{result} was made of {before or 'something else'}: set aside as {old.name}")
        note_basis(result.parent, basis)
