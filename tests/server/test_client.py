"""The client against real servers: streams, errors, cancellation, HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from chattts_client import (
    AsyncChatTTSClient,
    Audio,
    ChatTTSClient,
    InvalidRequestError,
    ProtocolError,
    RequestTimeoutError,
    ServerUnavailableError,
    SpeechOptions,
)
from conftest import DEMO_VOICES
from launcher import EmbeddedServer

TEXT = "One. Two."
SHORT: SpeechOptions = {"seed": 7, "max_new_tokens": 60}
LONG: SpeechOptions = {"seed": 7, "max_new_tokens": 2048, "min_new_tokens": 2000}
WAIT_S = 30.0


@pytest.fixture
def client(tiny_server: EmbeddedServer) -> Iterator[ChatTTSClient]:
    with ChatTTSClient(tiny_server.grpc_url) as connection:
        yield connection


@pytest.fixture
def http_client(tiny_server: EmbeddedServer) -> Iterator[ChatTTSClient]:
    with ChatTTSClient(tiny_server.http_url, transport="http") as connection:
        yield connection


def assert_same_speech(one: Audio, other: Audio) -> None:
    np.testing.assert_array_equal(one.samples, other.samples)
    assert (one.seed, one.finish_reasons) == (other.seed, other.finish_reasons)


def test_streamed_chunks_come_in_order_with_one_final_marker(client: ChatTTSClient) -> None:
    with client.stream(TEXT, **SHORT) as stream:
        chunks = list(stream)
        audio = stream.result()
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.is_final for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    segments = [chunk.segment_index for chunk in chunks]
    assert segments == sorted(segments)
    assert len(audio.finish_reasons) == len(audio.text_segments) == chunks[0].num_segments
    assert len(audio.samples) > 0
    assert audio.request_id == stream.request_id
    assert audio.timings.audio_s == pytest.approx(audio.duration_s, abs=0.001)


def test_all_ways_to_ask_give_the_same_samples(
    client: ChatTTSClient, http_client: ChatTTSClient, tiny_server: EmbeddedServer
) -> None:
    async def ask() -> Audio:
        async with AsyncChatTTSClient(tiny_server.grpc_url) as other:
            return await other.synthesize(TEXT, **SHORT)

    async def ask_over_http() -> Audio:
        async with AsyncChatTTSClient(tiny_server.http_url, transport="http") as other:
            return await other.synthesize(TEXT, **SHORT)

    audio = client.synthesize(TEXT, **SHORT)
    with client.stream(TEXT, **SHORT) as stream:
        assert_same_speech(stream.result(), audio)
    assert_same_speech(asyncio.run(ask()), audio)
    assert_same_speech(http_client.synthesize(TEXT, **SHORT), audio)
    assert_same_speech(asyncio.run(ask_over_http()), audio)


def test_a_drawn_seed_is_returned_and_repeats_the_speech(client: ChatTTSClient) -> None:
    first = client.synthesize(TEXT, max_new_tokens=40)
    assert_same_speech(client.synthesize(TEXT, max_new_tokens=40, seed=first.seed), first)
    assert client.synthesize(TEXT, max_new_tokens=40).seed != first.seed


def test_many_threads_and_tasks_share_one_connection(
    client: ChatTTSClient, tiny_server: EmbeddedServer
) -> None:
    async def ask_many() -> list[Audio]:
        async with AsyncChatTTSClient(tiny_server.grpc_url) as other:
            return await asyncio.gather(*(other.synthesize(TEXT, **SHORT) for _ in range(12)))

    expected = client.synthesize(TEXT, **SHORT)
    with ThreadPoolExecutor(8) as threads:
        audios = list(threads.map(lambda _: client.synthesize(TEXT, **SHORT), range(12)))
    for audio in [*audios, *asyncio.run(ask_many())]:
        assert_same_speech(audio, expected)


def test_hundreds_of_concurrent_requests_leave_the_server_standing(
    tiny_server: EmbeddedServer,
) -> None:
    # Server 2.51 frees finished BLS calls without the interpreter's lock: unless chattts keeps them
    # a little longer, its process crashes within a few hundred requests, and all calls hang.
    async def ask_many() -> list[Audio]:
        async with AsyncChatTTSClient(tiny_server.grpc_url, timeout_s=WAIT_S) as client:
            return await asyncio.gather(*(client.synthesize(TEXT, **SHORT) for _ in range(12)))

    for _ in range(30):
        assert len({len(audio.samples) for audio in asyncio.run(ask_many())}) == 1


def test_errors_beside_good_requests_leave_the_server_standing(client: ChatTTSClient) -> None:
    def ask(index: int) -> str:
        try:
            return client.synthesize(TEXT, seed=7, max_new_tokens=30, top_k=index % 2).voice
        except InvalidRequestError as error:
            return str(error.field)

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(ask, range(1000)))
    assert answers == ["top_k", ""] * 500


BAD_OPTIONS: list[tuple[str, SpeechOptions]] = [
    ("voice", {"voice": "nobody"}),
    ("temperature", {"temperature": 3.0}),
    ("temperature", {"temperature": float("nan")}),
    ("top_p", {"top_p": 0.0}),
    ("top_k", {"top_k": 0}),
    ("max_new_tokens", {"max_new_tokens": 10**9}),
    ("priority", {"priority": 9}),
    ("options", {"options": {"volume": 11}}),
]


@pytest.mark.parametrize(("field", "options"), BAD_OPTIONS)
def test_a_bad_option_is_one_typed_error_on_both_transports(
    client: ChatTTSClient, http_client: ChatTTSClient, field: str, options: SpeechOptions
) -> None:
    errors = []
    for connection in (client, http_client):
        with pytest.raises(InvalidRequestError) as caught:
            connection.synthesize(TEXT, **options)
        errors.append(caught.value)
    assert [error.field for error in errors] == [field, field]
    assert str(errors[0]) == str(errors[1])
    assert [error.code for error in errors] == ["INVALID_ARGUMENT"] * 2


@pytest.mark.parametrize("text", ["", "   ", "x" * 6000])
def test_a_bad_text_is_refused(client: ChatTTSClient, text: str) -> None:
    with pytest.raises(InvalidRequestError, match="^text: ") as caught:
        client.synthesize(text)
    assert caught.value.field == "text"
    assert caught.value.request_id


def test_an_unknown_voice_says_how_to_list_them(client: ChatTTSClient) -> None:
    with pytest.raises(InvalidRequestError, match=r'options=\{"list_voices": true\}'):
        client.synthesize(TEXT, voice="nobody")


def test_a_time_limit_ends_the_call_and_the_server_keeps_serving(
    client: ChatTTSClient, http_client: ChatTTSClient
) -> None:
    for connection in (client, http_client):
        with pytest.raises(RequestTimeoutError):
            connection.synthesize(TEXT, timeout_s=0.2, **LONG)
    assert len(client.synthesize(TEXT, **SHORT).samples) > 0


def test_leaving_streams_stops_their_generation(client: ChatTTSClient) -> None:
    start_s = time.monotonic()
    client.synthesize(TEXT, **LONG)
    whole_s = time.monotonic() - start_s
    streams = [client.stream(TEXT, **LONG) for _ in range(32)]
    next(streams[0])
    for stream in streams:
        stream.close()
    start_s = time.monotonic()
    assert len(client.synthesize(TEXT, **SHORT).samples) > 0
    # The 32 fill the engine twice over: had they gone on, this request would have waited for them.
    assert time.monotonic() - start_s < whole_s


def test_readiness_follows_the_address(client: ChatTTSClient, http_client: ChatTTSClient) -> None:
    assert client.health().ready
    assert http_client.health().ready
    with ChatTTSClient("127.0.0.1:1") as nobody:
        assert not nobody.health().ready


def test_the_wrong_port_is_a_typed_error(tiny_server: EmbeddedServer) -> None:
    grpc_to_http = ChatTTSClient(tiny_server.http_url, timeout_s=5)
    http_to_grpc = ChatTTSClient(tiny_server.grpc_url, transport="http", timeout_s=5)
    for swapped in (grpc_to_http, http_to_grpc):
        with swapped, pytest.raises((ServerUnavailableError, ProtocolError)):
            swapped.synthesize(TEXT)


def test_voices_are_listed_on_both_transports(demo_server: EmbeddedServer) -> None:
    with ChatTTSClient(demo_server.grpc_url) as client:
        voices = client.voices()
    with ChatTTSClient(demo_server.http_url, transport="http") as http_client:
        assert http_client.voices() == voices
    assert {voice.name: voice.language for voice in voices} == DEMO_VOICES
    assert all(voice.description for voice in voices)


def test_a_text_outside_the_vocabulary_is_spoken_with_a_warning(
    demo_server: EmbeddedServer,
) -> None:
    with ChatTTSClient(demo_server.grpc_url) as client:
        audio = client.synthesize("The xylophone reads a book.", voice="en", seed=7)
    assert any("xylophone" in warning.message for warning in audio.warnings)
