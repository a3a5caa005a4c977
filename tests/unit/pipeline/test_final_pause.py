"""The final response keeps its distance from the one before, and comes late to whoever has gone."""

from __future__ import annotations

import threading

import pytest
from chattts_pipeline.final_pause import (
    FINAL_PAUSE_S,
    GONE_PAUSE_S,
    LONGEST_PAUSE_S,
    PAUSE_PER_REQUEST_S,
    FinalPause,
    LateEndings,
)

TIMEOUT_S = 10.0


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def test_the_only_response_does_not_wait() -> None:
    time = Time()
    FinalPause(time.clock, time.sleep).wait(64)
    assert time.now == 100.0


@pytest.mark.parametrize(("since_last", "waited"), [(0.0, 1.0), (0.6, 0.4), (1.0, 0.0), (9.0, 0.0)])
def test_the_final_response_waits_for_what_is_left_of_the_pause(
    since_last: float, waited: float
) -> None:
    time = Time()
    pause = FinalPause(time.clock, time.sleep)
    time.now -= 7  # an earlier response does not count
    pause.has_sent()
    time.now += 7
    pause.has_sent()
    time.now += since_last * FINAL_PAUSE_S
    asked_at = time.now
    pause.wait(1)
    assert time.now - asked_at == pytest.approx(waited * FINAL_PAUSE_S)


def test_the_pause_grows_with_the_requests_that_run() -> None:
    time = Time()
    pause = FinalPause(time.clock, time.sleep)
    waited = []
    for num_running in (1, 5, 10, 20, 64):
        pause.has_sent()
        asked_at = time.now
        pause.wait(num_running)
        waited.append(time.now - asked_at)
    longer = 10 * PAUSE_PER_REQUEST_S
    expected = [FINAL_PAUSE_S, FINAL_PAUSE_S, longer, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    assert waited == pytest.approx(expected)


def test_late_endings_come_in_order_each_when_it_is_due() -> None:
    time = Time()
    endings = LateEndings(time.clock, time.sleep)
    ended: list[tuple[str, float]] = []
    has_ended = threading.Event()

    def end(name: str) -> None:
        ended.append((name, time.now))
        has_ended.set()

    endings.add(lambda: end("first"))
    assert has_ended.wait(TIMEOUT_S)
    time.now = 200.0
    endings.add(lambda: end("second"))
    endings.close()
    assert ended == [("first", 100.0 + GONE_PAUSE_S), ("second", 200.0 + GONE_PAUSE_S)]


def test_an_ending_that_fails_does_not_keep_the_next_ones() -> None:
    time = Time()
    endings = LateEndings(time.clock, time.sleep)
    ended: list[str] = []

    def fail() -> None:
        raise RuntimeError("the server is gone")

    endings.add(fail)
    endings.add(lambda: ended.append("second"))
    endings.close()
    assert ended == ["second"]
