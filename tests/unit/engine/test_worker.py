from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from chattts_engine.chunk import Chunk
from chattts_engine.messages import Abort, Submit
from chattts_engine.scheduler import Schedule
from chattts_engine.sequence import GenerationRequest
from chattts_engine.stats import Snapshot
from chattts_engine.worker import EngineWorker
from fakes import FakeRunner, make_engine, make_request, run_all

Start = Callable[..., EngineWorker]


class Mailbox:
    """Collects chunks of a worker and waits for the last of a request."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.snapshots: list[Snapshot] = []
        self.failures: list[str] = []
        self.deaths: list[str] = []
        self._changed = threading.Condition()

    def put(self, chunk: Chunk) -> None:
        with self._changed:
            self.chunks.append(chunk)
            self._changed.notify_all()

    def of(self, request_id: str) -> list[Chunk]:
        return [chunk for chunk in self.chunks if chunk.request_id == request_id]

    def wait_for(self, request_id: str, timeout_s: float = 20.0) -> list[Chunk]:
        with self._changed:
            done = self._changed.wait_for(
                lambda: any(chunk.finish_reason for chunk in self.of(request_id)), timeout_s
            )
        assert done, f"{request_id} did not finish"
        return self.of(request_id)


class GatedRunner(FakeRunner):
    """Waits before each decode until the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def decode(self, sequences, inputs):  # type: ignore[no-untyped-def]
        assert self.gate.wait(20)
        return super().decode(sequences, inputs)


class SlowRunner(FakeRunner):
    """Decodes slowly."""

    def decode(self, sequences, inputs):  # type: ignore[no-untyped-def]
        threading.Event().wait(0.005)
        return super().decode(sequences, inputs)


def fail_steps(worker: EngineWorker, when: Callable[[], bool]) -> None:
    """Let steps raise, and no request be to blame."""
    scheduler = worker._engine.scheduler
    schedule = scheduler.schedule

    def failing(now_s: float) -> Schedule:
        if when():
            raise RuntimeError("scripted failure")
        return schedule(now_s)

    scheduler.schedule = failing  # type: ignore[method-assign]


def submit(worker: EngineWorker, request: GenerationRequest) -> None:
    worker.put(Submit(request, time.monotonic()))


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def start(mailbox: Mailbox) -> Iterator[Start]:
    workers: list[EngineWorker] = []

    def start(runner: FakeRunner | None = None, **limits: int) -> EngineWorker:
        engine = make_engine(runner, **limits)
        worker = EngineWorker(
            engine,
            time.monotonic,
            mailbox.put,
            mailbox.snapshots.append,
            mailbox.failures.append,
            mailbox.deaths.append,
        )
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        worker.stop()


def test_chunks_have_the_asked_sizes_and_hold_every_token(start: Start, mailbox: Mailbox) -> None:
    request = make_request("a", max_new_tokens=23, first_chunk_tokens=3, chunk_tokens=8)
    submit(start(), request)
    chunks = mailbox.wait_for("a")
    assert [len(chunk.tokens) for chunk in chunks] == [3, 8, 8, 4]
    assert [chunk.finish_reason for chunk in chunks] == [None, None, None, "length"]
    assert [chunk.num_generated for chunk in chunks] == [3, 11, 19, 23]
    tokens = [tuple(row) for chunk in chunks for row in chunk.tokens.tolist()]
    assert tokens == run_all(make_engine(), [request]).tokens["a"]
    assert sum(len(chunk.hidden) for chunk in chunks) == 23


@pytest.mark.parametrize("num_tokens", [1, 2, 3])
def test_the_shortest_requests_end_in_order(
    start: Start, mailbox: Mailbox, num_tokens: int
) -> None:
    """The prefill draws the first token, so it may also be the last."""
    submit(start(), make_request("a", max_new_tokens=num_tokens, first_chunk_tokens=1))
    chunks = mailbox.wait_for("a")
    assert sum(len(chunk.tokens) for chunk in chunks) == num_tokens
    assert [chunk.finish_reason for chunk in chunks][-1] == "length"
    assert chunks[-1].num_generated == num_tokens


def test_hidden_states_are_left_out_when_not_asked_for(start: Start, mailbox: Mailbox) -> None:
    submit(start(), make_request("a", return_hidden=False))
    assert all(chunk.hidden.shape == (0, 8) for chunk in mailbox.wait_for("a"))


def test_abort_ends_a_request_with_what_it_has(start: Start, mailbox: Mailbox) -> None:
    runner = GatedRunner()
    worker = start(runner)
    submit(
        worker, make_request("a", max_new_tokens=200, chunk_tokens=2048, first_chunk_tokens=2048)
    )
    worker.put(Abort("a"))
    worker.put(Abort("unknown"))
    runner.gate.set()
    (chunk,) = mailbox.wait_for("a")
    assert chunk.finish_reason == "cancelled"


def test_a_step_that_raises_fails_the_running_requests_and_the_worker_lives(
    start: Start, mailbox: Mailbox
) -> None:
    worker = start()
    steps = itertools.count()
    fail_steps(worker, lambda: next(steps) == 3)
    submit(worker, make_request("a"))
    (*_, last) = mailbox.wait_for("a")
    assert last.finish_reason == "error"
    assert last.error == "the engine failed: scripted failure"
    assert "scripted failure" in mailbox.failures[0]
    submit(worker, make_request("b"))
    assert mailbox.wait_for("b")[-1].finish_reason == "length"


def test_what_a_step_did_before_it_raised_is_delivered(start: Start, mailbox: Mailbox) -> None:
    """The deadline ends "late" in the very step that raises."""
    worker = start(SlowRunner())
    running = worker._engine.scheduler.running
    most = 0

    def has_become_one() -> bool:
        nonlocal most
        most = max(most, len(running))
        return most == 2 and len(running) == 1

    fail_steps(worker, has_become_one)
    submit(worker, make_request("steady", max_new_tokens=200))
    submit(worker, make_request("late", max_new_tokens=200, deadline_s=time.monotonic() + 0.2))
    assert mailbox.wait_for("late")[-1].finish_reason == "deadline"
    assert mailbox.wait_for("steady")[-1].error == "the engine failed: scripted failure"


def test_a_dead_runner_is_the_end_and_no_request_fails_for_it(
    start: Start, mailbox: Mailbox
) -> None:
    """The process ends then, and what runs here goes on in another one."""
    worker = start(FakeRunner(dies_at_decode=3))
    submit(worker, make_request("a"))
    worker._thread.join(20)
    assert "RunnerDeadError: scripted failure" in mailbox.deaths[0]
    assert [chunk for chunk in mailbox.chunks if chunk.finish_reason] == []


def test_a_fault_outside_a_step_is_reported_as_the_end(start: Start, mailbox: Mailbox) -> None:
    def put(chunk: Chunk) -> None:
        raise RuntimeError("cannot deliver")

    mailbox.put = put  # type: ignore[method-assign]
    worker = start()
    submit(worker, make_request("a"))
    worker.stop()
    assert "cannot deliver" in mailbox.deaths[0]


def test_stop_cancels_what_is_left(start: Start, mailbox: Mailbox) -> None:
    runner = GatedRunner()
    worker = start(runner, max_num_seqs=1)
    submit(worker, make_request("a", max_new_tokens=200))
    submit(worker, make_request("b", max_new_tokens=200))
    stopper = threading.Thread(target=worker.stop)
    stopper.start()
    runner.gate.set()
    stopper.join(20)
    assert mailbox.wait_for("a")[-1].finish_reason == "cancelled"
    assert mailbox.wait_for("b")[-1].finish_reason == "cancelled"


def test_requests_from_many_threads_all_finish_unchanged(start: Start, mailbox: Mailbox) -> None:
    worker = start(max_num_seqs=4)
    requests = [make_request(f"r{i}", max_new_tokens=5 + i, seed=i) for i in range(24)]
    threads = [threading.Thread(target=submit, args=(worker, request)) for request in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    expected = run_all(make_engine(), requests).tokens
    for request in requests:
        chunks = mailbox.wait_for(request.id)
        tokens = np.concatenate([chunk.tokens for chunk in chunks])
        assert [tuple(row) for row in tokens.tolist()] == expected[request.id]


def test_snapshots_tell_what_the_engine_holds_and_that_it_lives(
    start: Start, mailbox: Mailbox
) -> None:
    worker = start()
    submit(worker, make_request("a", max_new_tokens=100))
    mailbox.wait_for("a")
    worker.stop()
    first, last = mailbox.snapshots[0], mailbox.snapshots[-1]
    assert (first.num_steps, first.num_kv_blocks_used) == (0, 0)
    assert last.num_kv_blocks > last.num_kv_blocks_used == last.num_running == 0
    assert last.num_generated_tokens == 100 <= last.num_steps
    assert last.num_prefilled_tokens > 0
    assert dict(last.decode_batches) == {1: 99}
    assert last.kv_fragmentation == 0.0
    assert last.resident_bytes > 1 << 20
