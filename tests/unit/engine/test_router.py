"""The router over engines that run in threads here, and die when the test says so."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from chattts_engine.chunk import Chunk, ending_chunk
from chattts_engine.engine_handle import EngineStartError
from chattts_engine.messages import Command, Ready, Submit
from chattts_engine.router import (
    MAX_DEATHS,
    SILENCE_LIMIT_S,
    Callbacks,
    EngineRouter,
    QueueFullError,
)
from chattts_engine.sequence import GenerationRequest
from chattts_engine.worker import EngineWorker
from fakes import FAKE_GPT, FakeRunner, make_engine, make_request, run_all

LIMIT_S = 20.0
LIMITS = {"max_num_seqs": 2, "max_num_waiting": 100}


class SlowRunner(FakeRunner):
    """Takes a moment per step, so that engines can die in the middle of requests."""

    def decode(self, sequences: Any, inputs: Any) -> Any:
        threading.Event().wait(0.0005)
        return super().decode(sequences, inputs)


class ThreadEngine:
    """An engine in this process; `die` loses everything, as a killed process does."""

    def __init__(self, index: int, on_message: Any, on_end: Any, poison: str) -> None:
        self.index = index
        self.ready = Ready(256, 64, 1, "fake")
        self.last_heard_s = 0.0
        self.is_alive = True
        self.num_submitted = 0
        self._on_message, self._on_end = on_message, on_end
        self._poison = poison
        self._lock = threading.RLock()
        self._worker = EngineWorker(
            make_engine(SlowRunner(), **LIMITS),
            time.monotonic,
            self._say,
            self._say,
            self._say,
            print,
        )

    def listen(self) -> None:
        pass

    def send(self, command: Command) -> None:
        if isinstance(command, Submit):
            self.num_submitted += 1
            if command.request.id == self._poison:
                threading.Timer(0.01, self.die).start()
        self._worker.put(command)

    def stop(self) -> None:
        self._worker.stop()
        self.is_alive = False

    def kill(self) -> None:
        self.die()

    def die(self) -> None:
        with self._lock:
            was_alive, self.is_alive = self.is_alive, False
        if was_alive:
            self._on_end(self)
            threading.Thread(target=self._worker.stop).start()

    def _say(self, message: Any) -> None:
        with self._lock:
            if self.is_alive:
                self._on_message(self, message)


class Callers:
    """Joins what comes per request, and waits for ends."""

    def __init__(self) -> None:
        self.chunks: dict[str, list[Chunk]] = {}
        self.failures: list[str] = []
        self.deaths: list[str] = []
        self._changed = threading.Condition()

    def put(self, chunk: Chunk) -> None:
        with self._changed:
            chunks = self.chunks.setdefault(chunk.request_id, [])
            assert not chunks or chunks[-1].finish_reason is None, "a chunk after the last"
            chunks.append(chunk)
            self._changed.notify_all()

    def end_of(self, request_id: str) -> Chunk:
        with self._changed:

            def has_ended() -> bool:
                chunks = self.chunks.get(request_id)
                return bool(chunks and chunks[-1].finish_reason)

            assert self._changed.wait_for(has_ended, LIMIT_S), f"{request_id} did not end"
            return self.chunks[request_id][-1]

    def tokens_of(self, request_id: str) -> list[tuple[int, ...]]:
        tokens = np.concatenate([chunk.tokens for chunk in self.chunks[request_id]])
        return [tuple(row) for row in tokens.tolist()]


class Setup:
    """A router, its engines and its callers."""

    def __init__(self, num_engines: int, poison: str = "", **limits: int) -> None:
        self.callers = Callers()
        self.engines: list[ThreadEngine] = []
        self.poison = poison
        self.num_failing_starts = 0
        self.now_s: float | None = None
        config = make_engine(None, num_engines=num_engines, **{**LIMITS, **limits}).config
        callbacks = Callbacks(
            self.callers.put,
            lambda index, snapshot: None,
            self.callers.failures.append,
            self.callers.deaths.append,
        )
        self.router = EngineRouter(self._start, config, FAKE_GPT, callbacks, self._clock)
        self.router.start()

    def _clock(self) -> float:
        return time.monotonic() if self.now_s is None else self.now_s

    def _start(self, index: int, on_message: Any, on_end: Any) -> ThreadEngine:
        if self.num_failing_starts:
            self.num_failing_starts -= 1
            raise EngineStartError("no memory")
        self.engines.append(ThreadEngine(index, on_message, on_end, self.poison))
        return self.engines[-1]

    @property
    def living(self) -> list[ThreadEngine]:
        return [engine for engine in self.engines if engine.is_alive]


Start = Callable[..., Setup]


@pytest.fixture(autouse=True)
def no_pause_between_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chattts_engine.router.RETRY_START_S", 0.0)


@pytest.fixture
def start() -> Iterator[Start]:
    setups: list[Setup] = []

    def start(num_engines: int, **options: Any) -> Setup:
        setups.append(Setup(num_engines, **options))
        return setups[-1]

    yield start
    for setup in setups:
        setup.router.stop()


def requests_of(number: int, length: int = 40) -> list[GenerationRequest]:
    sizes = {"first_chunk_tokens": 5, "chunk_tokens": 7}
    return [
        make_request(f"r{i}", max_new_tokens=length + i, seed=i, **sizes) for i in range(number)
    ]


def expected(requests: list[GenerationRequest]) -> dict[str, list[tuple[int, ...]]]:
    return run_all(make_engine(), requests).tokens


@pytest.mark.parametrize("seed", range(3))
def test_engines_that_die_at_random_change_no_token(start: Start, seed: int) -> None:
    setup, chance = start(2), random.Random(seed)
    requests = requests_of(12)
    for request in requests:
        setup.router.submit(request)
    for _ in range(4):
        time.sleep(0.01 + 0.02 * chance.random())
        if setup.living:
            chance.choice(setup.living).die()
    ends = [setup.callers.end_of(request.id) for request in requests]
    tokens = expected(requests)
    finished = [end for end in ends if end.finish_reason == "length"]
    assert len(finished) >= len(requests) - 4  # three deaths in a row may hit a few
    assert sum(setup.router.num_deaths.values()) > 0
    for end in finished:
        assert setup.callers.tokens_of(end.request_id) == tokens[end.request_id]
        assert end.num_generated == len(tokens[end.request_id])
    assert setup.router.num_unfinished == 0


def test_a_request_that_kills_engines_takes_no_other_with_it(start: Start) -> None:
    setup = start(1, poison="r1", max_num_seqs=2)
    requests = requests_of(5)
    for request in requests:
        setup.router.submit(request)
    ends = {request.id: setup.callers.end_of(request.id) for request in requests}
    poisoned = ends.pop("r1")
    assert poisoned.finish_reason == "error"
    assert poisoned.error == f"{MAX_DEATHS} engines died while they ran this request"
    assert {end.finish_reason for end in ends.values()} == {"length"}
    for request_id in ends:
        assert setup.callers.tokens_of(request_id) == expected(requests)[request_id]


class IdleEngine:
    """An engine that does nothing by itself: `end_one` ends its oldest request."""

    def __init__(self, index: int, on_message: Any) -> None:
        self.index = index
        self.ready = Ready(256, 64, 1, "fake")
        self.last_heard_s = 0.0
        self.running: list[GenerationRequest] = []
        self.num_ended = 0
        self._on_message = on_message

    def listen(self) -> None:
        pass

    stop = kill = listen

    def send(self, command: Command) -> None:
        assert isinstance(command, Submit)
        self.running.append(command.request)

    def end_one(self) -> None:
        self.num_ended += 1
        self._on_message(self, ending_chunk(self.running.pop(0), FAKE_GPT, "eos", "", 0, 0.0))


def test_engines_share_the_requests_evenly_and_none_idles_while_one_waits() -> None:
    engines: list[IdleEngine] = []

    def start_engine(index: int, on_message: Any, on_end: Any) -> IdleEngine:
        engines.append(IdleEngine(index, on_message))
        return engines[-1]

    config = make_engine(None, num_engines=3, **LIMITS).config
    router = EngineRouter(start_engine, config, FAKE_GPT, Callbacks(*[lambda *_: None] * 4))
    router.start()
    for request in requests_of(90):
        router.submit(request)
    chance = random.Random(1)
    while router.num_unfinished:
        running = [len(engine.running) for engine in engines]
        assert not router.num_waiting or running == [LIMITS["max_num_seqs"]] * 3
        chance.choice([engine for engine in engines if engine.running]).end_one()
    assert sum(engine.num_ended for engine in engines) == 90


def test_a_dead_engine_gets_no_work_and_the_others_go_on(start: Start) -> None:
    setup = start(2)
    setup.num_failing_starts = 2
    dead, living = setup.engines
    dead.die()
    before = dead.num_submitted
    requests = requests_of(8)
    for request in requests:
        setup.router.submit(request)
    for request in requests:
        assert setup.callers.end_of(request.id).finish_reason == "length"
    assert dead.num_submitted == before
    assert living.num_submitted > 0
    assert setup.callers.deaths == []


def test_engines_that_do_not_start_again_are_the_end(start: Start) -> None:
    setup = start(1)
    setup.num_failing_starts = 99
    setup.engines[0].die()
    deadline = time.monotonic() + LIMIT_S
    while not setup.callers.deaths and time.monotonic() < deadline:
        time.sleep(0.01)
    assert setup.callers.deaths == ["engine 0 does not start: no memory"]


def test_one_too_many_is_refused_and_may_come_back(start: Start) -> None:
    setup = start(2, max_num_waiting=1)
    requests = requests_of(6, length=200)
    for request in requests[:5]:
        setup.router.submit(request)
    with pytest.raises(QueueFullError, match="1 requests are waiting already; try again"):
        setup.router.submit(requests[5])
    for request in requests[:5]:
        setup.router.abort(request.id)
        setup.callers.end_of(request.id)
    setup.router.submit(requests[5])


def test_an_id_in_use_and_a_prompt_too_long_are_refused(start: Start) -> None:
    setup = start(1)
    (request,) = requests_of(1, length=200)
    setup.router.submit(request)
    with pytest.raises(ValueError, match="^id: 'r0' is in use"):
        setup.router.submit(request)
    with pytest.raises(ValueError, match="^prompt: 256 tokens are outside"):
        setup.router.submit(make_request("long", prompt_tokens=256))


def test_a_waiting_request_ends_by_cancel_or_deadline_without_an_engine(start: Start) -> None:
    setup = start(1, max_num_seqs=1)
    setup.now_s = 100.0
    running, cancelled, late, queued_late = (
        make_request(name, max_new_tokens=200, **fields)
        for name, fields in {
            "running": {},
            "cancelled": {},
            "late": {"deadline_s": 101.0},
            "queued late": {"queue_deadline_s": 101.0},
        }.items()
    )
    for request in (running, cancelled, late, queued_late):
        setup.router.submit(request)
    setup.router.abort("cancelled")
    setup.router.abort("unknown")
    setup.now_s = 101.0
    setup.router.tick()
    assert setup.callers.end_of("cancelled").finish_reason == "cancelled"
    assert setup.callers.end_of("late").finish_reason == "deadline"
    assert setup.callers.end_of("queued late").queue_s == 1.0
    assert setup.engines[0].num_submitted == 1
    assert setup.callers.end_of("running").finish_reason == "length"


def test_a_higher_priority_overtakes_the_queue(start: Start) -> None:
    setup = start(1, max_num_seqs=1)
    order: list[str] = []
    put = setup.callers.put

    def note(chunk: Chunk) -> None:
        if chunk.finish_reason:
            order.append(chunk.request_id)
        put(chunk)

    setup.router._callbacks = Callbacks(note, *[lambda *_: None] * 3)  # type: ignore[list-item]
    for name, priority in (("first", 2), ("low", 3), ("middle", 2), ("high", 1)):
        setup.router.submit(make_request(name, max_new_tokens=60, priority=priority))
    for name in ("first", "low", "middle", "high"):
        setup.callers.end_of(name)
    assert order == ["first", "high", "middle", "low"]


def test_an_engine_that_has_work_and_says_nothing_is_killed(start: Start) -> None:
    """Its silence counts from when it got work: before, it had nothing to say."""
    setup = start(1)
    setup.now_s = 1000.0
    engine = setup.engines[0]
    engine.last_heard_s = 0.0
    (request,) = requests_of(1, length=200)
    setup.router.submit(request)
    setup.now_s += SILENCE_LIMIT_S
    setup.router.tick()
    assert engine.is_alive
    setup.now_s += 1
    setup.router.tick()
    assert not engine.is_alive
    assert setup.callers.end_of("r0").finish_reason == "length"
    assert setup.callers.tokens_of("r0") == expected([request])["r0"]


def test_a_request_aborted_on_an_engine_that_dies_is_not_run_again(start: Start) -> None:
    setup = start(1)
    (request,) = requests_of(1, length=200)
    engine = setup.engines[0]
    engine.send = lambda command: None  # type: ignore[method-assign,assignment]
    setup.router.submit(request)
    setup.router.abort("r0")
    engine.die()
    assert setup.callers.end_of("r0").finish_reason == "cancelled"


def test_stop_cancels_what_is_left_and_refuses_more(start: Start) -> None:
    setup = start(1, max_num_seqs=1)
    for request in requests_of(3, length=200):
        setup.router.submit(request)
    setup.router.stop()
    for name in ("r0", "r1", "r2"):
        assert setup.callers.end_of(name).finish_reason == "cancelled"
    with pytest.raises(QueueFullError, match="shutting down"):
        setup.router.submit(make_request("new"))
