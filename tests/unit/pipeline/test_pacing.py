"""The pace of a low-latency request, with a clock of its own."""

from __future__ import annotations

from chattts_pipeline.pacing import LowLatency, Pace
from chattts_pipeline.streaming import VocoderSizes

PUBLISHED = VocoderSizes(52, 512, 2, 3)
SAMPLE_RATE = 24_000
STEP = 512
CALLS_PER_PIECE = 3


class Listener:
    """A pace and the clock that it looks at."""

    def __init__(self) -> None:
        self.now = 1000.0
        low_latency = LowLatency(lookahead_steps=12, first_steps=8)
        self.pace = Pace(low_latency, PUBLISHED, SAMPLE_RATE, lambda: self.now)

    def wanted_after_s(self, seconds: float) -> int:
        self.now += seconds
        return self.pace.wanted_steps()


def test_the_first_piece_is_as_small_as_the_operator_says() -> None:
    assert Listener().wanted_after_s(5.0) == 8


def test_pieces_grow_with_what_the_listener_has_in_hand_and_shrink_as_it_is_played() -> None:
    listener = Listener()
    listener.pace.add_sent(60 * STEP)
    assert listener.wanted_after_s(0) == 30
    assert listener.wanted_after_s(20.5 * STEP / SAMPLE_RATE) == 20
    assert listener.wanted_after_s(30 * STEP / SAMPLE_RATE) == 8


def test_a_listener_who_had_to_wait_is_not_behind_for_ever() -> None:
    listener = Listener()
    listener.pace.add_sent(8 * STEP)
    assert listener.wanted_after_s(60.0) == 8
    listener.pace.add_sent(40 * STEP)
    assert listener.wanted_after_s(0) == 20


def test_pieces_last_twice_as_long_as_the_calls_for_them() -> None:
    listener = Listener()
    listener.pace.add_sent(8 * STEP)
    listener.now += 60.0
    for _ in range(40):
        listener.pace.add_call(0.2)
    calls_s = CALLS_PER_PIECE * 0.2
    assert listener.pace.wanted_steps() == -(-2 * calls_s * SAMPLE_RATE // STEP)
    for _ in range(40):
        listener.pace.add_call(0.001)
    assert listener.pace.wanted_steps() == 8


def test_one_slow_call_does_not_decide() -> None:
    listener = Listener()
    listener.pace.add_sent(8 * STEP)
    listener.now += 60.0
    for _ in range(10):
        listener.pace.add_call(0.01)
    before = listener.pace.wanted_steps()
    listener.pace.add_call(0.1)
    assert before <= listener.pace.wanted_steps() < CALLS_PER_PIECE * 2 * 0.1 * SAMPLE_RATE / STEP
