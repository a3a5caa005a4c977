"""Engine processes of the token model on a real server: even shares, deaths that nobody hears."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from launcher import EmbeddedServer
from metrics import read_metrics, read_total
from repository_copies import copy_repository
from speech_calls import Array, audio, open_stream, stream

NUM_STREAMS = 8
STEPS = 700
REQUEST: dict[str, Any] = {
    "text": "hello world. this is a test.",
    "min_new_tokens": STEPS,
    "max_new_tokens": STEPS,
}
DEADLINE_S = 20.0


@pytest.fixture(scope="module")
def two_engines(
    tiny_repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServer]:
    """A server whose token model has two engines of four slots."""
    folder = tmp_path_factory.mktemp("two") / "models"
    limits = {"num_engines": 2, "max_num_seqs": 4}
    server = EmbeddedServer(copy_repository(tiny_repository, folder, **limits))
    server.start()
    yield server
    server.kill()


def engine_processes(server: EmbeddedServer) -> list[psutil.Process]:
    assert server.pid is not None
    below = psutil.Process(server.pid).children(recursive=True)
    return [process for process in below if "chattts_engine.engine_process" in process.cmdline()]


def speak(server: EmbeddedServer, seed: int) -> Array:
    responses = stream(server, seed=seed, **REQUEST)
    assert responses[-1].metadata["finish_reasons"] == ["length", "length"]
    return audio(responses)


def speak_together(server: EmbeddedServer, number: int) -> list[Array]:
    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(lambda seed: speak(server, seed), range(number)))


@pytest.fixture(scope="module")
def references(two_engines: EmbeddedServer) -> list[Array]:
    return [speak(two_engines, seed) for seed in range(NUM_STREAMS)]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def generated_by_engine(server: EmbeddedServer) -> Array:
    metrics = read_metrics(server)
    names = [f'chattts_generated_tokens_total{{engine="{i}",version="1"}}' for i in range(2)]
    return np.array([metrics.get(name, 0.0) for name in names])


def test_two_engines_share_the_work_within_a_fifth(
    two_engines: EmbeddedServer, references: list[Array]
) -> None:
    before = generated_by_engine(two_engines)
    for _ in range(3):
        for got, expected in zip(speak_together(two_engines, 8), references, strict=True):
            assert got.tobytes() == expected.tobytes()
    shares = generated_by_engine(two_engines) - before
    assert shares.sum() == 3 * 8 * 2 * STEPS
    assert shares.max() <= 1.2 * shares.min(), shares


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_an_engine_that_dies_under_streams_costs_no_stream_a_bit(
    two_engines: EmbeddedServer, references: list[Array], number: signal.Signals
) -> None:
    before = deaths(two_engines)
    with ThreadPoolExecutor(NUM_STREAMS) as pool:
        results = [pool.submit(speak, two_engines, seed) for seed in range(NUM_STREAMS)]
        # not of all: an engine that died in the test before may still be loading
        most = NUM_STREAMS // 2
        wait_until(lambda: read_total(two_engines, "chattts_sequences_running") >= most)
        os.kill(engine_processes(two_engines)[0].pid, number)
        for result, expected in zip(results, references, strict=True):
            assert result.result().tobytes() == expected.tobytes()
    wait_until(lambda: deaths(two_engines) == before + 1)
    wait_until(lambda: len(engine_processes(two_engines)) == 2)


def test_the_death_of_all_engines_is_a_pause(
    two_engines: EmbeddedServer, references: list[Array]
) -> None:
    with open_stream(two_engines, seed=0, **REQUEST) as responses:
        parts = [next(responses)]
        for process in engine_processes(two_engines):
            process.kill()
        parts += responses
    assert audio(parts).tobytes() == references[0].tobytes()


def test_a_cancelled_request_leaves_nothing_on_a_dying_engine(two_engines: EmbeddedServer) -> None:
    with open_stream(two_engines, seed=0, **REQUEST) as responses:
        next(responses)
        for process in engine_processes(two_engines):
            process.kill()
    wait_until(lambda: read_total(two_engines, "chattts_running_requests") == 0)
    wait_until(lambda: len(engine_processes(two_engines)) == 2)
    speak(two_engines, 1)
    wait_until(lambda: read_total(two_engines, "chattts_kv_blocks_used") == 0)


def deaths(server: EmbeddedServer) -> float:
    return read_total(server, "chattts_engine_deaths_total")
