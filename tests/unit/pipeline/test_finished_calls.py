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


class OvertakenSender:
    """While it asks, another look drops all calls, and one finishes at the address of a former."""

    def __init__(self, calls: FinishedCalls, address: int) -> None:
        self._calls = calls
        self._address = address

    def is_cancelled(self) -> bool:
        assert not self._calls.is_cancelled(Sender(self._calls))
        others = []
        for _ in range(10_000):
            call = Call()
            if id(call) == self._address:
                self._calls.add(call)
                return False
            others.append(call)
        raise AssertionError("Python gave the address to no call")


def test_a_look_drops_no_later_call_that_took_the_address_of_a_former() -> None:
    calls = FinishedCalls()
    call = Call()
    address = id(call)
    calls.add(call)
    del call
    assert not calls.is_cancelled(OvertakenSender(calls, address))
    assert len(calls) == 1


def test_a_positive_answer_drops_nothing_since_it_may_be_a_memory() -> None:
    calls = FinishedCalls()
    calls.add(Call())
    assert calls.is_cancelled(Sender(calls, is_cancelled=True))
    assert len(calls) == 1
    calls.clear()
    assert len(calls) == 0
