"""How requests end, and the tally of them."""

from __future__ import annotations

import enum
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from chattts_client import ServerUnavailableError
from tritonclient.utils import InferenceServerException

MAX_KEPT = 20
"""Unexplained failures that are kept word for word; all are counted."""


HINT = "try again"
"""What the server says when it is full, as opposed to gone."""


class Outcome(enum.Enum):
    """One way to end; all but the last are what was asked for, or explained by the server."""

    OK = "ok"
    """The whole answer, the same bits as the reference."""
    LEFT = "left"
    """This side went away; what had come until then was right."""
    LATE = "late"
    """The deadline in the request ended it; what came was right."""
    REFUSED = "refused"
    """A malformed request got the error that it must get."""
    FULL = "full"
    """UNAVAILABLE with a hint when to come back: the server had as much as it takes."""
    UNEXPLAINED = "unexplained"
    """Anything else."""


class WrongAnswerError(Exception):
    """An answer that differs from what it must be."""


@dataclass(frozen=True, slots=True)
class Unexplained:
    """One failure that nothing explains."""

    kind: str
    """Kind of request."""
    what: str
    """The error, or what was wrong with the answer."""


def explain(error: Exception) -> Outcome:
    """Return what an error of a good request comes to."""
    is_unavailable = isinstance(error, ServerUnavailableError) or (
        isinstance(error, InferenceServerException) and "UNAVAILABLE" in str(error)
    )
    return Outcome.FULL if is_unavailable and HINT in str(error) else Outcome.UNEXPLAINED


class Tally:
    """Counts outcomes by kind of request; safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[Outcome]] = {}
        self._unexplained: list[Unexplained] = []

    def add(self, kind: str, outcome: Outcome) -> None:
        """Count one request."""
        with self._lock:
            self._counts.setdefault(kind, Counter())[outcome] += 1

    def add_error(self, kind: str, error: Exception) -> None:
        """Count a request that raised, and keep the error if nothing explains it."""
        outcome = explain(error)
        self.add(kind, outcome)
        if outcome is Outcome.UNEXPLAINED:
            with self._lock:
                if len(self._unexplained) < MAX_KEPT:
                    what = f"{type(error).__name__}: {error}"
                    self._unexplained.append(Unexplained(kind, what))

    @property
    def unexplained(self) -> tuple[Unexplained, ...]:
        """The first unexplained failures."""
        with self._lock:
            return tuple(self._unexplained)

    def by_outcome(self) -> Mapping[Outcome, int]:
        """Return how many requests ended in each way."""
        with self._lock:
            return sum(self._counts.values(), Counter())

    def count(self, kind: str, outcome: Outcome) -> int:
        """Return how many requests of a kind ended in this way."""
        with self._lock:
            return self._counts.get(kind, Counter())[outcome]

    def by_kind(self) -> dict[str, dict[str, int]]:
        """Return the counts by kind, then by the outcome's name; ready for JSON."""
        with self._lock:
            return {
                kind: {outcome.value: counts[outcome] for outcome in Outcome if counts[outcome]}
                for kind, counts in sorted(self._counts.items())
            }
