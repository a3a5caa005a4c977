"""Order, limits and readers that do not read, on real servers: who waits, ends, is refused."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import token_model
from chattts_bench import processes
from launcher import EmbeddedServer
from metrics import read_total
from repository_copies import copy_repository
from speech_calls import Array, CallError, audio, open_stream, stream, wire_request
from throw_away import wait_until
from tritonclient.grpc import InferResult, service_pb2_grpc
from tritonclient.utils import InferenceServerException

NUM_WAITING = 6
HEAD_START_MS = 400
LONG, SHORT = 2000, 20
SENTENCES = "hello world. this is a test. the cat reads a book. hello anna."
QUEUE_LIMIT = f"UNAVAILABLE: {NUM_WAITING} requests are waiting already; try again"


def run_server(repository: Path) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(repository)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def narrow(
    tiny_repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServer]:
    """One slot, and a short queue before it."""
    yield from run_server(
        copy_repository(
            tiny_repository,
            tmp_path_factory.mktemp("narrow") / "models",
            max_num_seqs=1,
            max_num_waiting=NUM_WAITING,
            priority_head_start_ms=HEAD_START_MS,
        )
    )


@pytest.fixture(scope="module")
def scarce(
    tiny_repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServer]:
    """Eight slots, and KV blocks for two requests of 200 steps."""
    yield from run_server(
        copy_repository(
            tiny_repository,
            tmp_path_factory.mktemp("scarce") / "models",
            max_num_seqs=8,
            num_kv_blocks=28,
        )
    )


def tokens_of(steps: int, seed: int = 1, **inputs: Any) -> dict[str, Any]:
    """Inputs of the token model that give so many steps in one response."""
    prompt = "[Stts][empty_spk][speed_5]hello[Ptts]"
    lengths = {"min_new_tokens": steps, "max_new_tokens": steps, "chunk_tokens": 2048}
    return {"prompt": prompt, "seed": seed, **lengths, **inputs}


def speech_of(steps: int, seed: int = 1, text: str = "hello world.") -> dict[str, Any]:
    """Inputs of chattts that give so many steps per segment."""
    return {"text": text, "seed": seed, "min_new_tokens": steps, "max_new_tokens": steps}


def occupy(opened: token_model.Stream, server: EmbeddedServer, **inputs: Any) -> None:
    """Take the only slot for some time."""
    opened.send("running", **tokens_of(LONG, **inputs))
    wait_until(lambda: read_total(server, "chattts_sequences_running") == 1, "it runs")


def names_of(responses: list[Any]) -> list[str]:
    assert all(token_model.is_last(response) for response in responses)
    return [response.get_response().id for response in responses]


def test_a_high_priority_overtakes_a_full_queue_and_one_too_many_is_refused_at_once(
    narrow: EmbeddedServer,
) -> None:
    with token_model.open_stream(narrow.grpc_url) as opened:
        occupy(opened, narrow)
        for number in range(NUM_WAITING - 2):
            opened.send(f"low {number}", **tokens_of(SHORT, priority=3))
        opened.send("middle", **tokens_of(SHORT, priority=2))
        opened.send("high", **tokens_of(SHORT, priority=1))
        opened.send("one too many", **tokens_of(SHORT, priority=1))
        with pytest.raises(InferenceServerException, match=QUEUE_LIMIT):
            opened.next_response()
        finished = names_of([opened.next_response() for _ in range(NUM_WAITING + 1)])
    lows = [f"low {number}" for number in range(NUM_WAITING - 2)]
    assert finished == ["running", "high", "middle", *lows]


def test_constant_high_load_does_not_starve_a_low_priority(narrow: EmbeddedServer) -> None:
    """Three of priority 1 are in flight all the time, so the slot is never free by itself."""
    numbers = itertools.count()
    with token_model.open_stream(narrow.grpc_url) as opened:

        def send_high() -> None:
            opened.send(f"high {next(numbers)}", **tokens_of(100, priority=1))

        for _ in range(3):
            send_high()
        opened.send("low", **tokens_of(SHORT, priority=3))
        num_before = next(numbers)
        served: list[str] = []
        while "low" not in served:
            assert len(served) < 2000, "starved"
            served += names_of([opened.next_response()])
            send_high()
        names_of([opened.next_response() for _ in range(3)])
    overtakers = [name for name in served[:-1] if int(name.split()[1]) > num_before]
    assert len(overtakers) >= 3


def test_who_has_no_slot_by_the_queue_deadline_ends_without_work(narrow: EmbeddedServer) -> None:
    """While the slot is taken; who runs is not touched by its own queue deadline."""
    with token_model.open_stream(narrow.grpc_url) as opened:
        occupy(opened, narrow, queue_deadline_ms=200)
        opened.send("queue", **tokens_of(SHORT, queue_deadline_ms=50))
        opened.send("run", **tokens_of(SHORT, deadline_ms=50))
        late = [opened.next_response() for _ in range(2)]
        (running,) = names_of([opened.next_response()])
    assert sorted(names_of(late)) == ["queue", "run"]
    for response in late:
        ended = token_model.join([response])
        assert (ended.finish_reason, len(ended.codes)) == ("deadline", 0)
        assert ended.usage[1] == 0
        assert ended.usage[2] >= 50
    assert running == "running"


def test_speech_that_is_not_begun_by_the_queue_deadline_ends_whole(narrow: EmbeddedServer) -> None:
    with token_model.open_stream(narrow.grpc_url) as opened:
        occupy(opened, narrow)
        with open_stream(
            narrow, **speech_of(SHORT, text=SENTENCES), queue_deadline_ms=50
        ) as responses:
            (response,) = responses
        assert names_of([opened.next_response()]) == ["running"]
    assert response.is_final
    assert set(response.metadata["finish_reasons"]) == {"deadline"}
    assert response.metadata["num_segments"] == len(response.metadata["finish_reasons"]) > 1
    assert len(response.samples) == 0


def test_more_callers_than_the_queue_holds_are_served_or_told_to_come_back(
    narrow: EmbeddedServer,
) -> None:
    num_callers = 3 * NUM_WAITING

    def speak(seed: int) -> Array | CallError:
        try:
            return audio(stream(narrow, **speech_of(300, seed)))
        except CallError as error:
            return error

    with ThreadPoolExecutor(num_callers) as pool:
        results = list(pool.map(speak, range(num_callers)))
    refusals = [result for result in results if isinstance(result, CallError)]
    assert {error.code for error in refusals} == {"UNAVAILABLE"}
    assert all("try again in" in error.message for error in refusals)
    assert num_callers - len(refusals) > NUM_WAITING
    for seed, result in enumerate(results):
        if not isinstance(result, CallError):
            expected = audio(stream(narrow, **speech_of(300, seed)))
            assert result.tobytes() == expected.tobytes()


def test_the_first_segment_is_heard_while_the_next_waits_and_pieces_are_in_order(
    narrow: EmbeddedServer,
) -> None:
    request = speech_of(LONG // 2, text=SENTENCES)
    with open_stream(narrow, **request) as responses:
        pieces = [next(responses)]
        assert len(pieces[0].samples) > 0
        wait_until(
            lambda: (
                read_total(narrow, "chattts_sequences_running") == 1
                and read_total(narrow, "chattts_requests_waiting") == 1
            ),
            "one segment runs and the next waits",
        )
        pieces += responses
    segments = [piece.metadata["segment_index"] for piece in pieces]
    assert segments == sorted(segments)
    assert set(segments) == set(range(pieces[0].metadata["num_segments"]))
    assert [piece.is_final for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    once = audio(stream(narrow, **request, stream=False))
    assert audio(pieces).tobytes() == once.tobytes()


def test_blocks_for_a_quarter_of_the_requests_change_no_sample(
    scarce: EmbeddedServer, tiny_server: EmbeddedServer
) -> None:
    requests = [speech_of(180 + 2 * seed, seed) for seed in range(16)]
    before = read_total(scarce, "chattts_preemptions_total")
    with ThreadPoolExecutor(len(requests)) as pool:
        got = list(pool.map(lambda request: audio(stream(scarce, **request)), requests))
    for request, samples in zip(requests, got, strict=True):
        assert samples.tobytes() == audio(stream(tiny_server, **request)).tobytes()
    wait_until(lambda: read_total(scarce, "chattts_kv_blocks_used") == 0, "all blocks are free")
    assert read_total(scarce, "chattts_preemptions_total") > before


class Unread:
    """A stream whose reader does not read: the server can send what HTTP/2's window takes."""

    def __init__(self, server: EmbeddedServer, inputs: dict[str, Any]) -> None:
        self._may_end = threading.Event()
        # The window would grow with the bandwidth that gRPC estimates.
        options = [("grpc.http2.bdp_probe", 0), ("grpc.max_receive_message_length", -1)]
        self._channel = grpc.insecure_channel(server.grpc_url, options)
        stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)
        self._call = stub.ModelStreamInfer(self._requests(wire_request(**inputs)))

    def _requests(self, request: Any) -> Iterator[Any]:
        yield request
        self._may_end.wait(60)

    def read(self) -> Array:
        """Read to the end after all."""
        pieces = []
        for message in self._call:
            assert not message.error_message
            pieces.append(InferResult(message.infer_response).as_numpy("audio"))
            if message.infer_response.parameters["triton_final_response"].bool_param:
                break
        self.close()
        return np.concatenate([piece for piece in pieces if piece is not None])

    def leave(self) -> None:
        self._call.cancel()
        self.close()

    def close(self) -> None:
        self._may_end.set()
        self._channel.close()


def test_readers_that_do_not_read_hold_up_nobody_and_bounded_memory(
    tiny_server: EmbeddedServer,
) -> None:
    """What they have not read is kept by the server, and no more than that, again and again."""
    slow, other = speech_of(1000, text=SENTENCES), speech_of(300)
    expected = audio(stream(tiny_server, **slow))
    expected_other = audio(stream(tiny_server, **other))
    assert tiny_server.pid is not None
    tree = processes.server_tree(tiny_server.pid)
    most = processes.memory(tree).pss + 3 * 2 * expected.nbytes
    for _ in range(2):
        reader, leaver = Unread(tiny_server, slow), Unread(tiny_server, slow)
        with ThreadPoolExecutor(4) as pool:
            others = list(pool.map(lambda _: audio(stream(tiny_server, **other)), range(8)))
        assert all(samples.tobytes() == expected_other.tobytes() for samples in others)
        # They hold nothing of the engine either: they come to their end though nobody has read.
        wait_until(lambda: read_total(tiny_server, "chattts_running_requests") == 0, "all is made")
        wait_until(lambda: read_total(tiny_server, "chattts_kv_blocks_used") == 0, "blocks free")
        assert processes.memory(tree).pss < most
        assert reader.read().tobytes() == expected.tobytes()
        leaver.leave()
        assert audio(stream(tiny_server, **other)).tobytes() == expected_other.tobytes()
        assert processes.memory(tree).pss < most
