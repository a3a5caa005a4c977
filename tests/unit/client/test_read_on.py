"""Streams that are read on after they have failed, and by two readers at once."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from chattts_client import (
    AsyncChatTTSClient,
    ChatTTSClient,
    ChatTTSError,
    ProtocolError,
    RequestTimeoutError,
    ServerError,
    SpeechStream,
)
from chattts_client._answers import Reader
from unit.client.fake_answers import (
    WAIT_S,
    Failure,
    Inputs,
    Outputs,
    Request,
    Script,
    fail,
    silent,
    utterance,
)
from unit.client.fake_triton import FakeTriton

FAILURE = Failure("INTERNAL", "no blocks")
READS: tuple[Callable[[SpeechStream], object], ...] = (list, next, SpeechStream.result)


def one_too_many(inputs: Inputs, request: Request) -> Iterator[Outputs]:
    yield from utterance(1)
    yield from utterance(1)


FAILURES = pytest.mark.parametrize(
    ("script", "kind"),
    [
        (fail(FAILURE), ServerError),
        (fail(FAILURE, after=2), ServerError),
        (lambda inputs, request: iter(utterance(3)[:1]), ProtocolError),
        (one_too_many, ProtocolError),
        (silent, RequestTimeoutError),
    ],
)


def described(error: ChatTTSError) -> tuple[object, ...]:
    return type(error), str(error), vars(error)


def assert_the_same(errors: list[ChatTTSError], kind: type[ChatTTSError], fake: FakeTriton) -> None:
    first = errors[0]
    assert type(first) is kind
    assert first.request_id == fake.requests[0].request_id
    assert [described(error) for error in errors] == [described(first)] * len(errors)
    assert len({id(error) for error in errors}) == len(errors)


@FAILURES
def test_a_failed_stream_raises_its_error_again(
    grpc_url: str, fake: FakeTriton, script: Script, kind: type[ChatTTSError]
) -> None:
    fake.script = script
    errors = []
    with ChatTTSClient(grpc_url, timeout_s=0.3) as client, client.stream("hello") as stream:
        for read in READS * 2:
            with pytest.raises(ChatTTSError) as caught:
                read(stream)
            errors.append(caught.value)
    assert_the_same(errors, kind, fake)


@FAILURES
def test_a_failed_stream_raises_its_error_again_in_a_task(
    grpc_url: str, fake: FakeTriton, script: Script, kind: type[ChatTTSError]
) -> None:
    fake.script = script
    errors = []

    async def run() -> None:
        async with AsyncChatTTSClient(grpc_url, timeout_s=0.3) as client:
            stream = client.stream("hello")
            for read in (stream.result, stream.__anext__, stream.result):
                with pytest.raises(ChatTTSError) as caught:
                    await read()
                errors.append(caught.value)

    asyncio.run(run())
    assert_the_same(errors, kind, fake)


def test_a_failed_stream_goes_with_its_last_reference(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = fail(FAILURE, after=1)
    with ChatTTSClient(grpc_url) as client:
        stream = client.stream("hello")
        gc.collect()
        gc.disable()
        try:
            for _ in range(2):
                with contextlib.suppress(ServerError):
                    stream.result()
            held = weakref.ref(stream)
            del stream
            assert held() is None
        finally:
            gc.enable()


def test_a_stream_that_another_thread_reads_says_so(
    grpc_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_read, may_go_on = threading.Event(), threading.Event()
    with ChatTTSClient(grpc_url) as client, client.stream("hello") as stream:
        assert next(stream).index == 0
        receive = stream._call.receive  # type: ignore[union-attr] # there is one

        def held() -> Reader | None:
            is_read.set()
            may_go_on.wait(WAIT_S)
            return receive()

        monkeypatch.setattr(stream._call, "receive", held)
        with ThreadPoolExecutor(1) as threads:
            indices = threads.submit(lambda: [chunk.index for chunk in stream])
            assert is_read.wait(WAIT_S)
            for read in READS:
                with pytest.raises(RuntimeError, match="^a stream is read by one thread at a time"):
                    read(stream)
            may_go_on.set()
        assert indices.result() == [1, 2]  # it has lost nothing
        assert stream.result().seed == 7


def test_a_stream_that_another_task_reads_says_so(grpc_url: str, fake: FakeTriton) -> None:
    async def run() -> None:
        async with AsyncChatTTSClient(grpc_url) as client:
            stream = client.stream("hello")
            reading = asyncio.create_task(stream.result())
            await asyncio.sleep(0)  # let it reach its wait
            with pytest.raises(RuntimeError, match="^a stream is read by one task at a time"):
                await anext(stream)
            assert (await reading).seed == 7

    asyncio.run(run())
