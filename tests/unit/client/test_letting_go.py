"""An utterance lives as long as the caller holds it: nothing waits for the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chattts_client import (
    AsyncChatTTSClient,
    Audio,
    ChatTTSClient,
    ServerUnavailableError,
    UtteranceCache,
)
from chattts_client import _retry as retry
from unit.client.fake_answers import (
    WAIT_S,
    Failure,
    Inputs,
    Outputs,
    Request,
    Script,
    fail,
    utterance,
)
from unit.client.fake_triton import FakeTriton


@pytest.fixture(autouse=True)
def no_collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(retry, "_BACKOFF", lambda state: 0.01)
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def full_at_first() -> Script:
    """A script that refuses each text once."""
    refused: set[str] = set()

    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        if inputs["text"] not in refused:
            refused.add(inputs["text"])
            raise Failure("UNAVAILABLE", "full")
        yield from utterance()

    return script


def samples_of(audio: Audio) -> weakref.ref[Any]:
    return weakref.ref(audio.samples)


def test_an_utterance_goes_with_its_last_reference(
    grpc_url: str, fake: FakeTriton, tmp_path: Path
) -> None:
    fake.script = full_at_first()
    held = []
    with ChatTTSClient(grpc_url, cache=UtteranceCache(tmp_path)) as client:
        held.append(samples_of(client.synthesize("one")))
        with client.stream("two") as stream:
            held.append(samples_of(stream.result()))
        del stream
        held += [samples_of(audio) for audio in client.synthesize_many(["three", "four"])]
        fake.script = fail(Failure("UNAVAILABLE", "connection refused"))
        held.append(samples_of(client.synthesize("one")))
    assert [samples() is None for samples in held] == [True] * 5


def test_an_utterance_of_a_task_goes_with_its_last_reference(
    grpc_url: str, fake: FakeTriton, tmp_path: Path
) -> None:
    fake.script = full_at_first()
    held = []

    async def run() -> None:
        async with AsyncChatTTSClient(grpc_url, cache=UtteranceCache(tmp_path)) as client:
            held.append(samples_of(await client.synthesize("five")))
            held.extend(
                [samples_of(audio) async for audio in client.synthesize_many(["six", "seven"])]
            )
        # A thread that has written to the cache lets go right after it has said so.
        end_s = time.monotonic() + WAIT_S
        while any(samples() is not None for samples in held) and time.monotonic() < end_s:
            await asyncio.sleep(0.01)
        assert [samples() is None for samples in held] == [True] * 3

    asyncio.run(run())


def test_refusals_leave_nothing_that_grows(grpc_url: str, fake: FakeTriton) -> None:
    def refuse(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        raise Failure("UNAVAILABLE", "full")  # a new one: an error collects its tracebacks

    fake.script = refuse
    with ChatTTSClient(grpc_url, max_retries=1) as client:

        def refused() -> None:
            with pytest.raises(ServerUnavailableError):
                client.synthesize("hello")

        refused()
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(50):
            refused()
        fake.requests.clear()
        fake.inputs.clear()
        gc.collect()
        assert len(gc.get_objects()) < before + 500


def test_the_samples_of_one_response_are_not_copied(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = lambda inputs, request: iter(utterance(1))
    with ChatTTSClient(grpc_url) as client, client.stream("hello") as stream:
        (chunk,) = stream
        assert np.shares_memory(stream.result().samples, chunk.samples)
        assert stream.result() is stream.result()
