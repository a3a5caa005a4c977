"""Clients under load: a thousand calls leave nothing behind, one client has hundreds at once."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path

import grpc
import psutil
import pytest
from chattts_client import (
    AsyncChatTTSClient,
    ChatTTSClient,
    InvalidRequestError,
    RequestTimeoutError,
    SpeechOptions,
)
from launcher import EmbeddedServer
from repository_copies import copy_repository
from throw_away import wait_until

TEXT = "hello world"
SHORT: SpeechOptions = {"min_new_tokens": 30, "max_new_tokens": 30}
"""60 kB of samples in more than one chunk."""
SLOW: SpeechOptions = {"min_new_tokens": 200, "max_new_tokens": 200}
"""With a deadline of a millisecond; where all is starved, gRPC may notice it after the answer."""
LONG: SpeechOptions = {"min_new_tokens": 500, "max_new_tokens": 500}
NUM_CALLS = 1000
AT_ONCE = 8
NUM_FIRST = 240
"""Calls after which memory may not grow any more."""
GROWTH_BYTES = 12 << 20
"""A third of the samples of the calls in between: whoever keeps them all fails."""
NUM_STREAMS = 200
LIMIT_S = 120.0
KINDS = 8

ServerFactory = Callable[..., EmbeddedServer]


@dataclass(frozen=True, slots=True)
class Held:
    """What this process holds."""

    threads: int
    """Python's threads."""
    files: int
    """Files and sockets."""
    channels: int
    """gRPC's connections."""

    def is_within(self, other: Held) -> bool:
        """Whether nothing is more; what earlier tests left may end meanwhile."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return all(here <= there for here, there in pairs)


def held() -> Held:
    gc.collect()
    channels = (grpc.Channel, grpc.aio.Channel)
    return Held(
        threading.active_count(),
        len(os.listdir("/proc/self/fd")),
        # by type: some objects of other packages have no `__class__`, which isinstance asks for
        sum(issubclass(type(one), channels) for one in gc.get_objects()),
    )


def rss() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def call(client: ChatTTSClient, index: int) -> None:
    """One call: its kind goes round."""
    kind = index % KINDS
    if kind == 0:
        client.normalize(TEXT)
    elif kind == 1:
        with pytest.raises(InvalidRequestError):
            client.synthesize(TEXT, top_k=0)
    elif kind == 2:
        with contextlib.suppress(RequestTimeoutError):
            client.synthesize(TEXT, timeout_s=0.001, **SLOW)
    elif kind == 3 and client.transport == "grpc":
        with client.stream(TEXT, **LONG) as stream:
            next(stream)
    elif kind == 4 and client.transport == "grpc":
        with client.stream(TEXT, seed=index, **SHORT) as stream:
            assert sum(len(chunk.samples) for chunk in stream) > 0
    else:
        assert len(client.synthesize(TEXT, seed=index, **SHORT).samples) > 0


async def call_async(client: AsyncChatTTSClient, index: int) -> None:
    """The asynchronous twin of `call`."""
    kind = index % KINDS
    if kind == 0:
        await client.normalize(TEXT)
    elif kind == 1:
        with pytest.raises(InvalidRequestError):
            await client.synthesize(TEXT, top_k=0)
    elif kind == 2:
        with contextlib.suppress(RequestTimeoutError):
            await client.synthesize(TEXT, timeout_s=0.001, **SLOW)
    elif kind == 3 and client.transport == "grpc":
        async with client.stream(TEXT, **LONG) as stream:
            await anext(stream)
    elif kind == 4 and client.transport == "grpc":
        async with client.stream(TEXT, seed=index, **SHORT) as stream:
            assert sum([len(chunk.samples) async for chunk in stream]) > 0
    else:
        assert len((await client.synthesize(TEXT, seed=index, **SHORT)).samples) > 0


def run_sync(url: str, transport: str) -> int:
    """Make all calls with one client; return by how much memory has grown after the first ones."""
    with (
        ChatTTSClient(url, transport=transport, max_retries=0) as client,  # type: ignore[arg-type]
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        list(pool.map(lambda index: call(client, index), range(NUM_FIRST)))
        before = rss()
        list(pool.map(lambda index: call(client, index), range(NUM_FIRST, NUM_CALLS)))
        return rss() - before


def run_async(url: str, transport: str) -> int:
    """The asynchronous twin of `run_sync`."""

    async def run() -> int:
        client = AsyncChatTTSClient(url, transport=transport, max_retries=0)  # type: ignore[arg-type]
        async with client:
            before = 0
            for index in range(0, NUM_CALLS, AT_ONCE):
                if index == NUM_FIRST:
                    before = rss()
                batch = range(index, index + AT_ONCE)
                await asyncio.gather(*(call_async(client, one) for one in batch))
            return rss() - before

    return asyncio.run(run())


@pytest.mark.parametrize("transport", ["grpc", "http"])
@pytest.mark.parametrize("run", [run_sync, run_async])
def test_a_thousand_calls_leave_nothing_behind(
    tiny_server: EmbeddedServer, run: Callable[[str, str], int], transport: str
) -> None:
    url = tiny_server.grpc_url if transport == "grpc" else tiny_server.http_url
    with ChatTTSClient(url, transport=transport) as client:  # type: ignore[arg-type]
        client.normalize(TEXT)  # what a first call imports and opens for good
    before = held()
    grown = run(url, transport)
    wait_until(lambda: held().is_within(before), f"{before} again, now {held()}")
    assert grown < GROWTH_BYTES


def test_a_hundred_clients_leave_nothing_behind(tiny_server: EmbeddedServer) -> None:
    async def use_async(url: str, transport: str) -> None:
        async with AsyncChatTTSClient(url, transport=transport) as client:  # type: ignore[arg-type]
            await client.normalize(TEXT)

    def use_all() -> None:
        for transport, url in (("grpc", tiny_server.grpc_url), ("http", tiny_server.http_url)):
            with ChatTTSClient(url, transport=transport) as client:  # type: ignore[arg-type]
                client.normalize(TEXT)
            asyncio.run(use_async(url, transport))

    use_all()
    before = held()
    for _ in range(25):
        use_all()
    wait_until(lambda: held().is_within(before), f"{before} again, now {held()}")


def test_one_client_has_two_hundred_streams_at_once(
    tiny_repository: Path, server_factory: ServerFactory, tmp_path: Path
) -> None:
    repository = copy_repository(tiny_repository, tmp_path / "models", max_streams=NUM_STREAMS)
    server = server_factory(repository)

    async def speak(client: AsyncChatTTSClient, seed: int, all_open: asyncio.Barrier) -> bytes:
        async with client.stream(TEXT, seed=seed, **SHORT) as stream:
            await anext(stream)
            await all_open.wait()
            return (await stream.result()).samples.tobytes()

    async def speak_all() -> tuple[list[bytes], list[bytes]]:
        all_open = asyncio.Barrier(NUM_STREAMS)
        async with AsyncChatTTSClient(server.grpc_url, timeout_s=LIMIT_S, max_retries=0) as client:
            alone = [(await client.synthesize(TEXT, seed=seed, **SHORT)) for seed in range(10)]
            together = await asyncio.gather(
                *(speak(client, index % 10, all_open) for index in range(NUM_STREAMS))
            )
        return [audio.samples.tobytes() for audio in alone], together

    alone, together = asyncio.run(speak_all())
    assert together == alone * (NUM_STREAMS // 10)
    assert len(set(alone)) == 10
