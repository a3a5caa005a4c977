"""Places for requests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from chattts_pipeline.slots import Slot, Slots


def take(slots: Slots) -> Slot:
    slot = slots.take()
    assert slot is not None
    return slot


def test_as_many_as_there_are_get_one_and_the_next_gets_what_is_freed() -> None:
    slots = Slots(2)
    first, _ = take(slots), take(slots)
    assert slots.take() is None
    first.free()
    take(slots)
    assert slots.take() is None


def test_a_slot_that_many_threads_free_is_free_once() -> None:
    slots = Slots(3)
    slot, other = take(slots), take(slots)
    with ThreadPoolExecutor(8) as threads:
        for _ in range(100):
            threads.submit(slot.free)
    other.free()
    assert [slots.take() is None for _ in range(4)] == [False, False, False, True]
