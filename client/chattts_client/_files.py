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
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(partial)):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
