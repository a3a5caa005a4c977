"""Keeps finished calls to other models alive until Triton itself has let go of them."""

import itertools
from typing import Protocol


class Sender(Protocol):
    """A response sender that has not sent its final flag."""

    def is_cancelled(self) -> bool:
        """Ask Triton whether the caller has gone."""


class FinishedCalls:
    """Holds each finished decoupled BLS call until it is safe to drop.

    Triton's stub forgets a finished call in a thread of its own, without Python's lock. If that
    were the last reference, it would free the arrays of the responses there and corrupt the heap
    (seen as random crashes of the stub in server 2.51; later sources do the same). A look for
    cancellation goes through the same queue, in order, so what had finished before a look began
    is safe to drop after it. Calls that finish when no caller is left wait for the next request.
    """

    def __init__(self) -> None:
        # By number, not by id(): looks overlap, and while one is under way another may drop a call
        # whose address the next call then takes.
        self._calls: dict[int, object] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: object) -> None:
        """Hold a call that has given its last response."""
        self._calls[next(self._numbers)] = call

    def is_cancelled(self, sender: Sender) -> bool:
        """Look for cancellation, and drop what had finished before."""
        finished = list(self._calls)
        if sender.is_cancelled():
            return True  # perhaps remembered, without asking Triton
        for number in finished:
            self._calls.pop(number, None)
        return False

    def clear(self) -> None:
        """Drop all calls, when no more requests come."""
        self._calls.clear()
