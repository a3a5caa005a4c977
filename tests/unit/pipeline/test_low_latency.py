"""Guesses joined without a step: as many samples as exact, right at the end, near it before.

With the real graph of golden/tiny, whose weights are random: its errors say how seams and ends
behave, not how a voice sounds. tests/server/test_streaming.py has the small voice.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden
import numpy as np
import onnxruntime
import pytest
import selfcheck
from chattts_bench.lookahead import SpokenSegment, compare, decibels, speak_segment
from chattts_bench.vocoding import ImpatientPace
from chattts_pipeline.low_latency import LowLatencyStream
from chattts_pipeline.pacing import LowLatency, Pace
from chattts_pipeline.streaming import CHUNK_STEPS, VocoderSizes
from hypothesis import given, settings
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]
P = 512
FADE = P // 2
SAMPLE_RATE = 24_000
LOOKAHEAD, FIRST = 5, 4
HIDDEN: Array = golden.TINY_ARRAYS["long_hidden"]
LONG_HIDDEN = np.resize(HIDDEN, (700, HIDDEN.shape[1]))
PUBLISHED = VocoderSizes(52, P, 2, 3)
WHOLE = 10_000


class Clock:
    """Monotonic seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def session(tiny_repository: Path) -> Any:
    path = tiny_repository / "chattts_vocoder/1/model.onnx"
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def sizes(tiny_repository: Path) -> VocoderSizes:
    facts = json.loads((tiny_repository / "chattts/1/weights/checkpoint.json").read_text())
    return VocoderSizes(facts["context_steps"], P, HIDDEN.shape[1], facts["vocoder_state_size"])


def new_stream(
    sizes: VocoderSizes, lookahead: int = LOOKAHEAD, first: int = FIRST
) -> LowLatencyStream:
    low_latency = LowLatency(lookahead, first)
    return LowLatencyStream(sizes, low_latency, ImpatientPace(low_latency, sizes, SAMPLE_RATE))


def speak(
    session: Any, sizes: VocoderSizes, hidden: Array, arrivals: list[int], **options: int
) -> SpokenSegment:
    stream = new_stream(sizes, **options)
    spoken = speak_segment(stream, session, hidden, arrivals)
    assert stream.is_complete
    assert stream.next_chunk(has_ended=True) is None
    assert len(spoken.samples) == stream.num_sent == P * len(hidden) - P // 2
    return spoken


def exact(session: Any, hidden: Array) -> Array:
    return selfcheck.run_vocoder(session, hidden, WHOLE)


def in_chunks(num_steps: int) -> list[int]:
    """Arrivals as the token model is asked for them."""
    return [LOOKAHEAD + FIRST, *[FIRST] * (num_steps // FIRST)]


@pytest.mark.parametrize(
    "num_steps",
    [1, 2, LOOKAHEAD - 1, LOOKAHEAD, LOOKAHEAD + 1, 9, 10, 23, 24, 25, 75, 76, 77, 500],
)
def test_any_length_has_as_many_samples_as_exact_and_ends_exactly(
    session: Any, sizes: VocoderSizes, num_steps: int
) -> None:
    hidden = LONG_HIDDEN[:num_steps]
    spoken = speak(session, sizes, hidden, in_chunks(num_steps))
    expected = exact(session, hidden)
    end = slice(max(0, len(expected) - P * (LOOKAHEAD - 1)), None)
    assert spoken.samples[end].tobytes() == expected[end].tobytes()
    assert compare(spoken, expected, SAMPLE_RATE, FADE).seam_slope <= 3


@settings(max_examples=30, deadline=None)
@given(
    num_steps=st.integers(1, 160),
    lookahead=st.integers(1, 20),
    first=st.integers(1, 12),
    arrivals=st.lists(st.integers(0, 60), max_size=30),
)
def test_any_schedule_has_as_many_samples_as_exact_and_no_step_at_a_seam(
    session: Any,
    sizes: VocoderSizes,
    num_steps: int,
    lookahead: int,
    first: int,
    arrivals: list[int],
) -> None:
    hidden = HIDDEN[:num_steps]
    spoken = speak(session, sizes, hidden, arrivals, lookahead=lookahead, first=first)
    expected = exact(session, hidden)
    assert compare(spoken, expected, SAMPLE_RATE, FADE).seam_slope <= 3
    end = slice(max(0, len(expected) - P * (lookahead - 1)), None)
    assert spoken.samples[end].tobytes() == expected[end].tobytes()


def test_the_error_falls_with_the_look_ahead_until_nothing_is_left(
    session: Any, sizes: VocoderSizes
) -> None:
    expected = exact(session, HIDDEN)
    errors = []
    for lookahead in (1, 3, 5, 7, 10, sizes.context_steps + 1):
        arrivals = [lookahead + FIRST, *[FIRST] * 40]
        spoken = speak(session, sizes, HIDDEN, arrivals, lookahead=lookahead)
        errors.append(decibels(compare(spoken, expected, SAMPLE_RATE, FADE).error))
    assert errors == sorted(errors, reverse=True)
    assert -10 < errors[0] < 10
    assert errors[-1] == -200


def test_pieces_begin_once_look_ahead_and_first_piece_are_there(
    session: Any, sizes: VocoderSizes
) -> None:
    spoken = speak(session, sizes, HIDDEN, [1] * len(HIDDEN))
    assert spoken.first_steps == LOOKAHEAD + FIRST
    assert {len(piece) for piece in spoken.pieces[:-3]} == {FIRST * P}


def feed(stream: LowLatencyStream, num_steps: int, has_ended: bool = False) -> tuple[int, int]:
    """Add steps of ones, make the calls that are due; return how many, and the samples."""
    stream.append(np.ones((num_steps, PUBLISHED.hidden_size), np.float32))
    num_calls = num_samples = 0
    while chunk := stream.next_chunk(has_ended):
        assert chunk.hidden.shape == (CHUNK_STEPS, PUBLISHED.hidden_size)
        assert np.array_equal(chunk.hidden[:, 0], chunk.mask)
        num_calls += 1
        num_samples += len(stream.accept(np.zeros(CHUNK_STEPS * P, np.float32), chunk.state))
    return num_calls, num_samples


def test_cost_is_flat_from_the_first_piece_to_the_last() -> None:
    stream = new_stream(PUBLISHED, lookahead=12, first=8)
    assert stream.first_steps == 20
    assert feed(stream, 19) == (1, 0)
    assert feed(stream, 1) == (2, 8 * P)
    costs = [feed(stream, 8) for _ in range(300)]
    assert {num_samples for _, num_samples in costs} == {8 * P}
    assert max(num_calls for num_calls, _ in costs) == 3
    thirds = [sum(num_calls for num_calls, _ in costs[part::3]) for part in range(3)]
    assert thirds == [thirds[0]] * 3
    assert feed(stream, 0, has_ended=True)[1] == 12 * P - P // 2


def test_a_listener_who_is_ahead_gets_larger_pieces_then_the_exact_samples(
    sizes: VocoderSizes,
) -> None:
    """Steps come four times as fast as they are played; from some piece on there is no guess."""
    clock, low_latency = Clock(), LowLatency(LOOKAHEAD, FIRST)
    pace = Pace(low_latency, sizes, SAMPLE_RATE, clock)
    stream = LowLatencyStream(sizes, low_latency, pace)
    lengths, num_calls = [], []
    for portion in in_chunks(600):
        clock.now += portion * P / SAMPLE_RATE / 4
        stream.append(np.zeros((portion, sizes.hidden_size), np.float32))
        brought = 0
        while chunk := stream.next_chunk(has_ended=False):
            brought += 1
            samples = stream.accept(np.zeros(CHUNK_STEPS * P, np.float32), chunk.state)
            if len(samples):
                pace.add_sent(len(samples))
                lengths.append(len(samples) // P)
        num_calls.append(brought)
    assert lengths[0] == FIRST
    assert max(lengths) > 4 * FIRST
    exact_pieces = lengths.index(CHUNK_STEPS)
    assert set(lengths[exact_pieces + 1 :]) == {CHUNK_STEPS}
    assert sum(num_calls[-60:]) == 60 * FIRST // CHUNK_STEPS


def test_a_piece_becomes_due_as_time_passes_without_a_new_step(sizes: VocoderSizes) -> None:
    clock, low_latency = Clock(), LowLatency(LOOKAHEAD, FIRST)
    pace = Pace(low_latency, sizes, SAMPLE_RATE, clock)
    stream = LowLatencyStream(sizes, low_latency, pace)
    pace.add_sent(20 * P)
    stream.append(HIDDEN[: LOOKAHEAD + 8])
    assert stream.next_chunk(has_ended=False) is None
    clock.now = 20 * P / SAMPLE_RATE
    assert stream.next_chunk(has_ended=False) is not None


def test_a_step_between_two_guesses_becomes_a_smooth_rise(sizes: VocoderSizes) -> None:
    stream = new_stream(sizes)
    levels, pieces = iter(range(100)), []
    level = 0.0
    for _ in range(12):
        stream.append(np.zeros((FIRST, sizes.hidden_size), np.float32))
        while chunk := stream.next_chunk(has_ended=False):
            samples = stream.accept(np.full(CHUNK_STEPS * P, level, np.float32), chunk.state)
            if len(samples):
                pieces.append(samples)
                level = next(levels) + 1.0
    joined = np.concatenate(pieces)
    assert len(pieces) > 5
    assert joined[-1] > 4
    assert np.abs(np.diff(joined)).max() <= np.pi / 2 / FADE * 1.01
