"""Which process something was made in: connections and threads do not survive a fork."""

from __future__ import annotations

import os


class Process:
    """The process that made this object."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def is_left(self) -> bool:
        """Whether this is the copy that a fork has made: what it holds belongs to the parent."""
        return os.getpid() != self._pid

    def check(self, what: str) -> None:
        """Refuse to go on in the child of a fork, where a call would hang or break another's.

        Raises:
            RuntimeError: this is a copy; the message begins with `what`.
        """
        if self.is_left:
            message = f"{what} was made before a fork; make a new one in this process"
            raise RuntimeError(message)
