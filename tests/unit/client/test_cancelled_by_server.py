"""Calls that somebody else than their task cancels: typed errors, not a cancelled task."""

from __future__ import annotations

import asyncio
import sys

import grpc
import pytest
from chattts_client import (
    AsyncChatTTSClient,
    ChatTTSError,
    RequestCancelledError,
    RequestTimeoutError,
    ServerUnavailableError,
)
from chattts_client._grpc import AsyncGrpcCall, AsyncGrpcTransport
from chattts_client._grpc_messages import call_error, infer_message
from chattts_client._protocol import speech_request
from chattts_client._settings import Endpoint
from unit.client.fake_answers import BrokenCall, fail, silent
from unit.client.fake_triton import FakeTriton
from unit.client.twins import Twin

CANCELLED = BrokenCall("CANCELLED", "the server is going away")


@pytest.mark.parametrize("num_chunks", [0, 1])
def test_a_call_that_the_server_cancels_is_a_typed_error(
    fake: FakeTriton, grpc_twin: Twin, num_chunks: int
) -> None:
    fake.script = fail(CANCELLED, after=num_chunks)
    with pytest.raises(RequestCancelledError, match="going away") as caught:
        grpc_twin.stream("hello")
    assert (caught.value.code, caught.value.request_id) == (
        "CANCELLED",
        fake.requests[0].request_id,
    )


def test_a_cancelled_task_stays_one(fake: FakeTriton, grpc_url: str) -> None:
    async def run() -> None:
        async with AsyncChatTTSClient(grpc_url) as client:
            task = asyncio.create_task(client.synthesize("hello"))
            while not fake.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    fake.script = silent
    asyncio.run(run())


@pytest.mark.parametrize(
    ("left_s", "kind"), [(0.0, RequestTimeoutError), (5.0, ServerUnavailableError)]
)
def test_a_call_that_grpc_could_not_send_is_no_cancelled_task(
    left_s: float, kind: type[ChatTTSError]
) -> None:
    class Unsent:
        """What an asyncio call does that ended before its request was sent."""

        async def read(self) -> None:
            raise asyncio.CancelledError

        def time_remaining(self) -> float:
            return left_s

    async def run() -> None:
        transport = AsyncGrpcTransport(Endpoint("127.0.0.1:1"))
        message = infer_message(speech_request("hello", {}, stream=True))
        await AsyncGrpcCall(Unsent(), message, transport).receive()

    if left_s and sys.version_info < (3, 11):
        pytest.skip("a task does not tell whether it was cancelled")
    with pytest.raises(kind):
        asyncio.run(run())


def test_a_server_that_notices_the_deadline_first_makes_a_timeout() -> None:
    assert isinstance(call_error(_Cancelled(), "1", left_s=0.0), RequestTimeoutError)
    assert isinstance(call_error(_Cancelled(), "1", left_s=5.0), RequestCancelledError)


class _Cancelled:
    """What gRPC raises in a call that the server has cancelled."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.CANCELLED

    def details(self) -> str:
        return "CANCELLED"
