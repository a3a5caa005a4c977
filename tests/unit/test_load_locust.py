"""The locustfile on a scripted server: users at once, each way to ask, what locust and we note."""

from __future__ import annotations

import csv
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chattts_load.locust_process import (
    LocustError,
    LocustProcess,
    Target,
    run_locust,
    start_locust,
)
from chattts_load.shapes import Shape
from unit.client.fake_answers import WAIT_S, Failure, Inputs, Outputs, Request, utterance
from unit.client.fake_triton import FakeTriton, serve_grpc, serve_http

USERS = 6
NOBODY = "127.0.0.1:1"


class PeerTriton(FakeTriton):
    """Also notes who called."""

    def __init__(self) -> None:
        super().__init__()
        self.peers: set[str] = set()

    def ModelStreamInfer(self, messages: Any, context: Any) -> Any:
        self.peers.add(context.peer())
        return super().ModelStreamInfer(messages, context)


@pytest.fixture
def triton() -> Iterator[tuple[PeerTriton, Target]]:
    """A scripted server over gRPC and HTTP."""
    fake = PeerTriton()
    grpc_server, grpc_url = serve_grpc(fake)
    http_server, http_url = serve_http(fake)
    yield fake, Target(grpc_url, http_url)
    grpc_server.stop(0).wait()
    http_server.shutdown()
    http_server.server_close()


def entries(folder: Path, name: str) -> dict[tuple[str, str], int]:
    """What locust's own CSV counts, by type and name; the requests of the last second may lack."""
    with (folder / f"{name}_stats.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["Type"], row["Name"]): int(row["Request Count"]) for row in csv.DictReader(file)
        }


def test_users_speak_at_once_each_on_a_connection_of_its_own(
    triton: tuple[PeerTriton, Target], tmp_path: Path
) -> None:
    fake, target = triton
    all_at_once = threading.Barrier(USERS)

    def wait_for_all(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        if len(fake.requests) <= USERS:
            all_at_once.wait(WAIT_S)  # breaks if a blocked user keeps the others from asking
        yield from utterance()

    fake.script = wait_for_all
    records = start_locust(tmp_path, "at-once", target, Shape("constant", USERS, 2.0)).finish()
    assert not all_at_once.broken
    assert len(fake.peers) == USERS
    assert len(records) == len(fake.requests) > USERS
    assert all(one.is_ok and one.kind == "stream" for one in records)
    assert all(0 < one.first_audio_s <= one.latency_s for one in records)

    counted = entries(tmp_path, "at-once")
    for entry in ("full", "first audio", "real-time factor ‰"):
        found = sum(n for (kind, name), n in counted.items() if name.startswith(f"{entry} "))
        assert 0 < found <= len(records), entry
    assert counted["", "Aggregated"] <= len(records)  # requests, not entries beside them


def test_a_listener_who_runs_dry_is_an_entry_of_its_own(
    triton: tuple[PeerTriton, Target], tmp_path: Path
) -> None:
    fake, target = triton

    def dry(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        first, second, last = utterance()  # pieces of 11 ms
        yield first
        request.cancelled.wait(0.1)
        yield from (second, last)

    fake.script = dry
    records = start_locust(tmp_path, "dry", target, Shape("constant", 1, 2.0)).finish()
    assert records
    assert all(one.waits >= 1 and one.waited_s > 0.05 for one in records)
    counted = entries(tmp_path, "dry")
    found = sum(n for (_, name), n in counted.items() if name.startswith("underrun "))
    assert 0 < found <= len(records)


def test_refusals_are_failures_and_the_others_go_on(
    triton: tuple[PeerTriton, Target], tmp_path: Path
) -> None:
    fake, target = triton

    def refuse_some(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        if len(fake.requests) % 2:
            raise Failure("UNAVAILABLE", "full")
        yield from utterance()

    fake.script = refuse_some
    records = start_locust(tmp_path, "refused", target, Shape("constant", 2, 2.0)).finish()
    assert {one.error for one in records} == {"", "ServerUnavailableError: full"}
    assert len(records) == len(fake.requests)


def test_http_users_ask_the_model_that_answers_once(
    triton: tuple[PeerTriton, Target], tmp_path: Path
) -> None:
    fake, target = triton
    fake.script = lambda inputs, request: iter(utterance(count=1))
    http_only = Target(target.grpc_url, target.http_url, kinds=("http",))
    records = start_locust(tmp_path, "http", http_only, Shape("constant", 2, 2.0)).finish()
    assert {one.kind for one in records} == {"http"}
    assert {request.model for request in fake.requests} == {"chattts_unary"}
    assert all(one.first_audio_s == pytest.approx(one.latency_s, abs=0.1) for one in records)


def test_open_loop_does_not_wait_for_answers(
    triton: tuple[PeerTriton, Target], tmp_path: Path
) -> None:
    fake, target = triton
    answer = threading.Event()

    def hold(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        # Nothing is answered until the third request is there.
        if len(fake.requests) >= 3:
            answer.set()
        assert answer.wait(WAIT_S)
        yield from utterance()

    fake.script = hold
    shape = Shape("poisson", 1, 3.0)
    records = start_locust(tmp_path, "poisson", target, shape, rate=4.0).finish()
    assert answer.is_set()
    assert len(records) == len(fake.requests) >= 3
    assert all(one.is_ok for one in records)


def test_a_locust_that_cannot_run_says_why(tmp_path: Path) -> None:
    target = Target(NOBODY, NOBODY, lengths="huge=1")
    with pytest.raises(LocustError, match="huge"):
        start_locust(tmp_path, "wrong", target, Shape("constant", 1, 1.0)).finish()


def test_a_locust_that_hangs_is_ended_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[LocustProcess] = []

    def start(*arguments: object) -> LocustProcess:
        hangs = len(started) < 2
        code = "import time; time.sleep(60)" if hangs else "pass"
        process = subprocess.Popen([sys.executable, "-c", code])
        records = tmp_path / "records.jsonl"
        records.touch()
        started.append(
            LocustProcess(process, tmp_path / "log", records, limit_s=0.1 if hangs else WAIT_S)
        )
        return started[-1]

    monkeypatch.setattr("chattts_load.locust_process.start_locust", start)
    target = Target(NOBODY, NOBODY)
    assert run_locust(tmp_path, "hangs", target, Shape("constant", 1, 1.0)) == []
    assert [one.process.returncode for one in started] == [-9, -9, 0]
