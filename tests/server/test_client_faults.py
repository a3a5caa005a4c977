"""The client behind a network that fails: the documented error, within the call's deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from chattts_client import (
    AsyncChatTTSClient,
    Audio,
    ChatTTSClient,
    ChatTTSError,
    Health,
    RequestTimeoutError,
    ServerUnavailableError,
)
from fault_proxy import Fault, FaultProxy
from launcher import EmbeddedServer

TEXT = "One. Two."
OPTIONS: dict[str, Any] = {"seed": 7, "min_new_tokens": 60, "max_new_tokens": 60}
"""Two segments, about 250 kB of samples."""
INSIDE = 120_000
"""Bytes that end in the middle of that; a stream has given its first chunk by then."""
LIMIT_S = 1.0
PATIENT_S = 3.0
"""Time for a first chunk or a second try, also on a busy machine."""
MARGIN_S = 8.0
"""On top of the limit: what a busy machine may take, and the client's 2 s to say goodbye."""


def synthesize(url: str, timeout_s: float, **settings: Any) -> Audio:
    with ChatTTSClient(url, timeout_s=timeout_s, **settings) as client:
        return client.synthesize(TEXT, **OPTIONS)


def synthesize_async(url: str, timeout_s: float, **settings: Any) -> Audio:
    async def run() -> Audio:
        async with AsyncChatTTSClient(url, timeout_s=timeout_s, **settings) as client:
            return await client.synthesize(TEXT, **OPTIONS)

    return asyncio.run(run())


def stream(url: str, timeout_s: float, heard: list[int], **settings: Any) -> None:
    with (
        ChatTTSClient(url, timeout_s=timeout_s, **settings) as client,
        client.stream(TEXT, **OPTIONS) as chunks,
    ):
        heard.extend(len(chunk.samples) for chunk in chunks)


def stream_async(url: str, timeout_s: float, heard: list[int], **settings: Any) -> None:
    async def run() -> None:
        async with (
            AsyncChatTTSClient(url, timeout_s=timeout_s, **settings) as client,
            client.stream(TEXT, **OPTIONS) as chunks,
        ):
            async for chunk in chunks:
                heard.append(len(chunk.samples))

    asyncio.run(run())


def health(url: str, transport: Any) -> Health:
    with ChatTTSClient(url, transport=transport, timeout_s=LIMIT_S) as client:
        return client.health()


def health_async(url: str, transport: Any) -> Health:
    async def run() -> Health:
        async with AsyncChatTTSClient(url, transport=transport, timeout_s=LIMIT_S) as client:
            return await client.health()

    return asyncio.run(run())


def snapshot(url: str, timeout_s: float) -> None:
    with ChatTTSClient(metrics_url=url, timeout_s=timeout_s) as client:
        client.metrics_snapshot()


def snapshot_async(url: str, timeout_s: float) -> None:
    async def run() -> None:
        async with AsyncChatTTSClient(metrics_url=url, timeout_s=timeout_s) as client:
            await client.metrics_snapshot()

    asyncio.run(run())


CALLS = {"sync": synthesize, "async": synthesize_async}
STREAMS = {"sync": stream, "async": stream_async}
HEALTHS = {"sync": health, "async": health_async}
SNAPSHOTS = {"sync": snapshot, "async": snapshot_async}
LOST = {
    "cut at the start": Fault(end="cut"),
    "cut inside": Fault(end="cut", after_bytes=INSIDE),
    "reset at the start": Fault(end="reset"),
    "reset inside": Fault(end="reset", after_bytes=INSIDE),
}
LATE = {
    "silence at the start": Fault(end="silence"),
    "silence inside": Fault(end="silence", after_bytes=INSIDE),
    "delayed": Fault(delay_s=2 * LIMIT_S),
    "throttled": Fault(bytes_per_s=20_000),
}
SCRAPED = {
    "cut at the start": Fault(end="cut"),
    "cut inside": Fault(end="cut", after_bytes=1),
    "reset inside": Fault(end="reset", after_bytes=1),
    "silence inside": Fault(end="silence", after_bytes=1),
    "throttled": Fault(bytes_per_s=500),
}
"""Of metrics, which are shorter than a block or two."""
SLOW = {"delayed": Fault(delay_s=0.01), "throttled": Fault(bytes_per_s=500_000)}


@pytest.fixture
def proxies(tiny_server: EmbeddedServer) -> Iterator[dict[str, FaultProxy]]:
    """A proxy for each transport, without a fault."""
    with FaultProxy(tiny_server.grpc_url) as grpc, FaultProxy(tiny_server.http_url) as http:
        yield {"grpc": grpc, "http": http}


@pytest.fixture(scope="module")
def expected(tiny_server: EmbeddedServer) -> Audio:
    return synthesize(tiny_server.grpc_url, 60.0)


def failure(call: Callable[[], object]) -> tuple[ChatTTSError, float]:
    """Return what a call fails with, and after how many seconds."""
    start_s = time.monotonic()
    with pytest.raises(ChatTTSError) as caught:
        call()
    return caught.value, time.monotonic() - start_s


@pytest.mark.parametrize("transport", ["grpc", "http"])
@pytest.mark.parametrize("twin", CALLS)
@pytest.mark.parametrize("fault", LOST)
def test_a_lost_connection_is_an_unavailable_server(
    proxies: dict[str, FaultProxy], fault: str, twin: str, transport: str
) -> None:
    proxies[transport].fault = LOST[fault]
    url = proxies[transport].url
    error, took_s = failure(lambda: CALLS[twin](url, 30.0, transport=transport, max_retries=0))
    assert type(error) is ServerUnavailableError, repr(error)
    assert (error.code, error.retryable) == ("UNAVAILABLE", True)
    assert error.request_id
    assert took_s < 30.0


@pytest.mark.parametrize("transport", ["grpc", "http"])
@pytest.mark.parametrize("twin", CALLS)
@pytest.mark.parametrize("fault", LATE)
def test_an_answer_that_does_not_come_ends_with_the_time_limit(
    proxies: dict[str, FaultProxy], fault: str, twin: str, transport: str
) -> None:
    proxies[transport].fault = LATE[fault]
    url = proxies[transport].url
    error, took_s = failure(lambda: CALLS[twin](url, LIMIT_S, transport=transport))
    assert type(error) is RequestTimeoutError, repr(error)
    assert (error.code, error.retryable) == ("DEADLINE_EXCEEDED", False)
    assert error.request_id
    assert LIMIT_S * 0.9 < took_s < LIMIT_S + MARGIN_S


@pytest.mark.parametrize("transport", ["grpc", "http"])
@pytest.mark.parametrize("twin", CALLS)
@pytest.mark.parametrize("fault", SLOW)
def test_a_slow_network_changes_no_sample(
    proxies: dict[str, FaultProxy], expected: Audio, fault: str, twin: str, transport: str
) -> None:
    proxies[transport].fault = SLOW[fault]
    audio = CALLS[twin](proxies[transport].url, 60.0, transport=transport)
    np.testing.assert_array_equal(audio.samples, expected.samples)


@pytest.mark.parametrize("transport", ["grpc", "http"])
@pytest.mark.parametrize("twin", CALLS)
def test_a_connection_that_is_lost_before_audio_is_tried_again(
    proxies: dict[str, FaultProxy], expected: Audio, twin: str, transport: str
) -> None:
    proxies[transport].fault = Fault(end="reset", after_bytes=INSIDE, num_connections=1)
    audio = CALLS[twin](proxies[transport].url, 60.0, transport=transport, max_retries=5)
    np.testing.assert_array_equal(audio.samples, expected.samples)
    assert proxies[transport].num_connections > 1


@pytest.mark.parametrize("transport", ["grpc", "http"])
@pytest.mark.parametrize("twin", CALLS)
def test_retries_end_with_the_time_limit(
    proxies: dict[str, FaultProxy], twin: str, transport: str
) -> None:
    proxies[transport].fault = Fault(end="reset")
    url = proxies[transport].url
    error, took_s = failure(
        lambda: CALLS[twin](url, PATIENT_S, transport=transport, max_retries=1000)
    )
    assert type(error) in (ServerUnavailableError, RequestTimeoutError), repr(error)
    assert proxies[transport].num_connections > 1
    assert took_s < PATIENT_S + MARGIN_S


@pytest.mark.parametrize("transport", ["grpc", "http"])
@pytest.mark.parametrize("twin", HEALTHS)
@pytest.mark.parametrize("end", ["cut", "reset", "silence"])
def test_health_says_what_is_wrong_within_the_time_limit(
    proxies: dict[str, FaultProxy], end: Any, twin: str, transport: str
) -> None:
    proxies[transport].fault = Fault(end=end)
    start_s = time.monotonic()
    health = HEALTHS[twin](proxies[transport].url, transport)
    assert time.monotonic() - start_s < LIMIT_S + MARGIN_S
    assert (health.live, health.ready, health.url) == (False, False, proxies[transport].url)
    assert health.reason


@pytest.mark.parametrize("twin", SNAPSHOTS)
@pytest.mark.parametrize("fault", SCRAPED)
def test_metrics_behind_a_fault_end_in_the_same_errors(
    tiny_server: EmbeddedServer, fault: str, twin: str
) -> None:
    url = tiny_server.metrics_url.removeprefix("http://").removesuffix("/metrics")
    is_late = fault in ("silence inside", "throttled")
    limit_s = LIMIT_S if is_late else 30.0
    with FaultProxy(url, SCRAPED[fault]) as proxy:
        error, took_s = failure(lambda: SNAPSHOTS[twin](proxy.url, limit_s))
    assert type(error) is (RequestTimeoutError if is_late else ServerUnavailableError), repr(error)
    assert took_s < limit_s + MARGIN_S


@pytest.mark.parametrize("twin", STREAMS)
@pytest.mark.parametrize("end", ["cut", "reset", "silence"])
def test_a_stream_that_breaks_after_audio_fails_and_says_not_to_retry(
    proxies: dict[str, FaultProxy], twin: str, end: Any
) -> None:
    proxies["grpc"].fault = Fault(end=end, after_bytes=INSIDE)
    heard: list[int] = []
    limit_s = PATIENT_S if end == "silence" else 30.0
    error, took_s = failure(
        lambda: STREAMS[twin](proxies["grpc"].url, limit_s, heard, max_retries=5)
    )
    kind = RequestTimeoutError if end == "silence" else ServerUnavailableError
    assert type(error) is kind, repr(error)
    assert sum(heard) > 0
    assert not error.retryable
    assert took_s < limit_s + MARGIN_S


@pytest.mark.parametrize("twin", CALLS)
def test_nobody_listens(twin: str) -> None:
    for transport in ("grpc", "http"):
        error, took_s = failure(
            lambda name=transport: CALLS[twin]("127.0.0.1:1", 30.0, transport=name, max_retries=0)
        )
        assert type(error) is ServerUnavailableError, repr(error)
        assert took_s < 30.0


def test_leaving_a_stream_does_not_wait_for_a_silent_network(
    proxies: dict[str, FaultProxy],
) -> None:
    proxy = proxies["grpc"]

    def leave() -> float:
        proxy.fault = None
        with (
            ChatTTSClient(proxy.url, timeout_s=None) as client,
            client.stream(TEXT, **OPTIONS) as chunks,
        ):
            next(chunks)
            proxy.fault = Fault(end="silence")
            start_s = time.monotonic()
        return time.monotonic() - start_s

    async def leave_async() -> float:
        proxy.fault = None
        async with (
            AsyncChatTTSClient(proxy.url, timeout_s=None) as client,
            client.stream(TEXT, **OPTIONS) as chunks,
        ):
            await anext(chunks)
            proxy.fault = Fault(end="silence")
            start_s = time.monotonic()
        return time.monotonic() - start_s

    assert leave() < MARGIN_S
    assert asyncio.run(leave_async()) < MARGIN_S
