"""Is a tritonserver well? Asks through its front door.

The server's own health endpoints do not tell in release 2.51: they stay at 200 when the process of
a Python model has died or hangs, and callers of that model wait for ever.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from http_exchange import NOT_FOUND, OK, Answer, Exchange

HEALTH_PATH = "/v2/models/chattts/generate"
HEALTH_BODY = json.dumps({"text": "", "options": json.dumps({"health": True})})
"""A request to the front model that asks the models behind it; status 200 only if all answered."""
READY_PATH = "/v2/health/ready"

PROBE_INTERVAL_S = 5.0
PROBE_LIMIT_S = 10.0
"""A busy server may be slow: the vocoder answers after the calls that came before."""
SICK_AFTER_S = 15.0
"""Seconds since the last check with a good answer began."""
START_INTERVAL_S = 0.1
START_LIMIT_S = 900.0
"""Seconds until the first good answer: large weights and compiling for a GPU take minutes."""


class Probe:
    """Asks the front model how it is, or the server if it does not serve that model.

    Args:
        address: IPv4 address and port of the HTTP endpoint.
        clock: monotonic time in seconds.
    """

    def __init__(
        self, address: tuple[str, int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.has_been_well = False
        """Whether there has been a good answer."""
        self._address = address
        self._clock = clock
        self._asked_s = self._last_good_s = self._next_s = clock()
        self._exchange: Exchange | None = None
        self._is_deep = True

    @property
    def exchanges(self) -> list[Exchange]:
        """What to wait for besides the time."""
        return [self._exchange] if self._exchange else []

    def step(self) -> str:
        """Ask, or take the answer, if it is time to; return why the server is sick, or nothing."""
        if self._exchange is None:
            if self._clock() < self._next_s:
                return ""
            self._asked_s = self._clock()
            self._ask(is_deep=True)
        assert self._exchange is not None
        answer = self._exchange.step()
        if answer is None:
            return ""
        self._exchange = None
        if answer.status == NOT_FOUND and self._is_deep:
            self._ask(is_deep=False)
            return ""
        return self._judge(answer)

    def _ask(self, is_deep: bool) -> None:
        self._is_deep = is_deep
        path, body = (HEALTH_PATH, HEALTH_BODY) if is_deep else (READY_PATH, "")
        self._exchange = Exchange(self._address, path, PROBE_LIMIT_S, body, self._clock)

    def _judge(self, answer: Answer) -> str:
        is_good = answer.status == OK
        if is_good:
            self.has_been_well, self._last_good_s = True, self._asked_s
        interval_s = PROBE_INTERVAL_S if self.has_been_well else START_INTERVAL_S
        self._next_s = self._asked_s + interval_s
        limit_s = SICK_AFTER_S if self.has_been_well else START_LIMIT_S
        silent_s = self._clock() - self._last_good_s
        if is_good or silent_s < limit_s:
            return ""
        return f"not well for {silent_s:.0f} s: {answer}"
