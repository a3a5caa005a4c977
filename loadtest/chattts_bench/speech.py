"""Streams through an embedded server: start it, speak many at once, keep when what arrived."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from chattts_client import ChatTTSClient, Summary
from chattts_load.playback import Playback
from launcher import EmbeddedServer
from numpy.typing import NDArray

LIMIT_S = 900.0
"""A request that takes longer has failed."""


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One stream to speak, of a fixed number of steps per segment."""

    text: str
    steps: int
    seed: int
    delay_s: float = 0.0
    """Seconds to wait before it is sent."""
    latency: Literal["exact", "low"] = "exact"
    """As the server takes it."""


@dataclass(frozen=True, slots=True, eq=False)
class Spoken:
    """What arrived of one stream."""

    arrivals_s: tuple[float, ...]
    """Seconds from the call to each chunk that has samples."""
    durations_s: tuple[float, ...]
    """Seconds of audio in each of them."""
    samples: NDArray[np.float32]
    summary: Summary

    @property
    def audio_s(self) -> float:
        """Seconds of audio."""
        return sum(self.durations_s)

    @property
    def first_audio_s(self) -> float:
        """Seconds from the call to the first samples."""
        return self.arrivals_s[0]

    @property
    def waited_s(self) -> float:
        """Seconds that playback which begins with the first chunk waits for later ones."""
        return sum(Playback(self.arrivals_s, self.durations_s).waits_s)

    @property
    def is_ahead_of_playback(self) -> bool:
        """Whether playback that begins with the first chunk never waits for a later one."""
        return self.waited_s == 0


@contextmanager
def running(repository: Path) -> Iterator[tuple[EmbeddedServer, ChatTTSClient]]:
    """Serve a repository and connect a client; both end with the block."""
    server = EmbeddedServer(repository)
    server.start()
    try:
        with ChatTTSClient(server.grpc_url, timeout_s=LIMIT_S, max_retries=0) as client:
            yield server, client
    finally:
        server.kill()


def speak_all(client: ChatTTSClient, requests: Sequence[Request]) -> tuple[list[Spoken], float]:
    """Speak all requests at once, each after its delay; return them and the seconds it took."""
    started = time.perf_counter()
    with ThreadPoolExecutor(len(requests)) as pool:
        spoken = list(pool.map(lambda request: speak(client, request), requests))
    return spoken, time.perf_counter() - started


def speak(client: ChatTTSClient, request: Request) -> Spoken:
    """Speak one request and note when its chunks arrive."""
    time.sleep(request.delay_s)
    arrivals_s, durations_s, samples = [], [], []
    summary: Summary | None = None
    started = time.perf_counter()
    with client.stream(
        request.text,
        seed=request.seed,
        min_new_tokens=request.steps,
        max_new_tokens=request.steps,
        latency=request.latency,
    ) as stream:
        for chunk in stream:
            if len(chunk.samples):
                arrivals_s.append(time.perf_counter() - started)
                durations_s.append(chunk.duration_s)
                samples.append(chunk.samples)
            summary = chunk.summary or summary
    assert summary is not None
    return Spoken(tuple(arrivals_s), tuple(durations_s), np.concatenate(samples), summary)


def equal_requests(text: str, count: int, steps: int) -> list[Request]:
    """Return `count` requests for the same text with seeds 0 ... count - 1."""
    return [Request(text, steps, seed) for seed in range(count)]
