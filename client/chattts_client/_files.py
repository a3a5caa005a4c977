"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Final

PARTIAL_SUFFIX: Final = ".partial"
"""Ends the hidden name of a file that is being written."""


@contextmanager
def naming(path: str | PathLike[str]) -> Iterator[None]:
    """Errors of the operating system that name no file name `path`."""
    try:
        yield
    except OSError as error:
        if error.errno and error.filename is None:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """A new file, open for writing, that takes the place of `path` when the block ends well.

    Otherwise nothing has changed. A link is followed; permissions of a file that is there are kept.

    Raises:
        OSError: the file cannot be written; it names `path`.
    """
    target = Path(os.path.realpath(path))
    partial = target.with_name(f".{uuid.uuid4().hex}{PARTIAL_SUFFIX}")
    try:
        with open(partial, "xb") as file:
            yield file
        with contextlib.suppress(FileNotFoundError):
            shutil.copymode(target, partial)
        os.replace(partial, target)
    except BaseException as error:
        with contextlib.suppress(OSError):  # not there, or in a place where nothing can be removed
            partial.unlink()
        if isinstance(error, OSError) and error.filename == str(partial):
            error.filename = None
        with naming(path):
            raise
