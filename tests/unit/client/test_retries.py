"""Retries: of what may succeed, before anything was handed over, and never beyond the deadline."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from chattts_client import (
    AsyncChatTTSClient,
    ChatTTSClient,
    ChatTTSError,
    InvalidRequestError,
    RequestCancelledError,
    ServerError,
    ServerUnavailableError,
)
from chattts_client import _retry as retry
from chattts_client._retry import Patience
from unit.client.fake_answers import (
    BrokenCall,
    Failure,
    Inputs,
    Outputs,
    Request,
    Script,
    dry_run_answer,
    fail,
    utterance,
    voices_answer,
)
from unit.client.fake_triton import FakeTriton
from unit.client.twins import TWINS, Twin

FULL = Failure("UNAVAILABLE", "64 requests are running; try again later")
HTTP_FULL = Failure("503", "64 requests are running; try again later")
MakeTwin = Callable[..., Twin]


def fail_first(count: int, failure: Failure, answer: Script) -> Script:
    """A script that fails `count` times before it answers."""
    left = [failure] * count

    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        if left:
            raise left.pop()
        yield from answer(inputs, request)

    return script


def good(inputs: Inputs, request: Request) -> Iterator[Outputs]:
    yield from utterance()


def whole(inputs: Inputs, request: Request) -> Iterator[Outputs]:
    yield from utterance(1)


BACKOFF: Any = retry._BACKOFF  # as it is without the fixture below


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_BACKOFF", lambda state: 0.01)


@pytest.fixture(params=TWINS)
def make_twin(request: pytest.FixtureRequest, grpc_url: str) -> MakeTwin:
    return lambda **settings: TWINS[request.param](grpc_url, **settings)


@pytest.mark.parametrize("failure", [FULL, BrokenCall("UNAVAILABLE", "connection reset")])
def test_a_full_server_is_asked_again(
    make_twin: MakeTwin, fake: FakeTriton, failure: Failure
) -> None:
    fake.script = fail_first(2, failure, good)
    audio = make_twin().synthesize("hello", seed=7)
    assert len(audio.samples) == 3 * 256
    assert [one["seed"] for one in fake.inputs] == [7, 7, 7]
    assert len({one.request_id for one in fake.requests}) == 1


def test_a_stream_is_begun_again_before_its_first_chunk(
    make_twin: MakeTwin, fake: FakeTriton
) -> None:
    fake.script = fail_first(1, FULL, good)
    chunks, audio = make_twin().stream("hello")
    assert [chunk.index for chunk in chunks] == [0, 1, 2]
    assert len(audio.samples) == 3 * 256


@pytest.mark.parametrize("name", TWINS)
def test_http_requests_are_tried_again_too(name: str, http_url: str, fake: FakeTriton) -> None:
    fake.script = fail_first(2, HTTP_FULL, whole)
    assert len(TWINS[name](http_url, "http").synthesize("hello").samples) == 256
    assert len(fake.requests) == 3


def test_questions_are_tried_again_too(make_twin: MakeTwin, fake: FakeTriton) -> None:
    for method, answer in (("voices", voices_answer), ("normalize", dry_run_answer)):
        fake.script = fail_first(2, FULL, lambda inputs, request, make=answer: iter([make()]))
        arguments = ["3"] if method == "normalize" else []
        assert getattr(make_twin(), method)(*arguments)


@pytest.mark.parametrize("max_retries", [0, 1, 3])
def test_the_last_error_is_raised_after_max_retries(
    make_twin: MakeTwin, fake: FakeTriton, max_retries: int
) -> None:
    fake.script = fail(FULL)
    with pytest.raises(ServerUnavailableError, match="64 requests") as raised:
        make_twin(max_retries=max_retries).synthesize("hello")
    assert len(fake.requests) == max_retries + 1
    assert raised.value.retryable
    assert raised.value.request_id == fake.requests[0].request_id


def test_nothing_is_tried_again_after_the_first_chunk(
    make_twin: MakeTwin, fake: FakeTriton
) -> None:
    fake.script = fail(FULL, after=1)
    with pytest.raises(ServerUnavailableError) as raised:
        make_twin().stream("hello")
    assert len(fake.requests) == 1
    assert not raised.value.retryable


@pytest.mark.parametrize(
    ("failure", "hint"),
    [
        (BrokenCall("UNAVAILABLE", "Socket closed"), "again"),
        (Failure("INTERNAL", "no blocks"), "log"),
        (BrokenCall("DEADLINE_EXCEEDED", "Deadline Exceeded"), "timeout_s"),
    ],
)
def test_a_stream_that_breaks_says_how_much_came(
    make_twin: MakeTwin, fake: FakeTriton, failure: Failure, hint: str
) -> None:
    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        yield from utterance(3, 12_000)[:2]
        raise failure

    fake.script = script
    with pytest.raises(ChatTTSError, match="; the speech is cut after 1.00 s of audio$") as raised:
        make_twin().stream("hello")
    assert not raised.value.retryable
    assert hint in raised.value.hint
    assert "port" not in raised.value.hint


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Failure("INVALID_ARG", "top_k: 0 is outside 1 ... 626"), InvalidRequestError),
        (Failure("INTERNAL", "a bug"), ServerError),
        (Failure("CANCELLED", "cancelled"), RequestCancelledError),
    ],
)
def test_what_cannot_succeed_later_is_asked_once(
    make_twin: MakeTwin, fake: FakeTriton, failure: Failure, kind: type[ChatTTSError]
) -> None:
    fake.script = fail(failure)
    with pytest.raises(kind):
        make_twin().synthesize("hello")
    assert len(fake.requests) == 1


def test_no_retry_begins_that_would_end_after_the_deadline(
    make_twin: MakeTwin, fake: FakeTriton, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "_BACKOFF", lambda state: 60.0)
    fake.script = fail(FULL)
    start_s = time.monotonic()
    with pytest.raises(ServerUnavailableError):
        make_twin(timeout_s=30.0).synthesize("hello")
    assert time.monotonic() - start_s < 30.0
    assert len(fake.requests) == 1


def test_the_hint_of_the_server_is_waited_for(make_twin: MakeTwin, fake: FakeTriton) -> None:
    hint = Failure("UNAVAILABLE", "64 requests are running; try again in 1 s")
    fake.script = fail_first(1, hint, good)
    start_s = time.monotonic()
    make_twin().synthesize("hello")
    assert time.monotonic() - start_s >= 1.0


def test_each_try_gets_what_is_left_of_the_time(
    grpc_url: str, fake: FakeTriton, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    with ChatTTSClient(grpc_url, timeout_s=20.0) as client:
        start = client._transport.start

        def record(request: Any, timeout_s: float) -> Any:
            given.append(timeout_s)
            return start(request, timeout_s)

        monkeypatch.setattr(client._transport, "start", record)
        fake.script = fail_first(2, FULL, good)
        client.synthesize("hello")
    assert given == sorted(given, reverse=True)
    assert len(set(given)) == 3
    assert given[0] <= 20.0
    assert given[2] > 0


def test_closing_a_stream_that_waits_for_its_retry_wakes_it(
    grpc_url: str, fake: FakeTriton, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "_BACKOFF", lambda state: 600.0)
    fake.script = fail(FULL)
    with ChatTTSClient(grpc_url, timeout_s=None) as client, client.stream("hello") as stream:
        threading.Timer(0.1, stream.close).start()
        with pytest.raises(RequestCancelledError):
            next(stream)
    assert len(fake.requests) == 1


def test_closing_the_client_ends_what_waits_for_its_retry(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = fail(FULL)
    client = ChatTTSClient(grpc_url, timeout_s=None, max_retries=1000)
    threading.Timer(0.1, client.close).start()
    with pytest.raises(RequestCancelledError):
        client.synthesize("hello")

    async def run() -> None:
        async with AsyncChatTTSClient(grpc_url, timeout_s=None, max_retries=1000) as other:
            asyncio.get_running_loop().call_later(0.1, asyncio.ensure_future, other.close())
            await other.synthesize("hello")

    with pytest.raises(RequestCancelledError):
        asyncio.run(run())


def test_waits_are_random_and_grow_up_to_a_limit() -> None:
    class State:
        outcome = None

        def __init__(self, attempt_number: int) -> None:
            self.attempt_number = attempt_number

    for number, most_s in ((1, 0.5), (2, 1.0), (3, 2.0), (5, 8.0), (40, 8.0)):
        waits_s = [BACKOFF(State(number)) for _ in range(300)]
        assert most_s / 2 <= min(waits_s) < max(waits_s) <= most_s


def test_other_exceptions_pass_at_once() -> None:
    tries = []

    def attempt() -> None:
        tries.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Patience(None, 5, None).run(attempt, lambda seconds: None)
    assert len(tries) == 1
