"""The pace of a low-latency request, with a clock of its own."""

from __future__ import annotations

import math

import pytest
from chattts_pipeline.pacing import CALL_SHARE, WAIT_SHARE, LowLatency, Pace
from chattts_pipeline.streaming import VocoderSizes

PUBLISHED = VocoderSizes(52, 512, 2, 3)
SAMPLE_RATE = 24_000
STEP = 512
STEP_S = STEP / SAMPLE_RATE
CALLS_PER_PIECE = 3


def steps_in(seconds: float) -> int:
    return math.ceil(seconds / STEP_S)


class Listener:
    """A pace and the clock that it looks at."""

    def __init__(self, speed: float = 1.0) -> None:
        self.now = 1000.0
        low_latency = LowLatency(lookahead_steps=12, first_steps=8)
        self.pace = Pace(low_latency, PUBLISHED, SAMPLE_RATE, lambda: self.now, speed)

    def wanted_after_s(self, seconds: float) -> int:
        self.now += seconds
        return self.pace.wanted_steps()


def test_the_first_piece_is_as_small_as_the_operator_says() -> None:
    assert Listener().wanted_after_s(5.0) == 8


def test_pieces_grow_with_what_the_listener_has_in_hand_and_shrink_as_it_is_played() -> None:
    listener = Listener()
    listener.pace.add_sent(60 * STEP)
    assert listener.wanted_after_s(0.0) == steps_in(WAIT_SHARE * 60 * STEP_S)
    assert listener.wanted_after_s(20.5 * STEP_S) == steps_in(WAIT_SHARE * 39.5 * STEP_S)
    assert listener.wanted_after_s(35 * STEP_S) == 8


@pytest.mark.parametrize("speed", [0.5, 2.0])
def test_a_piece_holds_more_steps_where_they_are_played_faster(speed: float) -> None:
    listener = Listener(speed)
    listener.pace.add_sent(60 * STEP)
    assert listener.wanted_after_s(0.0) == steps_in(WAIT_SHARE * 60 * STEP_S * speed)


def test_the_calls_for_a_piece_are_over_before_the_listener_runs_dry() -> None:
    listener = Listener()
    listener.pace.add_sent(100 * STEP)
    in_no_time = listener.pace.wanted_steps()
    listener.pace.add_call(0.1)
    calls_s = CALLS_PER_PIECE * 0.1
    assert listener.pace.wanted_steps() == steps_in(WAIT_SHARE * (100 * STEP_S - calls_s))
    assert listener.pace.wanted_steps() < in_no_time


def test_a_listener_who_had_to_wait_is_not_behind_for_ever() -> None:
    listener = Listener()
    listener.pace.add_sent(8 * STEP)
    assert listener.wanted_after_s(60.0) == 8
    listener.pace.add_sent(40 * STEP)
    assert listener.wanted_after_s(0.0) == steps_in(WAIT_SHARE * 40 * STEP_S)


def test_pieces_last_longer_than_the_calls_for_them() -> None:
    listener = Listener()
    listener.pace.add_sent(8 * STEP)
    listener.now += 60.0
    for _ in range(40):
        listener.pace.add_call(0.2)
    assert listener.pace.wanted_steps() == steps_in(CALLS_PER_PIECE * 0.2 / CALL_SHARE)
    for _ in range(40):
        listener.pace.add_call(0.001)
    assert listener.pace.wanted_steps() == 8


def test_one_slow_call_does_not_decide() -> None:
    listener = Listener()
    listener.pace.add_sent(8 * STEP)
    listener.now += 60.0
    for _ in range(10):
        listener.pace.add_call(0.01)
    listener.pace.add_call(0.2)
    assert 8 < listener.pace.wanted_steps() < steps_in(CALLS_PER_PIECE * 0.2 / CALL_SHARE) / 2
