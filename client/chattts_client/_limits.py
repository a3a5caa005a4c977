"""How often requests may start: the rate limit that one client keeps by itself.

A library was not taken: those that serve threads and event loops alike sleep inside, where closing
a stream cannot wake them. Here a request is given its moment, and whoever asked waits.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Final

from ._exceptions import RequestTimeoutError

TURN_HINT: Final = (
    "Allow more requests with rate_limit, or more time with timeout_s: the server was not asked."
)
"""What to do about a time limit that passed while a request waited for its turn."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `requests` start in any `per_s` seconds; those beyond wait for their turn."""

    requests: int
    """Requests, at least 1; a retry is one more."""
    per_s: float
    """Seconds, above 0."""

    def __post_init__(self) -> None:
        is_whole = isinstance(self.requests, int) and not isinstance(self.requests, bool)
        if not is_whole or self.requests < 1:
            raise ValueError(f"requests: {self.requests!r} is not a whole number from 1")
        is_number = isinstance(self.per_s, (int, float)) and not isinstance(self.per_s, bool)
        if not is_number or not 0 < self.per_s < math.inf:
            raise ValueError(f"per_s: {self.per_s!r} is no number of seconds above 0")


class Limiter:
    """Gives requests their moments, in the order they ask; safe for use by several threads."""

    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        self._starts_s: deque[float] = deque(maxlen=limit.requests)
        self._lock = threading.Lock()

    def wait_s(self, patience_s: float | None) -> float:
        """Take the next moment and return the seconds until it.

        A moment that was taken is spent, also by a caller who leaves before it has come.

        Args:
            patience_s: seconds above 0 that the caller can wait; None = no limit.

        Raises:
            RequestTimeoutError: the moment is later than that; none was taken.
        """
        with self._lock:
            now_s = start_s = time.monotonic()
            if len(self._starts_s) == self._limit.requests:
                start_s = max(now_s, self._starts_s[0] + self._limit.per_s)
            wait_s = start_s - now_s
            if patience_s is not None and wait_s >= patience_s:
                message = f"the rate limit of this client lets it start only in {wait_s:.2f} s"
                raise RequestTimeoutError(message, hint=TURN_HINT)
            self._starts_s.append(start_s)
        return wait_s
