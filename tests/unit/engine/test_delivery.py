from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from chattts_engine.chunk import Chunk
from chattts_engine.delivery import PULL_LIMIT_S, Deliveries, Pull, Push
from chattts_engine.sequence import FinishReason


@dataclass
class RecordedReply:
    answers: list[tuple[int, str | None, bool]] = field(default_factory=list)
    has_gone: bool = False

    def send(self, chunk: Chunk, is_final: bool) -> None:
        self.answers.append((len(chunk.tokens), chunk.finish_reason, is_final))

    def is_cancelled(self) -> bool:
        assert not any(is_final for *_, is_final in self.answers), "asked after the final answer"
        return self.has_gone


def chunk(num_tokens: int, finish_reason: FinishReason | None = None) -> Chunk:
    tokens = np.zeros((num_tokens, 4), np.int32)
    hidden = np.zeros((num_tokens, 8), np.float32)
    return Chunk("a", "code", tokens, hidden, finish_reason, "", 5, num_tokens, 0.0)


def pulled() -> tuple[Deliveries, RecordedReply]:
    deliveries, reply = Deliveries(), RecordedReply()
    deliveries.add("a", Pull(reply), lambda: None)
    return deliveries, reply


def test_pushed_chunks_are_responses_of_the_request() -> None:
    deliveries, reply = Deliveries(), RecordedReply()
    deliveries.add("a", Push(reply), lambda: None)
    deliveries.put(chunk(3))
    deliveries.put(chunk(2, "eos"))
    assert reply.answers == [(3, None, False), (2, "eos", True)]
    assert len(deliveries) == 0
    assert deliveries.give_up(0.0) == []


def test_a_pushed_request_cannot_be_pulled() -> None:
    deliveries = Deliveries()
    deliveries.add("a", Push(RecordedReply()), lambda: None)
    with pytest.raises(ValueError, match="^next: the request was not made with pull"):
        deliveries.ask("a", RecordedReply())


def test_each_pull_gets_one_final_answer() -> None:
    deliveries, first = pulled()
    deliveries.put(chunk(3))
    second = RecordedReply()
    deliveries.ask("a", second)
    assert second.answers == []
    deliveries.put(chunk(2, "eos"))
    assert first.answers == [(3, None, True)]
    assert second.answers == [(2, "eos", True)]
    assert len(deliveries) == 0


def test_what_comes_between_two_pulls_is_joined() -> None:
    deliveries, _ = pulled()
    for size in (3, 4, 5):
        deliveries.put(chunk(size))
    deliveries.put(chunk(1, "length"))
    reply = RecordedReply()
    deliveries.ask("a", reply)
    assert reply.answers == [(10, "length", True)]
    assert len(deliveries) == 0


def test_two_open_pulls_are_refused() -> None:
    deliveries, _ = pulled()
    with pytest.raises(ValueError, match="^next: an earlier call"):
        deliveries.ask("a", RecordedReply())


def test_an_unknown_request_cannot_be_pulled() -> None:
    with pytest.raises(ValueError, match="^next: 'a' is not a running request"):
        Deliveries().ask("a", RecordedReply())


def test_a_cancelled_request_answers_an_open_pull_and_is_forgotten() -> None:
    deliveries, first = pulled()
    deliveries.put(chunk(0, "cancelled"))
    assert first.answers == [(0, "cancelled", True)]
    assert len(deliveries) == 0


def test_a_cancelled_request_that_nobody_waits_for_is_forgotten() -> None:
    deliveries, _ = pulled()
    deliveries.put(chunk(3))
    deliveries.put(chunk(0, "cancelled"))
    assert len(deliveries) == 0


def test_a_pull_is_given_up_when_nobody_has_waited_for_a_while() -> None:
    deliveries, _ = pulled()
    queued_s = 10 * PULL_LIMIT_S
    assert deliveries.give_up(queued_s) == []
    deliveries.put(chunk(3))
    assert deliveries.give_up(queued_s) == []
    deliveries.ask("a", RecordedReply())
    deliveries.put(chunk(3))
    assert deliveries.give_up(2 * queued_s) == []
    assert deliveries.give_up(2 * queued_s + PULL_LIMIT_S) == []
    assert deliveries.give_up(2 * queued_s + PULL_LIMIT_S + 1) == ["a"]
    assert len(deliveries) == 0
    deliveries.put(chunk(1, "cancelled"))


def test_a_caller_that_has_gone_is_given_up_until_its_last_chunk() -> None:
    deliveries, reply = Deliveries(), RecordedReply()
    deliveries.add("a", Push(reply), lambda: None)
    reply.has_gone = True
    assert deliveries.give_up(0.0) == ["a"]
    deliveries.put(chunk(0, "cancelled"))
    assert reply.answers == [(0, "cancelled", True)]
    assert len(deliveries) == 0


def test_a_refused_request_is_not_kept() -> None:
    deliveries = Deliveries()

    def refuse() -> None:
        raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        deliveries.add("a", Push(RecordedReply()), refuse)
    assert len(deliveries) == 0


def test_a_dropped_request_gets_nothing_more() -> None:
    deliveries, reply = pulled()
    deliveries.drop("a")
    deliveries.drop("a")
    deliveries.put(chunk(3))
    assert reply.answers == []
