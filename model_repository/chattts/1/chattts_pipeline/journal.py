"""Journal: the one thread that counts and logs what has ended, so that no request waits for it."""

from __future__ import annotations

import queue
import threading
import time
import traceback
from collections.abc import Callable, Sequence

from .outcome import Outcome

TICK_S = 0.5
"""Seconds between two ticks: shorter than the pause between any two scrapes."""


class Journal:
    """Hands outcomes on, in order.

    Args:
        takers: Each is given every outcome.
        tick: Called every TICK_S, and at the end.
        on_failure: Told the traceback of whatever a taker raises; the others go on.
    """

    def __init__(
        self,
        takers: Sequence[Callable[[Outcome], None]],
        tick: Callable[[], None],
        on_failure: Callable[[str], None],
    ) -> None:
        self._takers = takers
        self._tick = tick
        self._on_failure = on_failure
        self._outcomes: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def put(self, outcome: Outcome) -> None:
        """Take over what a request came to."""
        self._outcomes.put(outcome)

    def close(self) -> None:
        """Hand on what is left; no more may come."""
        self._outcomes.put(None)
        self._thread.join()

    def _run(self) -> None:
        next_tick_s = time.monotonic() + TICK_S
        while True:
            now_s = time.monotonic()
            if now_s >= next_tick_s:
                next_tick_s = now_s + TICK_S
                self._guarded(self._tick)
            try:
                outcome = self._outcomes.get(timeout=max(0.0, next_tick_s - now_s))
            except queue.Empty:
                continue
            if outcome is None:
                self._guarded(self._tick)
                return
            for take in self._takers:
                self._guarded(take, outcome)

    def _guarded(self, work: Callable[..., None], *arguments: Outcome) -> None:
        try:
            work(*arguments)
        except Exception:
            self._on_failure(traceback.format_exc())
