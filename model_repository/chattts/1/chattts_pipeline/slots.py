"""Slots: places for requests that are worked on at once."""

from __future__ import annotations

import threading


class Slots:
    """So many places. Any thread may take and free them.

    Args:
        number: Requests at once.
    """

    def __init__(self, number: int) -> None:
        self._free = threading.BoundedSemaphore(number)

    def take(self) -> Slot | None:
        """Return a place, or None where all are taken."""
        return Slot(self._free) if self._free.acquire(blocking=False) else None


class Slot:
    """One request's place; to be freed, however often.

    Args:
        free: Counts the free places.
    """

    def __init__(self, free: threading.BoundedSemaphore) -> None:
        self._free = free
        self._was_freed = threading.Lock()

    def free(self) -> None:
        """Give the place to the next request; only the first time counts."""
        if self._was_freed.acquire(blocking=False):
            self._free.release()
