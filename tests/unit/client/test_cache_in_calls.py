"""Calls of a client with a cache: when it is asked, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chattts_client import (
    ChatTTSClient,
    InvalidRequestError,
    RateLimit,
    RequestTimeoutError,
    ServerUnavailableError,
    UtteranceCache,
)
from unit.client.fake_answers import BrokenCall, Failure, fail, outputs, silent, utterance
from unit.client.fake_triton import FakeTriton
from unit.client.twins import TWINS, Twin

FULL = BrokenCall("UNAVAILABLE", "no connection")
HTTP_FULL = Failure("503", "no connection")
EXACT: dict[str, Any] = {"seed": 7, "model_version": "1"}
MakeTwin = Callable[..., Twin]


@pytest.fixture(params=TWINS)
def make_twin(request: pytest.FixtureRequest, grpc_url: str) -> MakeTwin:
    return lambda **settings: TWINS[request.param](grpc_url, max_retries=0, **settings)


@pytest.mark.parametrize("streams", [False, True])
def test_fallback_speaks_when_there_is_no_server(
    make_twin: MakeTwin, fake: FakeTriton, tmp_path: Path, streams: bool
) -> None:
    twin = make_twin(cache=UtteranceCache(tmp_path))
    first = twin.synthesize("hello", voice="en")
    assert not first.from_cache
    fake.script = fail(FULL)
    if streams:
        chunks, again = twin.stream("hello", voice="en")
        assert [(chunk.index, chunk.is_final) for chunk in chunks] == [(0, True)]
        assert chunks[0].summary is not None
    else:
        again = twin.synthesize("hello", voice="en")
    assert again.from_cache
    np.testing.assert_array_equal(again.samples, first.samples)
    assert again.request_id == first.request_id
    assert again.real_time_factor is not None
    with pytest.raises(ServerUnavailableError):
        twin.synthesize("hello", voice="zh")
    assert len(fake.requests) == 3


def test_a_completed_stream_is_kept(make_twin: MakeTwin, fake: FakeTriton, tmp_path: Path) -> None:
    twin = make_twin(cache=UtteranceCache(tmp_path))
    twin.stream_one("hello")
    assert not list(tmp_path.iterdir())
    _, first = twin.stream("hello")
    fake.script = fail(FULL)
    np.testing.assert_array_equal(twin.synthesize("hello").samples, first.samples)


def test_fallback_speaks_when_no_answer_comes_in_time(
    make_twin: MakeTwin, fake: FakeTriton, tmp_path: Path
) -> None:
    twin = make_twin(cache=UtteranceCache(tmp_path))
    twin.synthesize("hello")
    fake.script = silent
    assert twin.synthesize("hello", timeout_s=0.2).from_cache
    with pytest.raises(RequestTimeoutError):
        twin.synthesize("hallo", timeout_s=0.2)


def test_fallback_is_asked_after_the_server_and_its_retries(
    fake: FakeTriton, grpc_url: str, tmp_path: Path
) -> None:
    cache = UtteranceCache(tmp_path)
    with ChatTTSClient(grpc_url, max_retries=1, cache=cache) as client:
        client.synthesize("hello", **EXACT)
        assert not client.synthesize("hello", **EXACT).from_cache
        fake.script = fail(FULL)
        assert client.synthesize("hello", **EXACT).from_cache
    assert len(fake.requests) == 4


def test_a_refused_request_or_a_broken_stream_is_never_made_good(
    make_twin: MakeTwin, fake: FakeTriton, tmp_path: Path
) -> None:
    twin = make_twin(cache=UtteranceCache(tmp_path))
    twin.synthesize("hello")
    fake.script = fail(Failure("INVALID_ARG", "text: is wrong now"))
    with pytest.raises(InvalidRequestError):
        twin.synthesize("hello")
    fake.script = fail(FULL, after=1)
    with pytest.raises(ServerUnavailableError):
        twin.stream("hello")


def test_first_asks_no_server_for_what_has_seed_and_version(
    make_twin: MakeTwin, fake: FakeTriton, tmp_path: Path
) -> None:
    twin = make_twin(cache=UtteranceCache(tmp_path, use="first"))
    first = twin.synthesize("hello", **EXACT)
    assert twin.synthesize("hello", **EXACT).from_cache
    _, streamed = twin.stream("hello", **EXACT)
    assert streamed.from_cache
    np.testing.assert_array_equal(streamed.samples, first.samples)
    assert len(fake.requests) == 1
    for incomplete in ({"seed": 7}, {"model_version": "1"}, {}):
        twin.synthesize("hello", **incomplete)
        assert not twin.synthesize("hello", **incomplete).from_cache
    assert len(fake.requests) == 7
    fake.script = fail(FULL)
    assert twin.synthesize("hello").from_cache


def test_a_kept_utterance_takes_no_turn_of_the_rate_limit(
    fake: FakeTriton, grpc_url: str, tmp_path: Path
) -> None:
    cache = UtteranceCache(tmp_path, use="first")
    limit = RateLimit(1, 600.0)
    with ChatTTSClient(grpc_url, cache=cache, rate_limit=limit, timeout_s=5) as client:
        client.synthesize("hello", **EXACT)
        assert client.synthesize("hello", **EXACT).from_cache


@pytest.mark.parametrize("name", TWINS)
def test_both_transports_share_what_is_kept(
    name: str, fake: FakeTriton, grpc_url: str, http_url: str, tmp_path: Path
) -> None:
    cache = UtteranceCache(tmp_path)
    over_http = TWINS[name](http_url, "http", cache=cache, max_retries=0)
    fake.script = lambda inputs, request: iter(utterance(1))
    TWINS[name](grpc_url, cache=cache).synthesize("one", **EXACT)
    over_http.synthesize("two", **EXACT)
    fake.script = fail(HTTP_FULL)
    assert over_http.synthesize("one", **EXACT).from_cache
    fake.script = fail(FULL)
    twin = TWINS[name](grpc_url, cache=cache, max_retries=0)
    assert twin.synthesize("two", **EXACT).from_cache


def test_an_answer_without_audio_is_not_kept(
    make_twin: MakeTwin, fake: FakeTriton, tmp_path: Path
) -> None:
    empty = outputs(np.zeros(0, dtype=np.float32), is_final=True, finish_reasons=[])
    fake.script = lambda inputs, request: iter([empty])
    make_twin(cache=UtteranceCache(tmp_path)).synthesize("...")
    assert not list(tmp_path.iterdir())
