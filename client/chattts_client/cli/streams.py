"""Standard streams that are closed, full, or cannot hold a character: no traceback, no mix-up."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO, cast


def prepare() -> None:
    """Give every closed stream a stand-in, and print what standard output cannot encode as escapes.

    A closed standard output fails when it is written to, as a full one does; a closed standard
    input when it is read; a closed standard error is silent. Without a stand-in the next file or
    socket would get the stream's number, and `print` to a stream that is None goes elsewhere.
    Without Python's buffer (PYTHONUNBUFFERED) a write that stops half-way would be taken for whole.
    """
    if sys.stdin is None:
        sys.stdin = _stand_in(os.O_WRONLY, "r")
    if sys.stdout is None:
        sys.stdout = _stand_in(os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _stand_in(os.O_WRONLY, "w")
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout is sys.__stdout__ and isinstance(sys.stdout.buffer, io.RawIOBase):
            whole = io.BufferedWriter(sys.stdout.buffer)
            sys.stdout = io.TextIOWrapper(whole, sys.stdout.encoding, line_buffering=True)
        sys.stdout.reconfigure(errors="backslashreplace")


def note(message: str) -> None:
    """Say something beside the result, in one line; a full standard error is silent."""
    with contextlib.suppress(OSError):
        print(" ".join(message.split()), file=sys.stderr, flush=True)


def discard_output() -> None:
    """Throw away what standard output would not take, now and when the interpreter ends."""
    _send_nowhere(sys.stdout)


def finish(status: int) -> int:
    """Write what is still buffered and return the status of the command.

    Raises:
        OSError: a command that was done could not write its result: standard output is closed,
            full, or its reader has left. Of one that failed, the error has been said already.
    """
    try:
        sys.stderr.flush()
    except OSError:
        _send_nowhere(sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:
        if not status:
            raise
        discard_output()
    return status


def _stand_in(flags: int, mode: str) -> TextIO:
    # this takes the lowest number that is free: that of the closed stream
    nowhere = os.open(os.devnull, flags)
    return cast(TextIO, os.fdopen(nowhere, mode, encoding="utf-8", closefd=False))


def _send_nowhere(stream: TextIO) -> None:
    with contextlib.suppress(OSError):  # a stream without a number has nothing to lose
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
