"""The soak test's own judgement: what counts as explained, as right, as grown, as lost."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from chattts_client import RequestTimeoutError, ServerUnavailableError
from chattts_soak import asynchronous
from chattts_soak.callers import Target
from chattts_soak.outcomes import Outcome, Tally, WrongAnswerError, explain
from chattts_soak.relay import Relay
from chattts_soak.traffic import KINDS, LEFT_AT_THE_END, Deck, Traffic, Volume
from chattts_soak.utterances import Repertoire, Utterance
from chattts_soak.verdict import (
    LOST_BYTES,
    faults_at_rest,
    faults_of_growth,
    faults_of_traffic,
    growth_under_load,
)
from chattts_soak.watch import Part, Snapshot
from tritonclient.utils import InferenceServerException

RAMP = np.arange(10 * 512 - 256, dtype=np.float32)
WHOLE = Utterance("hello", {"seed": 1}, RAMP, num_segments=1, context_steps=2)
LONG_S, SHORT_S = 1200.0, 30.0
MEGABYTE = 10**6


def part(heap: int, num_threads: int = 10, num_processes: int = 1) -> Part:
    return Part(num_processes, 2 * heap, heap, heap, num_threads, num_fds=5)


def snapshot(heap: int = 100 * MEGABYTE, **metrics: float) -> Snapshot:
    gauges = {"chattts_running_requests": 0.0, "chattts_kv_blocks_used": 0.0, **metrics}
    return Snapshot(0.0, {"tritonserver": part(heap), "chattts": part(50)}, 10, gauges)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ServerUnavailableError("64 requests are running; try again in 1 s"), Outcome.FULL),
        (ServerUnavailableError("failed to connect to all addresses"), Outcome.UNEXPLAINED),
        (InferenceServerException("UNAVAILABLE: full; try again in 1 s"), Outcome.FULL),
        (InferenceServerException("INTERNAL: try again"), Outcome.UNEXPLAINED),
        (RequestTimeoutError("Deadline Exceeded"), Outcome.UNEXPLAINED),
        (WrongAnswerError("sample 3 differs"), Outcome.UNEXPLAINED),
    ],
)
def test_only_a_refusal_with_a_hint_explains_itself(error: Exception, outcome: Outcome) -> None:
    assert explain(error) is outcome


def test_one_changed_sample_is_a_wrong_answer() -> None:
    WHOLE.check_whole(RAMP.copy())
    WHOLE.check_beginning(RAMP[:700])
    changed = RAMP.copy()
    changed[300] += 1
    for check, samples in (
        (WHOLE.check_whole, changed),
        (WHOLE.check_whole, RAMP[:-1]),
        (WHOLE.check_beginning, changed[:700]),
        (WHOLE.check_beginning, np.append(RAMP, RAMP[:1])),
    ):
        with pytest.raises(WrongAnswerError):
            check(samples)


def test_a_segment_cut_short_may_differ_within_the_context_of_its_end_only() -> None:
    samples = RAMP[: 6 * 512 - 256].copy()
    samples[4 * 512 :] += 1
    WHOLE.check_cut_short(samples)
    WHOLE.check_cut_short(RAMP[:0])
    for wrong in (samples[:-1], np.concatenate((RAMP[:100], samples[101:], RAMP[:1]))):
        with pytest.raises(WrongAnswerError):
            WHOLE.check_cut_short(wrong)


def test_memory_that_grows_is_a_fault_but_what_the_server_is_known_to_lose_is_not() -> None:
    snapshots = [snapshot(100 * MEGABYTE + number * MEGABYTE) for number in range(16)]
    tally = Tally()
    total, shared, *_ = growths = growth_under_load(snapshots, tally)
    assert total.ratio == pytest.approx(113.5 / 101.5, abs=1e-5)
    assert shared.ratio == 1.0
    assert [fault.split()[0] for fault in faults_of_growth(growths, "", SHORT_S)] == ["memory"]
    assert len(list(faults_of_growth(growths, "", LONG_S))) == 2  # the part that grew, too
    for _ in range(16 * MEGABYTE // LOST_BYTES):
        tally.add(LEFT_AT_THE_END, Outcome.LEFT)
    assert not list(faults_of_growth(growth_under_load(snapshots, tally), "", LONG_S))


def test_too_few_snapshots_say_nothing_about_growth() -> None:
    assert growth_under_load([snapshot()] * 7, Tally()) == []


def test_what_is_not_given_back_is_a_fault() -> None:
    before = snapshot()
    assert not list(faults_at_rest(before, snapshot()))
    (running,) = faults_at_rest(before, snapshot(chattts_running_requests=2))
    assert running == "2 requests still run at the end"
    (blocks,) = faults_at_rest(before, snapshot(chattts_kv_blocks_used=3))
    assert blocks == "3 KV blocks are in use at the end"
    more = Snapshot(0.0, {**before.parts, "chattts": part(50, 19, 2)}, 10, before.metrics)
    processes, threads = faults_at_rest(before, more)
    assert processes.startswith("processes: ")
    assert threads == "threads of chattts at rest: 10 before, 19 at the end"


def test_a_kind_that_never_occurs_and_an_unexplained_failure_are_faults() -> None:
    tally = Tally()
    tally.add("stream", Outcome.OK)
    assert not list(faults_of_traffic(tally, ["stream"]))
    tally.add_error("stream", RequestTimeoutError("too late"))
    unexplained, missing = faults_of_traffic(tally, ["stream", "long"])
    assert unexplained == ("1 unexplained failures, such as stream: RequestTimeoutError: too late")
    assert missing == "never asked: long"


def test_a_deck_deals_every_kind_as_often_as_it_has_cards_and_the_same_for_one_seed() -> None:
    deck, again, other = Deck(KINDS, "1"), Deck(KINDS, "1"), Deck(KINDS, "2")
    size = sum(count for count, _ in KINDS.values())
    for _ in range(2):
        dealt = [deck.deal() for _ in range(size)]
        same = [again.deal() for _ in range(size)]
        names = [name for name, _ in dealt]
        assert {name: names.count(name) for name in KINDS} == {k: n for k, (n, _) in KINDS.items()}
        assert [(name, chance.random()) for name, chance in dealt] == [
            (name, chance.random()) for name, chance in same
        ]
        assert names != [other.deal()[0] for _ in range(size)]


def test_bursts_that_take_longer_than_the_time_between_them_end_with_the_traffic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bursts = []

    async def slow_burst(*arguments: object) -> None:
        bursts.append(arguments)
        await asyncio.sleep(0.01)

    monkeypatch.setattr(asynchronous, "burst", slow_burst)
    repertoire = Repertoire(short=(WHOLE,), long=(WHOLE,), shaped=(WHOLE,))
    volume = Volume(num_threads=0, num_tasks=0, burst_every_s=1e-6, first_burst_s=0.0)
    with Target.connect("localhost:1", "localhost:1") as target:  # nobody is there
        traffic = Traffic(target, repertoire, Tally(), volume, "1")
        traffic.start()
        while len(bursts) < 5:
            time.sleep(0.01)
        traffic.stop()
        traffic.join()


@pytest.fixture
def echo() -> Iterator[str]:
    """HOST:PORT of a server that sends back what it gets from one client."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        client, _ = listener.accept()
        with client:
            try:
                while block := client.recv(100):
                    client.sendall(block)
            except ConnectionResetError:
                was_reset.set()

    was_reset = threading.Event()
    thread = threading.Thread(target=serve)
    thread.start()
    host, port = listener.getsockname()
    yield f"{host}:{port}"
    thread.join(10)
    listener.close()
    assert was_reset.is_set()


def test_a_relay_passes_bytes_on_and_resets_both_sides(echo: str) -> None:
    with Relay(echo) as relay:
        host, port = relay.url.split(":")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(b"hello")
            assert client.recv(100) == b"hello"
            relay.sever()
            with pytest.raises(ConnectionResetError):
                client.recv(100)
