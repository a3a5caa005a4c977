"""Keeps a request's final flag apart from what happened on its stream just before.

Server 2.51 frees a gRPC stream whose caller has gone as soon as the final flag arrives, even if the
write of an earlier response has not ended (server issues 7368 and 8034; mended in releases 24.12
and 25.04). Then it crashes, or takes no stream any more while its health stays good. A caller who
leaves on a piece that the last one follows at once meets this now and then; a pause lets the write
end first.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

FINAL_PAUSE_S = 0.05
"""Seconds from a response to the final one, at least: a listener does not notice, since what was
sent before plays longer."""

PAUSE_PER_REQUEST_S = 0.01
"""The pause grows with the requests that run, whose threads keep the server's own from a core."""

LONGEST_PAUSE_S = 0.2
"""No pause is longer."""

GONE_PAUSE_S = 1.0
"""Seconds from seeing that the caller has gone to the final flag, which nobody waits for."""


class FinalPause:
    """The pause before the final response of one request.

    Args:
        clock: Monotonic time in seconds.
        sleep: Waits for so many seconds.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._sent_at: float | None = None

    def has_sent(self) -> None:
        """Take note that a response was sent just now."""
        self._sent_at = self._clock()

    def wait(self, num_running: int) -> None:
        """Wait until the last response is long enough ago; not at all before the first.

        Args:
            num_running: Requests that run now.
        """
        if self._sent_at is None:
            return
        pause = min(max(FINAL_PAUSE_S, num_running * PAUSE_PER_REQUEST_S), LONGEST_PAUSE_S)
        remaining = self._sent_at + pause - self._clock()
        if remaining > 0:
            self._sleep(remaining)


class LateEndings:
    """Ends the requests of callers who have gone, each GONE_PAUSE_S later, in a thread of its own.

    Args:
        clock: Monotonic time in seconds.
        sleep: Waits for so many seconds.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._thread = ThreadPoolExecutor(1, "late-ending")

    def add(self, end: Callable[[], None]) -> None:
        """Call `end` when it is due; what it raises is dropped, as nobody is left to be told."""
        self._thread.submit(self._end_at, self._clock() + GONE_PAUSE_S, end)

    def close(self) -> None:
        """Wait until all requests are ended; no more may come."""
        self._thread.shutdown(wait=True)

    def _end_at(self, due: float, end: Callable[[], None]) -> None:
        remaining = due - self._clock()
        if remaining > 0:
            self._sleep(remaining)
        end()
