"""An orderly stop under load: what is being spoken is spoken to its end, nothing new is begun."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from chattts_client import ChatTTSClient, ServerUnavailableError
from launcher import EmbeddedServer
from server_metrics import num_running
from throw_away import wait_until

LIMIT_S = 60.0
NUM_STREAMS = 8
SEGMENTS = 6
"""More than are in the token model at once, so that some begin after the order to stop."""
STEPS = 400
SAMPLES = SEGMENTS * (512 * STEPS - 256)
EXIT_TIMEOUT_S = 45


def listen(url: str, seed: int, has_begun: threading.Event) -> int:
    """Return the samples of one long stream."""
    num_samples = 0
    with (
        ChatTTSClient(url, timeout_s=LIMIT_S, max_retries=0) as client,
        client.stream(
            "hello world. " * SEGMENTS, seed=seed, min_new_tokens=STEPS, max_new_tokens=STEPS
        ) as stream,
    ):
        for chunk in stream:
            has_begun.set()
            num_samples += len(chunk.samples)
    assert chunk.is_final
    return num_samples


def ask_unary(url: str) -> int:
    """Return the samples of one long answer over HTTP."""
    with ChatTTSClient(url, transport="http", timeout_s=LIMIT_S, max_retries=0) as client:
        text = "hello world. " * SEGMENTS
        audio = client.synthesize(text, seed=1, min_new_tokens=STEPS, max_new_tokens=STEPS)
        return len(audio.samples)


def running(server: EmbeddedServer) -> float:
    """Return how many requests are being spoken."""
    with urllib.request.urlopen(server.metrics_url) as metrics:
        return num_running(metrics.read().decode())


def refusal(client: ChatTTSClient, stopping: Future[int | None]) -> str:
    """Ask until the server refuses; return its words. Fail if it ends before it has refused."""
    while not stopping.done():
        try:
            client.synthesize("hello", seed=1, max_new_tokens=30)
        except ServerUnavailableError as error:
            return str(error)
    raise AssertionError("not refused before the end")


def test_stop_finishes_what_runs_and_refuses_what_comes(
    tiny_repository: Path, server_factory: Callable[..., EmbeddedServer]
) -> None:
    server = server_factory(tiny_repository, exit_timeout_s=EXIT_TIMEOUT_S)
    begun = [threading.Event() for _ in range(NUM_STREAMS)]
    with (
        ThreadPoolExecutor(NUM_STREAMS + 2) as threads,
        ChatTTSClient(server.grpc_url, max_retries=0) as client,
    ):
        url = server.grpc_url
        streams = [threads.submit(listen, url, seed, event) for seed, event in enumerate(begun)]
        unary = threads.submit(ask_unary, server.http_url)
        assert all(event.wait(LIMIT_S) for event in begun)
        wait_until(lambda: running(server) == NUM_STREAMS + 1, "unary request accepted")
        stopping = threads.submit(server.stop)
        assert refusal(client, stopping) == "the server is shutting down; try another one"
        assert not all(stream.done() for stream in streams)
        assert not server.is_healthy()
        assert server.is_ready()
        assert [stream.result(LIMIT_S) for stream in streams] == [SAMPLES] * NUM_STREAMS
        assert unary.result(LIMIT_S) == SAMPLES
        assert stopping.result(LIMIT_S) == 0
    with pytest.raises(ServerUnavailableError), ChatTTSClient(url, max_retries=0) as client:
        client.synthesize("hello")
