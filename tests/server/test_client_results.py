"""Retries, rate limit, cache and many utterances of one call, against real servers."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from chattts_client import (
    AsyncChatTTSClient,
    Audio,
    ChatTTSClient,
    InvalidRequestError,
    RateLimit,
    ServerUnavailableError,
    SpeechOptions,
    UtteranceCache,
)
from launcher import EmbeddedServer
from metrics import read_metrics
from repository_copies import copy_repository
from throw_away import wait_until

TEXT = "One. Two."
SHORT: SpeechOptions = {"seed": 7, "max_new_tokens": 60}
LONG: SpeechOptions = {"seed": 7, "max_new_tokens": 2048, "min_new_tokens": 2000}
LIMIT_S = 60.0
NUM_ITEMS = 24
ITEMS: list[tuple[str, SpeechOptions]] = [
    (TEXT, {"seed": index % 5, "max_new_tokens": 20 + 10 * (index % 3)})
    for index in range(NUM_ITEMS)
]


@pytest.fixture(scope="module")
def narrow(
    tiny_repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServer]:
    """A server that takes two requests at once and refuses the third."""
    folder = tmp_path_factory.mktemp("narrow") / "models"
    server = EmbeddedServer(copy_repository(tiny_repository, folder, max_streams=2))
    server.start()
    yield server
    server.kill()


def num_running(server: EmbeddedServer) -> float:
    values = read_metrics(server).items()
    return sum(value for name, value in values if name.startswith("chattts_running_requests"))


def test_many_utterances_are_those_that_single_calls_give(tiny_server: EmbeddedServer) -> None:
    async def ask_many() -> list[Audio]:
        async with AsyncChatTTSClient(tiny_server.grpc_url) as client:
            return [audio async for audio in client.synthesize_many(ITEMS)]

    counts: list[int] = []
    with ChatTTSClient(tiny_server.grpc_url) as client:
        alone = [client.synthesize(text, **options) for text, options in ITEMS[:15]]
        many = list(client.synthesize_many(ITEMS, on_progress=counts.append))
    with ChatTTSClient(tiny_server.http_url, transport="http") as http_client:
        over_http = list(http_client.synthesize_many(ITEMS, concurrency=4))
    assert counts[-1] == NUM_ITEMS
    for audios in (many, over_http, asyncio.run(ask_many())):
        assert len(audios) == NUM_ITEMS
        for index, audio in enumerate(audios):
            assert audio.samples.tobytes() == alone[index % 15].samples.tobytes()


def test_a_wrong_item_takes_its_own_place_only(tiny_server: EmbeddedServer) -> None:
    wrong: tuple[str, SpeechOptions] = (TEXT, {"top_k": 0})
    items: list[str | tuple[str, SpeechOptions]] = [*ITEMS[:5], wrong, *ITEMS[5:10]]
    with ChatTTSClient(tiny_server.grpc_url) as client:
        found = list(client.synthesize_many(items, return_errors=True))
    assert [isinstance(one, Audio) for one in found] == [True] * 5 + [False] + [True] * 5
    error = found[5]
    assert isinstance(error, InvalidRequestError)
    assert error.field == "top_k"


def test_leaving_many_frees_the_server(tiny_server: EmbeddedServer) -> None:
    items: list[tuple[str, SpeechOptions]] = [(TEXT, SHORT), *[(TEXT, LONG)] * 20]
    with ChatTTSClient(tiny_server.grpc_url) as client:
        with contextlib.closing(client.synthesize_many(items, concurrency=4)) as audios:
            assert len(next(audios).samples) > 0
            wait_until(lambda: num_running(tiny_server) >= 3, "the others run")
        wait_until(lambda: num_running(tiny_server) == 0, "the server is free")
        assert len(client.synthesize(TEXT, **SHORT).samples) > 0


def test_a_full_server_is_asked_again_when_it_has_said(narrow: EmbeddedServer) -> None:
    with ChatTTSClient(narrow.grpc_url, max_retries=0) as impatient:
        expected = impatient.synthesize(TEXT, **SHORT)
        with impatient.stream(TEXT, **LONG) as one, impatient.stream(TEXT, **LONG) as two:
            next(one), next(two)
            with pytest.raises(ServerUnavailableError, match="try again in 1 s") as raised:
                impatient.synthesize(TEXT, **SHORT)
            assert raised.value.retry_after_s == 1.0
            with ChatTTSClient(narrow.grpc_url, max_retries=10) as patient:
                threading.Timer(0.5, one.close).start()
                start_s = time.monotonic()
                audio = patient.synthesize(TEXT, **SHORT)
    assert time.monotonic() - start_s >= 1.0
    np.testing.assert_array_equal(audio.samples, expected.samples)


def test_more_callers_than_a_server_takes_are_all_served_in_the_end(
    narrow: EmbeddedServer,
) -> None:
    async def ask_many() -> list[Audio]:
        async with AsyncChatTTSClient(
            narrow.grpc_url, max_retries=30, rate_limit=RateLimit(50, 1.0)
        ) as client:
            calls = (client.synthesize(TEXT, **SHORT) for _ in range(8))
            return await asyncio.gather(*calls)

    assert len({audio.samples.tobytes() for audio in asyncio.run(ask_many())}) == 1


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_server_that_comes_back_answers_and_its_absence_is_bridged(
    tiny_repository: Path,
    server_factory: Callable[..., EmbeddedServer],
    tmp_path: Path,
    transport: str,
) -> None:
    server = server_factory(tiny_repository)
    is_grpc = transport == "grpc"
    url = server.grpc_url if is_grpc else server.http_url
    ports = {
        "grpc_port": int(server.grpc_url.rpartition(":")[2]),
        "http_port": int(server.http_url.rpartition(":")[2]),
    }
    with (
        ChatTTSClient(
            url,
            transport="grpc" if is_grpc else "http",
            timeout_s=LIMIT_S,
            max_retries=100,
            cache=UtteranceCache(tmp_path / "kept"),
        ) as client,
        ChatTTSClient(
            url,
            transport="grpc" if is_grpc else "http",
            timeout_s=LIMIT_S,
            max_retries=1,
            cache=UtteranceCache(tmp_path / "kept"),
        ) as bridged,
    ):
        expected = client.synthesize(TEXT, **SHORT)
        server.kill()
        kept = bridged.synthesize(TEXT, **SHORT)
        with pytest.raises(ServerUnavailableError):
            bridged.synthesize("another text", **SHORT)
        later = threading.Timer(0.5, lambda: server_factory(tiny_repository, **ports))
        later.start()
        audio = client.synthesize(TEXT, **SHORT)
        later.join()
    assert kept.from_cache
    assert not audio.from_cache
    for one in (kept, audio):
        np.testing.assert_array_equal(one.samples, expected.samples)


def test_an_utterance_is_saved_in_every_format(demo_server: EmbeddedServer, tmp_path: Path) -> None:
    with ChatTTSClient(demo_server.grpc_url) as client:
        audio = client.synthesize("hello anna", voice="en", seed=1)
    for suffix in ("wav", "flac", "ogg", "mp3"):
        path = tmp_path / f"hello.{suffix}"
        audio.save(path)
        samples, rate_hz = soundfile.read(path, dtype="float32")
        assert (len(samples), rate_hz) == (len(audio.samples), audio.sample_rate)
        assert np.corrcoef(samples, audio.samples)[0, 1] > 0.9
