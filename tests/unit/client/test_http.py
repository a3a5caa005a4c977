"""Whole utterances over HTTP, on both twins."""

from __future__ import annotations

import asyncio
import builtins
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from chattts_client import (
    AsyncChatTTSClient,
    ChatTTSClient,
    ChatTTSError,
    InvalidRequestError,
    ProtocolError,
    RequestCancelledError,
    RequestTimeoutError,
    ServerError,
    ServerUnavailableError,
)
from unit.client.fake_answers import (
    Failure,
    Inputs,
    Outputs,
    Request,
    fail,
    utterance,
    voices_answer,
)
from unit.client.fake_triton import FakeTriton
from unit.client.twins import TWINS, Twin


@pytest.fixture(autouse=True)
def _one_response(fake: FakeTriton) -> None:
    fake.script = lambda inputs, request: iter(utterance(1, samples_per_chunk=768))


def test_a_whole_utterance_arrives_with_its_summary(http_twin: Twin, fake: FakeTriton) -> None:
    audio = http_twin.synthesize("你好", voice="en", timeout_s=5)
    assert (len(audio.samples), audio.seed, audio.voice) == (768, 7, "en")
    assert (audio.samples[0], audio.samples[-1]) == (-1.0, 1.0)
    assert not audio.samples.flags.writeable
    assert fake.requests[0].model == "chattts_unary"
    assert fake.inputs == [{"text": "你好", "stream": False, "voice": "en", "deadline_ms": 6000}]


def test_without_time_limit_no_deadline_is_sent(http_twin: Twin, fake: FakeTriton) -> None:
    http_twin.synthesize("hello", timeout_s=None)
    assert fake.inputs == [{"text": "hello", "stream": False}]


def test_a_request_can_name_the_version(http_twin: Twin, fake: FakeTriton) -> None:
    http_twin.synthesize("hello", model_version="2")
    http_twin.synthesize("hello")
    assert [request.version for request in fake.requests] == ["2", ""]


def test_streaming_is_refused_with_the_way_out(http_twin: Twin, fake: FakeTriton) -> None:
    with pytest.raises(InvalidRequestError, match="use 'grpc' to stream") as caught:
        http_twin.stream("hello")
    assert caught.value.field == "transport"
    assert not fake.requests


def test_voices_are_listed(http_twin: Twin, fake: FakeTriton) -> None:
    fake.script = lambda inputs, request: iter([voices_answer()])
    assert [voice.name for voice in http_twin.voices()] == ["en"]


@pytest.mark.parametrize("is_ready", [True, False])
def test_readiness_is_that_of_the_model(http_twin: Twin, fake: FakeTriton, is_ready: bool) -> None:
    fake.is_ready = is_ready
    assert http_twin.health().ready == is_ready


@pytest.mark.parametrize(
    ("status", "message", "kind", "code"),
    [
        ("400", "seed: -1 is outside 0 ... 9", InvalidRequestError, "INVALID_ARGUMENT"),
        ("400", "the request was cancelled", RequestCancelledError, "CANCELLED"),
        ("404", "unknown model", ServerError, "NOT_FOUND"),
        ("500", "failure", ServerError, "INTERNAL"),
        ("503", "the queue is full", ServerUnavailableError, "UNAVAILABLE"),
    ],
)
def test_a_status_becomes_its_error(
    http_twin: Twin,
    fake: FakeTriton,
    status: str,
    message: str,
    kind: type[ChatTTSError],
    code: str,
) -> None:
    fake.script = fail(Failure(status, message))
    with pytest.raises(kind, match=message) as caught:
        http_twin.synthesize("hello")
    assert caught.value.code == code
    assert caught.value.request_id == fake.requests[0].request_id


def test_no_server_is_an_error_that_is_worth_another_try() -> None:
    for twin in TWINS.values():
        with pytest.raises(ServerUnavailableError) as caught:
            twin("127.0.0.1:1", "http").synthesize("hello")
        assert caught.value.retryable
        assert not twin("127.0.0.1:1", "http").health().ready


def test_a_time_limit_ends_the_call(http_twin: Twin, fake: FakeTriton) -> None:
    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        request.cancelled.wait(1.0)
        return iter(utterance(1))

    fake.script = script
    with pytest.raises(RequestTimeoutError, match="^no complete answer within"):
        http_twin.synthesize("hello", timeout_s=0.1)


def test_a_grpc_port_is_named(grpc_url: str) -> None:
    for twin in TWINS.values():
        with pytest.raises(ProtocolError, match="^not an HTTP port of Triton: ") as caught:
            twin(grpc_url, "http").synthesize("hello", timeout_s=5)
        assert "8000" in caught.value.hint
        assert len(str(caught.value)) < 100


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b"<html>no</html>"),
        (404, b'{"error": "Not Found"}'),  # Triton's metrics
        (405, b'{"error": "Method Not Allowed"}'),
        (405, b"\xff"),
    ],
)
def test_another_service_is_no_fault_of_the_server(
    http_twin: Twin, monkeypatch: pytest.MonkeyPatch, status: int, body: bytes
) -> None:
    def answer(handler: Any) -> None:
        handler.rfile.read(int(handler.headers["Content-Length"]))
        handler._reply(status, body)

    monkeypatch.setattr("unit.client.fake_triton._HttpHandler.do_POST", answer)
    with pytest.raises(ProtocolError, match=f"^not an HTTP port of Triton: .*{status}") as caught:
        http_twin.synthesize("hello")
    assert "8000" in caught.value.hint
    assert len(caught.value.request_id) == 32


def test_one_client_serves_many_threads(http_url: str) -> None:
    with ChatTTSClient(http_url, transport="http") as client, ThreadPoolExecutor(4) as threads:
        audios = list(threads.map(lambda index: client.synthesize(f"text {index}"), range(12)))
    assert {len(audio.samples) for audio in audios} == {768}


def test_requests_one_after_another_share_a_connection(http_url: str, fake: FakeTriton) -> None:
    async def speak() -> None:
        async with AsyncChatTTSClient(http_url, transport="http") as client:
            for _ in range(3):
                await client.synthesize("hello")

    with ChatTTSClient(http_url, transport="http") as client:
        for _ in range(3):
            client.synthesize("hello")
        assert client.health().ready
    assert fake.num_connections == 1
    asyncio.run(speak())
    assert fake.num_connections == 2


def test_a_connection_that_the_server_has_closed_is_replaced(
    http_url: str, fake: FakeTriton
) -> None:
    fake.hangs_up = True
    with ChatTTSClient(http_url, transport="http", max_retries=0) as client:
        for _ in range(3):
            assert client.synthesize("hello").seed == 7
    assert (fake.num_connections, len(fake.requests)) == (3, 3)


@pytest.mark.parametrize("error", [ImportError, RuntimeError])
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    real_import = builtins.__import__

    def refuse(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "tritonclient.http":
            raise error("no http support")
        return real_import(name, *arguments, **named)

    monkeypatch.delitem(sys.modules, "chattts_client._http", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse)
    for kind in (ChatTTSClient, AsyncChatTTSClient):
        with pytest.raises(ImportError, match=r"pip install '\.\[http\]'"):
            kind(transport="http")
