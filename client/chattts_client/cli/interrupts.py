"""What Ctrl-C does: it ends the process on the spot, but raises where a command has to clean up."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

EXIT_INTERRUPTED = 130


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Nothing is to be cleaned up here; a library that is half loaded might eat an exception."""
    with handled_by(_end, instead_of=signal.default_int_handler):
        yield


@contextmanager
def raising() -> Iterator[None]:
    """KeyboardInterrupt, inside of `ending_at_once`."""
    with handled_by(signal.default_int_handler, instead_of=_end):
        yield


@contextmanager
def handled_by(handler: Callable[..., Any], instead_of: Callable[..., Any]) -> Iterator[None]:
    """Let Ctrl-C do something else; not if it is ignored, or somebody else's, or in a thread."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not instead_of:
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is handler:
            signal.signal(signal.SIGINT, instead_of)


def ignore() -> None:
    """Nothing is left to be interrupted: the process ends, with the status that it has."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(*_: object) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"interrupted\n")  # `print` may have been interrupted
    os._exit(EXIT_INTERRUPTED)
