"""How long and how often one call is tried: its deadline, retries with backoff, the rate limit.

Only errors that say `retryable` are tried again, and only as long as the caller has got nothing
yet; who calls `run` sees to the latter.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception
from tenacity.wait import wait_exponential, wait_random_exponential

from ._exceptions import ChatTTSError, RequestTimeoutError
from ._limits import TURN_HINT, Limiter

FIRST_WAIT_S: Final = 0.5
MAX_WAIT_S: Final = 8.0
"""A retry waits at most the first of these, which doubles with each further one up to the second,
and at least half of it: callers that failed together do not come back together, and all retries
together outlive what a server that starts again takes."""

_BACKOFF = wait_exponential(
    multiplier=FIRST_WAIT_S / 2, max=MAX_WAIT_S / 2
) + wait_random_exponential(multiplier=FIRST_WAIT_S / 2, max=MAX_WAIT_S / 2)

T = TypeVar("T")
Pause = Callable[[float], None]
"""Waits some seconds, or less if the call is closed meanwhile."""
AsyncPause = Callable[[float], Awaitable[None]]
"""The asynchronous twin."""


class Patience:
    """What one call may still spend: time, retries, its turn under the rate limit."""

    def __init__(self, timeout_s: float | None, max_retries: int, limiter: Limiter | None) -> None:
        """Start the clock.

        Args:
            timeout_s: seconds for everything together; None = no limit.
            max_retries: how often the call may be tried again.
            limiter: when requests may start; None = at any time.
        """
        self._end_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._max_retries = max_retries
        self._limiter = limiter
        self._has_waited = False
        """Whether the last try had to wait for its turn."""

    @property
    def is_limited(self) -> bool:
        """Whether a request may have to wait for its turn."""
        return self._limiter is not None

    def left_s(self) -> float | None:
        """Seconds until the deadline, above 0; None = no limit.

        Raises:
            RequestTimeoutError: it has passed.
        """
        if self._end_s is None:
            return None
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            message = "the time limit passed before the request could be sent"
            raise RequestTimeoutError(message, hint=TURN_HINT if self._has_waited else "")
        return left_s

    def turn_s(self) -> float:
        """Take a turn under the rate limit and return the seconds until it.

        Raises:
            RequestTimeoutError: it comes after the deadline.
        """
        left_s = self.left_s()
        turn_s = 0.0 if self._limiter is None else self._limiter.wait_s(left_s)
        self._has_waited = turn_s > 0
        return turn_s

    def run(self, attempt: Callable[[], T], pause: Pause) -> T:
        """Call `attempt` until it returns, fails for good, or patience ends; the last error raises.

        Args:
            attempt: sends the request and waits for what the caller wants.
            pause: waits between two attempts. It must not refer to the call's results: tenacity
                leaves a reference cycle, which would keep them alive for a while.
        """
        try:
            return Retrying(sleep=pause, **self._rules())(attempt)
        except ChatTTSError as error:
            raise _without_cycle(error)  # noqa: B904 # the same error

    async def run_async(self, attempt: Callable[[], Awaitable[T]], pause: AsyncPause) -> T:
        """The asynchronous twin of `run`."""
        try:
            return await AsyncRetrying(sleep=pause, **self._rules())(attempt)
        except ChatTTSError as error:
            raise _without_cycle(error)  # noqa: B904 # the same error

    def _rules(self) -> dict[str, Any]:
        return {
            "retry": retry_if_exception(_is_worth_it),
            "stop": self._is_over,
            "wait": _wait_s,
            "reraise": True,
        }

    def _is_over(self, state: RetryCallState) -> bool:
        if state.attempt_number > self._max_retries:
            return True
        return self._end_s is not None and time.monotonic() + state.upcoming_sleep >= self._end_s


def _without_cycle(error: ChatTTSError) -> ChatTTSError:
    """An error without tenacity's frames, which refer to it and so keep all its frames alive."""
    return error.with_traceback(None)


def _is_worth_it(error: BaseException) -> bool:
    return isinstance(error, ChatTTSError) and error.retryable


def _wait_s(state: RetryCallState) -> float:
    """The server's own hint, if it gave one, and a random time on top."""
    error = state.outcome.exception() if state.outcome else None
    hint_s = error.retry_after_s if isinstance(error, ChatTTSError) else None
    return (hint_s or 0.0) + _BACKOFF(state)
