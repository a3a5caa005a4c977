"""Streams over gRPC, on both twins: order, ends, limits, and what reaches the server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
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
from chattts_client._grpc_messages import call_error
from unit.client.fake_answers import (
    WAIT_S,
    BrokenCall,
    Failure,
    Inputs,
    Outputs,
    Request,
    Script,
    dry_run_answer,
    endless,
    fail,
    outputs,
    silent,
    utterance,
    voices_answer,
)
from unit.client.fake_triton import FakeTriton
from unit.client.twins import TWINS, Twin

NO_SAMPLES = np.zeros(0, dtype=np.float32)


def test_chunks_arrive_in_order_and_the_last_one_is_final(grpc_twin: Twin) -> None:
    chunks, audio = grpc_twin.stream("hello")
    assert [chunk.index for chunk in chunks] == [0, 1, 2]
    assert [chunk.is_final for chunk in chunks] == [False, False, True]
    joined = np.concatenate([chunk.samples for chunk in chunks])
    assert audio.samples.tolist() == joined.tolist()
    assert not audio.samples.flags.writeable


def test_a_whole_utterance_carries_what_the_server_says(grpc_twin: Twin) -> None:
    audio = grpc_twin.synthesize("hello")
    assert (audio.request_id, audio.seed, audio.voice) == ("r1", 7, "en")
    assert (audio.finish_reasons, audio.text_segments) == (("eos",), ("hello",))
    assert (audio.checkpoint, audio.precision, audio.untrained) == ("demo", "int8", False)
    assert audio.latency == "exact"
    assert audio.timings.total_ms == 40
    assert audio.duration_s == 768 / 24_000
    assert 0 < audio.time_to_first_audio_s <= audio.elapsed_s
    assert audio.real_time_factor == audio.elapsed_s / audio.duration_s


def test_synthesize_asks_for_one_response_and_stream_for_many(
    grpc_twin: Twin, fake: FakeTriton
) -> None:
    grpc_twin.synthesize("hello", voice="en", seed=3)
    grpc_twin.stream("hello")
    assert fake.inputs == [
        {"text": "hello", "stream": False, "voice": "en", "seed": 3},
        {"text": "hello", "stream": True},
    ]
    assert {request.model for request in fake.requests} == {"chattts"}
    # NOTE: this header crashes server 2.51.
    assert not any("triton_grpc_error" in request.headers for request in fake.requests)
    assert len({request.request_id for request in fake.requests}) == 2


def test_time_to_first_audio_ignores_empty_chunks(grpc_twin: Twin, fake: FakeTriton) -> None:
    fake.script = lambda inputs, request: iter(
        [outputs(NO_SAMPLES, is_final=False), *utterance(2), outputs(NO_SAMPLES, is_final=True)][:3]
    )
    chunks, audio = grpc_twin.stream("hello")
    assert [len(chunk.samples) for chunk in chunks] == [0, 256, 256]
    assert audio.time_to_first_audio_s < audio.elapsed_s


def test_an_utterance_without_samples_is_an_utterance(grpc_twin: Twin, fake: FakeTriton) -> None:
    fake.script = lambda inputs, request: iter([outputs(NO_SAMPLES, is_final=True)])
    audio = grpc_twin.synthesize("hello")
    assert (audio.duration_s, audio.real_time_factor) == (0.0, None)
    assert audio.time_to_first_audio_s is None


def test_a_message_above_the_usual_limit_of_4_mib_arrives(
    grpc_twin: Twin, fake: FakeTriton
) -> None:
    fake.script = lambda inputs, request: iter(utterance(1, samples_per_chunk=2**21))
    assert len(grpc_twin.synthesize("hello").samples) == 2**21


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("INVALID_ARG", InvalidRequestError),
        ("UNAVAILABLE", ServerUnavailableError),
        ("CANCELLED", RequestCancelledError),
        ("INTERNAL", ServerError),
        ("UNSUPPORTED", ServerError),
        ("", ServerError),
    ],
)
def test_an_error_in_the_stream_becomes_its_exception(
    grpc_twin: Twin, fake: FakeTriton, code: str, kind: type[ChatTTSError]
) -> None:
    fake.script = fail(Failure(code, "top_k: 0 is outside 1 ... 626"))
    with pytest.raises(kind, match="^top_k: 0 is outside") as caught:
        grpc_twin.synthesize("hello")
    assert caught.value.request_id == fake.requests[0].request_id
    assert caught.value.retryable == (kind is ServerUnavailableError)
    if isinstance(caught.value, InvalidRequestError):
        assert (caught.value.field, caught.value.code) == ("top_k", "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("RESOURCE_EXHAUSTED", ServerUnavailableError),
        ("UNAVAILABLE", ServerUnavailableError),
        ("INTERNAL", ServerError),
        ("UNIMPLEMENTED", ProtocolError),
    ],
)
def test_a_broken_call_becomes_its_exception(
    grpc_twin: Twin, fake: FakeTriton, code: str, kind: type[ChatTTSError]
) -> None:
    fake.script = fail(BrokenCall(code, "out of order"))
    with pytest.raises(kind, match="out of order") as caught:
        grpc_twin.synthesize("hello")
    assert caught.value.request_id == fake.requests[0].request_id
    assert caught.value.__cause__ is not None


def test_an_error_after_audio_is_not_worth_another_try(grpc_twin: Twin, fake: FakeTriton) -> None:
    fake.script = fail(Failure("UNAVAILABLE", "shutting down"), after=2)
    with pytest.raises(ServerUnavailableError) as caught:
        grpc_twin.stream("hello")
    assert not caught.value.retryable


def test_no_server_is_an_error_that_is_worth_another_try() -> None:
    for twin in TWINS.values():
        with pytest.raises(ServerUnavailableError, match="[Cc]onnection refused") as caught:
            twin("127.0.0.1:1").synthesize("hello")
        assert caught.value.retryable


def test_an_http_port_is_named(http_url: str) -> None:
    for twin in TWINS.values():
        with pytest.raises(ProtocolError, match="^not a gRPC port: ") as caught:
            twin(http_url).synthesize("hello")
        assert "8001" in caught.value.hint


@pytest.mark.parametrize("script", [silent, endless])
def test_a_time_limit_ends_the_call_on_both_sides(
    grpc_twin: Twin, fake: FakeTriton, script: Script
) -> None:
    fake.script = script
    with pytest.raises(RequestTimeoutError, match="^no complete answer within") as caught:
        grpc_twin.synthesize("hello", timeout_s=0.1)
    assert caught.value.code == "DEADLINE_EXCEEDED"
    assert not fake.requests or fake.requests[0].cancelled.wait(WAIT_S)


class LocalError(grpc.RpcError):  # type: ignore[misc] # untyped base
    """What an asyncio call raises that has ended before its request was sent."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.INTERNAL

    def details(self) -> str:
        return "Internal error from Core"


@pytest.mark.parametrize(
    ("left_s", "kind"),
    [(0.0, RequestTimeoutError), (5.0, ServerUnavailableError), (None, ServerUnavailableError)],
)
def test_a_call_that_ends_while_it_is_sent_is_no_fault_of_the_server(
    left_s: float | None, kind: type[ChatTTSError]
) -> None:
    assert type(call_error(LocalError(), "r1", left_s)) is kind


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan")])
def test_a_time_limit_must_be_positive(grpc_twin: Twin, timeout_s: float) -> None:
    with pytest.raises(InvalidRequestError, match="timeout_s: .* None means no limit") as caught:
        grpc_twin.synthesize("hello", timeout_s=timeout_s)
    assert caught.value.field == "timeout_s"


def test_no_time_limit_must_be_written(grpc_twin: Twin) -> None:
    assert ChatTTSClient().timeout_s == AsyncChatTTSClient().timeout_s == 60.0
    assert grpc_twin.synthesize("hello", timeout_s=None).seed == 7


def test_a_stream_without_a_final_response_is_a_protocol_error(
    grpc_twin: Twin, fake: FakeTriton
) -> None:
    fake.script = lambda inputs, request: iter(utterance(3)[:2])
    with pytest.raises(ProtocolError, match="without a final response; .* after 0.02 s") as caught:
        grpc_twin.synthesize("hello")
    assert caught.value.request_id == fake.requests[0].request_id


def test_a_response_after_the_final_one_is_a_protocol_error(
    grpc_twin: Twin, fake: FakeTriton
) -> None:
    fake.script = lambda inputs, request: iter([*utterance(2), *utterance(1)])
    with pytest.raises(ProtocolError, match="after the final one"):
        grpc_twin.stream("hello")


def test_a_malformed_response_stops_the_request(grpc_twin: Twin, fake: FakeTriton) -> None:
    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        yield {"audio": NO_SAMPLES}
        request.cancelled.wait(WAIT_S)

    fake.script = script
    with pytest.raises(ProtocolError, match="lacks the output 'metadata'"):
        grpc_twin.stream("hello")
    assert fake.requests[0].cancelled.wait(WAIT_S)


def test_a_request_can_name_the_version(grpc_twin: Twin, fake: FakeTriton) -> None:
    grpc_twin.synthesize("hello", model_version="2")
    grpc_twin.stream("hello")
    fake.script = lambda inputs, request: iter([voices_answer()])
    grpc_twin.voices(model_version="3")
    assert [request.version for request in fake.requests] == ["2", "", "3"]


def test_voices_are_listed(grpc_twin: Twin, fake: FakeTriton) -> None:
    fake.script = lambda inputs, request: iter([voices_answer()])
    assert [voice.name for voice in grpc_twin.voices()] == ["en"]
    assert fake.inputs == [{"text": "", "options": '{"list_voices": true}'}]


def test_a_text_is_normalized(grpc_twin: Twin, fake: FakeTriton) -> None:
    fake.script = lambda inputs, request: iter([dry_run_answer()])
    assert grpc_twin.normalize("at 3☃").spoken == "at three "
    assert fake.inputs == [{"text": "at 3☃", "stream": False, "options": '{"dry_run": true}'}]


@pytest.mark.parametrize("count", [0, 2])
def test_the_list_of_voices_is_one_response(grpc_twin: Twin, fake: FakeTriton, count: int) -> None:
    fake.script = lambda inputs, request: iter([voices_answer()] * count)
    with pytest.raises(ProtocolError, match="not exactly one response"):
        grpc_twin.voices()


@pytest.mark.parametrize("is_ready", [True, False])
def test_readiness_is_that_of_the_model(grpc_twin: Twin, fake: FakeTriton, is_ready: bool) -> None:
    fake.is_ready = is_ready
    assert grpc_twin.health().ready == is_ready


def test_without_a_server_nothing_is_ready() -> None:
    assert not any(twin("127.0.0.1:1").health().ready for twin in TWINS.values())


def test_one_client_serves_many_threads(grpc_url: str) -> None:
    with ChatTTSClient(grpc_url) as client, ThreadPoolExecutor(8) as threads:
        audios = list(threads.map(lambda index: client.synthesize(f"text {index}"), range(24)))
    assert {len(audio.samples) for audio in audios} == {768}


def test_one_async_client_serves_many_tasks(grpc_url: str) -> None:
    async def run() -> list[int]:
        async with AsyncChatTTSClient(grpc_url) as client:
            audios = await asyncio.gather(*(client.synthesize(f"text {i}") for i in range(24)))
            return [len(audio.samples) for audio in audios]

    assert asyncio.run(run()) == [768] * 24
