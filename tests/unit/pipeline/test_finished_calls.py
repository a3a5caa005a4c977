"""Finished calls are held until a look for cancellation that began later has come back."""

from __future__ import annotations

import weakref

from chattts_pipeline.finished_calls import FinishedCalls


class Call:
    pass


class Sender:
    def __init__(self, calls: FinishedCalls, is_cancelled: bool = False) -> None:
        self._calls = calls
        self._answer = is_cancelled
        self.finishes_meanwhile: list[Call] = []

    def is_cancelled(self) -> bool:
        for call in self.finishes_meanwhile:
            self._calls.add(call)
        return self._answer


def test_a_call_is_dropped_after_the_next_look() -> None:
    calls = FinishedCalls()
    call = Call()
    calls.add(call)
    reference = weakref.ref(call)
    del call
    assert reference() is not None
    assert not calls.is_cancelled(Sender(calls))
    assert reference() is None


def test_a_call_that_finishes_during_a_look_waits_for_the_next() -> None:
    calls = FinishedCalls()
    sender = Sender(calls)
    sender.finishes_meanwhile = [Call()]
    calls.is_cancelled(sender)
    assert len(calls) == 1


def test_a_positive_answer_drops_nothing_since_it_may_be_a_memory() -> None:
    calls = FinishedCalls()
    calls.add(Call())
    assert calls.is_cancelled(Sender(calls, is_cancelled=True))
    assert len(calls) == 1
    calls.clear()
    assert len(calls) == 0
