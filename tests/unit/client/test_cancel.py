"""Whoever stops listening stops the work on the server, in whatever way it is done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from chattts_client import AsyncChatTTSClient, ChatTTSClient, RequestCancelledError
from unit.client.fake_answers import WAIT_S, Inputs, Outputs, Request, endless, utterance
from unit.client.fake_triton import FakeTriton
from unit.client.twins import Twin


def test_leaving_a_stream_stops_the_request_and_cancels_no_call(
    grpc_twin: Twin, fake: FakeTriton
) -> None:
    was_stopped: list[bool] = []

    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        yield from endless(inputs, request)
        was_stopped.append(request.is_stopped)

    fake.script = script
    assert grpc_twin.stream_one("hello").index == 0
    assert was_stopped == [True]


def test_a_server_that_does_not_stop_loses_the_call(
    grpc_twin: Twin, fake: FakeTriton, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chattts_client._grpc.STOP_LIMIT_S", 0.1)
    monkeypatch.setattr(fake, "_stop", lambda stop_key: None)
    fake.script = endless
    assert grpc_twin.stream_one("hello").index == 0
    assert fake.requests[0].cancelled.wait(WAIT_S)
    assert not fake.requests[0].is_stopped


def test_closing_from_another_thread_ends_the_iteration(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = endless
    with ChatTTSClient(grpc_url) as client, client.stream("hello") as stream:
        next(stream)
        threading.Timer(0.05, stream.close).start()
        with pytest.raises(RequestCancelledError):
            stream.result()


def test_closing_from_another_task_is_not_a_cancelled_task(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = endless

    async def run() -> None:
        async with AsyncChatTTSClient(grpc_url) as client:
            stream = client.stream("hello")
            await anext(stream)
            reading = asyncio.create_task(stream.result())
            await asyncio.sleep(0)  # let the task reach its wait
            await stream.close()
            with pytest.raises(RequestCancelledError, match="closed"):
                await reading

    asyncio.run(run())


def test_cancelling_a_task_cancels_on_the_server(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = endless

    async def run() -> None:
        async with AsyncChatTTSClient(grpc_url) as client:
            task = asyncio.create_task(client.synthesize("hello"))
            while not fake.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(asyncio.wait_for(run(), WAIT_S))
    assert fake.requests[0].cancelled.wait(WAIT_S)


def test_a_dropped_stream_is_cancelled(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = endless
    with ChatTTSClient(grpc_url) as client:
        for _ in client.stream("hello"):
            break
        assert fake.requests[0].cancelled.wait(WAIT_S)


def test_a_dropped_async_stream_is_cancelled(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = endless

    async def run() -> None:
        async with AsyncChatTTSClient(grpc_url) as client:
            async for _ in client.stream("hello"):
                break
            assert await asyncio.to_thread(fake.requests[0].cancelled.wait, WAIT_S)

    asyncio.run(run())


def test_a_closed_stream_has_no_more_chunks_and_no_result(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = endless
    with ChatTTSClient(grpc_url) as client:
        stream = client.stream("hello")
        next(stream)
        stream.close()
        assert list(stream) == []
        with pytest.raises(RequestCancelledError, match="closed before its end, after 0.01 s"):
            stream.result()


def test_leaving_after_the_final_chunk_keeps_the_result(grpc_url: str, fake: FakeTriton) -> None:
    with ChatTTSClient(grpc_url) as client:
        with client.stream("hello") as stream:
            while not next(stream).is_final:
                pass
        assert stream.result().seed == 7


def test_leaving_on_the_final_chunk_leaves_no_open_call(grpc_twin: Twin, fake: FakeTriton) -> None:
    was_cancelled: list[bool] = []

    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        yield from utterance(1)
        was_cancelled.append(request.cancelled.wait(0.1))  # the server takes a moment to end it

    fake.script = script
    assert grpc_twin.stream_one("hello").is_final
    assert was_cancelled == [False]
