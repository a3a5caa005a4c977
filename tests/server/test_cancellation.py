"""A caller who goes, however it goes, gives its place back: read from the server's metrics.

Two requests fill the engine, a third waits. The second one's caller goes; the third must run and
end while the first still runs, which it could not if the second had gone on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from chattts_client import ChatTTSClient, SpeechOptions
from chattts_soak.tokens import TokenStream
from chattts_soak.victims import WAYS, Way, victim
from launcher import EmbeddedServer
from metrics import read_total
from repository_copies import copy_repository

LIMIT_S = 60.0
STEPS = 2048
LONG: SpeechOptions = {"seed": 1, "min_new_tokens": STEPS, "max_new_tokens": STEPS}
SHORT: SpeechOptions = {"seed": 2, "min_new_tokens": 60, "max_new_tokens": 60}
TRIES = 5
"""A busy machine may take longer to look than the other request takes in all."""
STAY_SHARE = 0.3
"""Of the time that the long request takes, for the caller whose deadline passes."""


@pytest.fixture(scope="module")
def server(
    tiny_repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServer]:
    """A server whose engine has two slots."""
    repository = tmp_path_factory.mktemp("two-slots") / "models"
    server = EmbeddedServer(copy_repository(tiny_repository, repository, max_num_seqs=2))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def stay_s(server: EmbeddedServer) -> float:
    """Seconds well within a long request, beside another one."""
    with TokenStream(server.grpc_url, "other", STEPS), ChatTTSClient(server.grpc_url) as client:
        return STAY_SHARE * client.synthesize("hello", **LONG).elapsed_s


def wait_until(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.001)


def gauge(server: EmbeddedServer, name: str) -> float:
    return read_total(server, f"chattts_{name}")


def steps_until_the_slot_is_given(
    server: EmbeddedServer, stay_s: float, way: Way
) -> tuple[float, int] | None:
    """Let a caller go while another waits for its slot; return milliseconds and engine steps.

    None: the other request was over too, so that the slot may have been its.
    """
    wait_until("an idle engine", lambda: gauge(server, "sequences_running") == 0)
    with (
        ChatTTSClient(server.grpc_url) as client,
        ThreadPoolExecutor(1) as threads,
        TokenStream(server.grpc_url, "runner", STEPS) as runner,
        victim(way, server.grpc_url, server.http_url, "hello", LONG, stay_s) as leave,
    ):
        next_in_line = threads.submit(client.synthesize, "hello", **SHORT)
        wait_until(
            "a full engine with a request that waits",
            lambda: (
                runner.is_over.is_set()
                or (gauge(server, "sequences_running"), gauge(server, "requests_waiting")) == (2, 1)
            ),
        )
        left_s = leave()
        steps_before = runner.num_steps
        wait_until("a free slot", lambda: gauge(server, "requests_waiting") == 0)
        freed_ms, num_steps = 1000 * (time.monotonic() - left_s), runner.num_steps - steps_before
        audio = next_in_line.result(LIMIT_S)
        is_over = runner.is_over.is_set()
    assert len(audio.samples) == 512 * 60 - 256
    return None if is_over else (freed_ms, num_steps)


@pytest.mark.parametrize("way", WAYS)
def test_a_caller_who_goes_gives_its_slot_to_the_next(
    server: EmbeddedServer, stay_s: float, way: Way, record_property: Callable[[str, object], None]
) -> None:
    tries = (steps_until_the_slot_is_given(server, stay_s, way) for _ in range(TRIES))
    found = next((one for one in tries if one), None)
    assert found, "the slot may have been the other request's each time"
    wait_until("no request", lambda: gauge(server, "running_requests") == 0)
    wait_until("free blocks", lambda: gauge(server, "kv_blocks_used") == 0)
    assert gauge(server, "kv_blocks_total") > 0
    record_property("milliseconds", round(found[0]))
    record_property("engine_steps", found[1])


def test_the_input_cancel_ends_a_request_within_a_few_steps(server: EmbeddedServer) -> None:
    with (
        TokenStream(server.grpc_url, "runner", STEPS) as runner,
        TokenStream(server.grpc_url, "victim", STEPS) as cancelled,
    ):
        cancelled.wait_for_step(10)
        cancelled.cancel_by_id()
        assert cancelled.is_over.wait(LIMIT_S)
        assert cancelled.finish_reason == "cancelled"
        assert cancelled.num_steps < STEPS
        assert not runner.is_over.is_set()
        wait_until("one sequence", lambda: read_total(server, "chattts_sequences_running") == 1)
        assert not runner.is_over.is_set()
