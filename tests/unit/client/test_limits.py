"""The rate limit: no window has more starts than allowed; the others wait, or are told."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from chattts_client import (
    ChatTTSClient,
    RateLimit,
    RequestCancelledError,
    RequestTimeoutError,
)
from chattts_client import _limits as limits
from chattts_client import _retry as retry
from chattts_client._limits import Limiter
from chattts_client._retry import Patience
from unit.client.fake_answers import BrokenCall, fail, utterance
from unit.client.fake_triton import FakeTriton
from unit.client.twins import TWINS


class Clock:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr(limits, "time", clock)
    return clock


def test_no_window_has_more_starts_than_the_limit(clock: Clock) -> None:
    limiter = Limiter(RateLimit(3, 2.0))
    starts_s = []
    for step in range(20):
        clock.now_s += 0.1 * (step % 4)
        starts_s.append(clock.now_s + limiter.wait_s(None))
    assert starts_s == sorted(starts_s)
    for one, fourth in zip(starts_s, starts_s[3:], strict=False):
        assert fourth - one >= 2.0 - 1e-9


def test_an_idle_limiter_lets_a_burst_start_at_once(clock: Clock) -> None:
    limiter = Limiter(RateLimit(2, 1.0))
    assert [limiter.wait_s(None) for _ in range(4)] == pytest.approx([0, 0, 1, 1])
    clock.now_s += 5
    assert [limiter.wait_s(None) for _ in range(2)] == [0, 0]


def test_a_turn_after_the_deadline_is_refused_and_not_taken(clock: Clock) -> None:
    limiter = Limiter(RateLimit(1, 4.0))
    limiter.wait_s(None)
    clock.now_s += 1
    for _ in range(3):
        with pytest.raises(RequestTimeoutError, match=r"rate limit .* only in 3\.00 s") as caught:
            limiter.wait_s(2.0)
        assert "rate_limit" in caught.value.hint
        assert "text" not in caught.value.hint
    assert limiter.wait_s(None) == pytest.approx(3.0)


def test_a_deadline_that_passes_before_the_turn_names_the_limit(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "time", clock)
    limiter = Limiter(RateLimit(1, 4.0))
    for wait_s, hint in ((0.0, "shorter text"), (4.0, "rate_limit")):
        patience = Patience(5.0, 0, limiter)
        assert patience.turn_s() == pytest.approx(wait_s)
        clock.now_s += 5.0  # the machine was busy
        with pytest.raises(RequestTimeoutError, match="before the request could be sent") as caught:
            patience.left_s()
        assert hint in caught.value.hint
        clock.now_s -= 5.0


@pytest.mark.parametrize("requests", [0, -1, 1.5, True, "3", None])
def test_requests_are_a_whole_number_from_one(requests: int) -> None:
    with pytest.raises(ValueError, match="^requests: "):
        RateLimit(requests, 1.0)


@pytest.mark.parametrize("per_s", [0, -1.0, math.nan, math.inf, "1", True])
def test_the_window_is_a_number_of_seconds(per_s: float) -> None:
    with pytest.raises(ValueError, match="^per_s: "):
        RateLimit(1, per_s)


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_requests_of_a_client_keep_their_distance(
    twin: str, transport: str, fake: FakeTriton, request: pytest.FixtureRequest
) -> None:
    fake.script = lambda inputs, request: iter(utterance(1))
    url = request.getfixturevalue(f"{transport}_url")
    texts = [str(index) for index in range(4)]
    client = TWINS[twin](url, transport, rate_limit=RateLimit(1, 0.1))
    start_s = time.monotonic()
    assert len(list(client.synthesize_many(texts))) == 4
    assert time.monotonic() - start_s >= 0.3


def test_a_retry_takes_a_turn_too(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = fail(BrokenCall("UNAVAILABLE", "full"))
    client = TWINS["sync"](grpc_url, max_retries=5, rate_limit=RateLimit(1, 60.0), timeout_s=20)
    with pytest.raises(RequestTimeoutError, match="rate limit"):
        client.synthesize("hello")
    assert len(fake.requests) == 1


def test_threads_share_the_limit_of_their_client(grpc_url: str, fake: FakeTriton) -> None:
    with ChatTTSClient(grpc_url, rate_limit=RateLimit(2, 60.0), timeout_s=5) as client:

        def ask(index: int) -> bool:
            try:
                client.synthesize(str(index))
            except RequestTimeoutError:
                return False
            return True

        with ThreadPoolExecutor(4) as threads:
            assert sorted(threads.map(ask, range(4))) == [False, False, True, True]
    assert len(fake.requests) == 2


def test_closing_a_stream_that_waits_for_its_turn_wakes_it(grpc_url: str, fake: FakeTriton) -> None:
    with ChatTTSClient(grpc_url, rate_limit=RateLimit(1, 600.0), timeout_s=None) as client:
        client.synthesize("first")
        stream = client.stream("second")
        threading.Timer(0.1, stream.close).start()
        with pytest.raises(RequestCancelledError):
            next(stream)
    assert len(fake.requests) == 1
