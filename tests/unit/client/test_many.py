"""Many utterances from one call: ordered, bounded, stopped early, errors raised or in place."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from chattts_client import (
    AsyncChatTTSClient,
    Audio,
    ChatTTSClient,
    ChatTTSError,
    InvalidRequestError,
    ServerError,
    SpeechOptions,
)
from unit.client.fake_answers import WAIT_S, Failure, Inputs, Outputs, Request, endless, utterance
from unit.client.fake_triton import FakeTriton
from unit.client.twins import TWINS, Twin

MakeTwin = Callable[..., Twin]


@pytest.fixture(params=TWINS)
def twin(request: pytest.FixtureRequest, grpc_url: str) -> Twin:
    return TWINS[request.param](grpc_url, max_retries=0)


def numbered(inputs: Inputs, request: Request) -> Iterator[Outputs]:
    """Speaks as many chunks as the text says, the longer ones later."""
    count = int(inputs["text"])
    if count == 0:
        raise Failure("INTERNAL", "zero")
    time.sleep(0.01 * count)
    yield from utterance(count)


def lengths(audios: Iterator[Audio | ChatTTSError]) -> list[int]:
    return [len(one.samples) // 256 if isinstance(one, Audio) else 0 for one in audios]


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def test_results_come_in_the_order_of_the_texts(twin: Twin, fake: FakeTriton) -> None:
    fake.script = numbered
    texts = [str(1 + (7 * index) % 9) for index in range(30)]
    assert lengths(twin.synthesize_many(iter(texts), concurrency=5)) == [int(one) for one in texts]


@pytest.mark.parametrize("name", TWINS)
def test_http_speaks_many_too(name: str, http_url: str, fake: FakeTriton) -> None:
    fake.script = lambda inputs, request: iter(utterance(1, len(inputs["text"])))
    audios = list(TWINS[name](http_url, "http").synthesize_many(["a", "bb", "ccc"]))
    assert [len(one.samples) for one in audios if isinstance(one, Audio)] == [1, 2, 3]


def test_no_texts_make_no_utterances(twin: Twin, fake: FakeTriton) -> None:
    assert list(twin.synthesize_many([])) == []
    assert fake.requests == []


def test_options_of_an_item_come_before_those_of_the_call(twin: Twin, fake: FakeTriton) -> None:
    own: SpeechOptions = {"seed": 2, "voice": "zh"}
    list(twin.synthesize_many(["1", ("2", own)], concurrency=1, seed=1, top_k=5))
    asked = [(one["seed"], one["top_k"], one.get("voice")) for one in fake.inputs]
    assert asked == [(1, 5, None), (2, 5, "zh")]


def test_never_more_than_concurrency_run_at_once(twin: Twin, fake: FakeTriton) -> None:
    running, most = 0, 0
    lock = threading.Lock()

    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        yield from utterance(1)

    fake.script = script
    assert len(list(twin.synthesize_many(map(str, range(12)), concurrency=3))) == 12
    assert most == 3


def test_texts_are_read_only_a_little_ahead(twin: Twin) -> None:
    read = 0

    def texts() -> Iterator[str]:
        nonlocal read
        while True:  # without end
            read += 1
            yield "hello"

    audios = twin.synthesize_many(texts(), concurrency=2)
    for taken in range(1, 6):
        next(audios)
        assert read <= taken + 2 * 2
    audios.close()  # type: ignore[attr-defined] # a generator


def test_progress_counts_all_that_ended_in_the_callers_thread(twin: Twin, fake: FakeTriton) -> None:
    fake.script = numbered
    seen: list[tuple[int, int]] = []

    def on_progress(count: int) -> None:
        seen.append((count, threading.get_ident()))

    texts = ["5", "1", "0", "1", "2", "1"]
    audios = twin.synthesize_many(texts, concurrency=2, on_progress=on_progress, return_errors=True)
    assert lengths(audios) == [int(text) for text in texts]
    counts = [count for count, _ in seen]
    assert counts == sorted(set(counts))
    assert counts[-1] == 6
    assert {ident for _, ident in seen} == {threading.get_ident()}


def test_an_error_is_raised_in_its_turn_and_begins_nothing_more(
    twin: Twin, fake: FakeTriton
) -> None:
    fake.script = numbered
    texts = ["20", "20", "20", "0", *["1"] * 50]  # the fourth fails before the first has ended
    audios = twin.synthesize_many(texts, concurrency=4)
    for _ in range(3):
        assert len(next(audios).samples) == 20 * 256  # type: ignore[union-attr]
        time.sleep(0.02)  # what would begin now begins
    with pytest.raises(ServerError, match="zero"):
        next(audios)
    assert list(audios) == []
    assert len(fake.requests) <= 2 * 4


def test_errors_take_the_place_of_their_utterances(twin: Twin, fake: FakeTriton) -> None:
    fake.script = numbered
    texts: list[Any] = ["1", "0", ("2", {"seed": -1}), 7, "3"]
    found = list(twin.synthesize_many(texts, return_errors=True))
    kinds = [type(one) for one in found]
    assert kinds == [Audio, ServerError, InvalidRequestError, InvalidRequestError, Audio]
    fields = [one.field for one in found if isinstance(one, InvalidRequestError)]
    assert fields == ["seed", "items"]


def numbers() -> AsyncIterator[str]:
    """Texts that cannot be had without a loop."""

    async def generate() -> AsyncGenerator[str, None]:
        yield "1"

    return generate()


async def call(url: str, **arguments: Any) -> None:
    """Begin, and no more."""
    async with AsyncChatTTSClient(url) as client:
        client.synthesize_many(**arguments)


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("concurrency", {"items": ["1"], "concurrency": 0}),
        ("concurrency", {"items": ["1"], "concurrency": 2.0}),
        ("items", {"items": "one text"}),
        ("items", {"items": b"one text"}),
        ("items", {"items": 7}),
        ("on_progress", {"items": ["1"], "on_progress": 7}),
        ("seed", {"items": ["1"], "seed": -1}),
        ("options", {"items": ["1"], "options": "trim"}),
        ("timeout_s", {"items": ["1"], "timeout_s": 0}),
    ],
)
def test_a_wrong_argument_raises_before_the_iteration(
    grpc_url: str, field: str, arguments: dict[str, Any]
) -> None:
    with ChatTTSClient(grpc_url) as client, pytest.raises(InvalidRequestError) as raised:
        client.synthesize_many(**arguments)
    assert raised.value.field == field
    with pytest.raises(InvalidRequestError) as raised:
        asyncio.run(call(grpc_url, **arguments))
    assert raised.value.field == field


def test_an_unknown_option_raises_before_the_iteration(grpc_url: str) -> None:
    arguments: dict[str, Any] = {"items": ["1"], "pitch": 2}
    with ChatTTSClient(grpc_url) as client, pytest.raises(TypeError, match="pitch"):
        client.synthesize_many(**arguments)
    with pytest.raises(TypeError, match="pitch"):
        asyncio.run(call(grpc_url, **arguments))


def test_an_asynchronous_iterable_is_for_the_other_client(grpc_url: str) -> None:
    items: Any = numbers()
    with ChatTTSClient(grpc_url) as client, pytest.raises(InvalidRequestError, match="Async"):
        client.synthesize_many(items)


def test_leaving_early_stops_the_rest_on_the_server(twin: Twin, fake: FakeTriton) -> None:
    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        yield from utterance(1) if inputs["text"] == "short" else endless(inputs, request)

    fake.script = script
    audios = twin.synthesize_many(["short", *["long"] * 20], concurrency=4)
    next(audios)
    until(lambda: len(fake.requests) >= 4)
    audios.close()  # type: ignore[attr-defined] # a generator
    assert len(fake.requests) <= 5
    assert all(one.cancelled.wait(WAIT_S) for one in fake.requests[1:])
    until(lambda: not [one for one in threading.enumerate() if "chattts" in one.name])


def test_leaving_early_stops_the_rest_while_the_client_lives(
    grpc_url: str, fake: FakeTriton
) -> None:
    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        yield from utterance(1) if inputs["text"] == "short" else endless(inputs, request)

    fake.script = script
    with ChatTTSClient(grpc_url, timeout_s=None) as client:
        audios = client.synthesize_many(["short", *["long"] * 8], concurrency=3)
        next(audios)
        until(lambda: len(fake.requests) >= 3)
        audios.close()
        assert all(one.cancelled.wait(WAIT_S / 2) for one in fake.requests[1:])
        until(lambda: not [one for one in threading.enumerate() if "chattts" in one.name])


def test_cancelling_the_task_stops_all_on_the_server(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = endless

    async def run() -> None:
        async with AsyncChatTTSClient(grpc_url) as client:
            audios = client.synthesize_many(["long"] * 5, concurrency=3)
            async with contextlib.aclosing(audios):
                await anext(audios)

    async def cancel() -> None:
        task = asyncio.ensure_future(run())
        while len(fake.requests) < 3:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert len(fake.requests) == 3
    assert all(one.cancelled.wait(WAIT_S) for one in fake.requests)


def test_a_progress_callback_that_fails_ends_all(twin: Twin, fake: FakeTriton) -> None:
    def fail(count: int) -> None:
        raise LookupError("no bar")

    with pytest.raises(LookupError, match="no bar"):
        list(twin.synthesize_many(["1"] * 30, concurrency=2, on_progress=fail))
    assert len(fake.requests) <= 4
