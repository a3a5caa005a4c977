"""Streamed windows give the one-shot waveform, with the real vocoder graph of golden/tiny."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import golden
import numpy as np
import onnxruntime
import pytest
from chattts_pipeline.streaming import StepBuffer, Window, WindowPlanner
from hypothesis import given, settings
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]
Vocoder = Callable[[Array], Array]
P = 512
HIDDEN: Array = golden.TINY_ARRAYS["long_hidden"]
PUBLISHED_CONTEXT_STEPS = 52


@pytest.fixture(scope="module")
def vocoder(tiny_repository: Path) -> Vocoder:
    path = tiny_repository / "chattts_vocoder/1/model.onnx"
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def decode(hidden: Array) -> Array:
        audio: Array = session.run(["audio"], {"hidden": hidden[np.newaxis]})[0][0]
        return audio

    return decode


@pytest.fixture(scope="module")
def context_steps(tiny_repository: Path) -> int:
    path = tiny_repository / "chattts/1/weights/checkpoint.json"
    return int(json.loads(path.read_text())["context_steps"])


def stream(hidden: Array, arrivals: list[int], planner: WindowPlanner, decode: Vocoder) -> Array:
    """Speak `hidden` that arrives in the given portions; check the windows' book-keeping."""
    steps, sent, pieces, position = StepBuffer(), 0, [], 0
    for portion in [*arrivals, len(hidden)]:
        steps.append(hidden[position : position + portion])
        position = min(position + portion, len(hidden))
        has_ended = position == len(hidden)
        while window := planner.next_window(position, sent, has_ended):
            audio = decode(steps.take(window))
            piece = audio[window.skip_samples : window.skip_samples + window.num_samples]
            assert len(piece) == window.num_samples > 0
            pieces.append(piece)
            sent += window.num_samples
            if window.is_last:
                assert position == window.end == len(hidden)
                return np.concatenate(pieces)
        if has_ended:
            break
    raise AssertionError("no last window")


def test_the_one_shot_waveform_is_the_golden_one(vocoder: Vocoder, context_steps: int) -> None:
    planner = WindowPlanner(context_steps, P)
    window = planner.whole_window(len(HIDDEN))
    assert window == Window(0, len(HIDDEN), 0, P * len(HIDDEN) - P // 2, True)
    golden.assert_close(vocoder(HIDDEN), golden.TINY_ARRAYS["long_wav"])


def test_the_streamed_waveform_is_the_golden_one(vocoder: Vocoder, context_steps: int) -> None:
    planner = WindowPlanner(context_steps, P)
    streamed = stream(HIDDEN, [5] * 40, planner, vocoder)
    assert np.abs(streamed - golden.TINY_ARRAYS["long_wav"]).max() < 1e-5


@pytest.mark.parametrize("num_steps", [*range(1, 34), 63, 64, 65])
def test_any_length_streams_to_its_one_shot_waveform(
    vocoder: Vocoder, context_steps: int, num_steps: int
) -> None:
    planner = WindowPlanner(context_steps, P, 3, 4, 8)
    hidden = HIDDEN[:num_steps]
    streamed = stream(hidden, [1] * num_steps, planner, vocoder)
    expected = vocoder(hidden)
    assert streamed.shape == expected.shape == (planner.total_samples(num_steps),)
    assert np.abs(streamed - expected).max() < 1e-5


@settings(max_examples=25, deadline=None)
@given(
    num_steps=st.integers(1, 160),
    first=st.integers(1, 30),
    chunk=st.integers(1, 30),
    most=st.integers(0, 60),
    arrivals=st.lists(st.integers(0, 60), max_size=30),
)
def test_any_schedule_streams_to_the_one_shot_waveform(
    vocoder: Vocoder,
    context_steps: int,
    num_steps: int,
    first: int,
    chunk: int,
    most: int,
    arrivals: list[int],
) -> None:
    planner = WindowPlanner(context_steps, P, first, chunk, chunk + most)
    hidden = HIDDEN[:num_steps]
    streamed = stream(hidden, arrivals, planner, vocoder)
    assert np.abs(streamed - vocoder(hidden)).max() < 1e-5


def test_the_bounds_are_sharp_and_safe(vocoder: Vocoder, context_steps: int) -> None:
    """Changing an unknown step never changes a final sample, and does change the next ones."""
    planner = WindowPlanner(context_steps, P)
    known = 40
    changed = HIDDEN[:80].copy()
    changed[known:] = 5.0
    difference = np.abs(vocoder(changed) - vocoder(HIDDEN[:80]))
    final = planner.final_samples(known)
    assert difference[:final].max() < 1e-5
    assert difference[final : final + P].max() > 0


@pytest.mark.parametrize(("known", "final"), [(1, 0), (51, 0), (52, 1), (53, 513), (100, 24577)])
def test_final_samples_are_those_of_the_published_sizes(known: int, final: int) -> None:
    assert WindowPlanner(PUBLISHED_CONTEXT_STEPS, P).final_samples(known) == final
    assert final == max(0, 512 * known - 26623)


def test_windows_come_in_few_lengths_and_cost_stays_flat() -> None:
    planner = WindowPlanner(PUBLISHED_CONTEXT_STEPS, P)
    windows, sent = [], 0
    for known in range(1, 2000):
        while window := planner.next_window(known, sent, False):
            windows.append(window)
            sent += window.num_samples
    lengths = [window.end - window.start for window in windows]
    assert lengths[0] == planner.first_window_steps == 76
    assert set(lengths[4:]) == {24 + 2 * PUBLISHED_CONTEXT_STEPS}


def test_a_vocoder_that_lags_gets_longer_windows_up_to_the_limit() -> None:
    planner = WindowPlanner(PUBLISHED_CONTEXT_STEPS, P)
    first = planner.next_window(76 + 24 * 2 + 7, 0, False)
    assert first is not None
    assert first.end == 76 + 24 * 2
    second = planner.next_window(2000, first.num_samples, False)
    assert second is not None
    assert second.end == first.end + planner.max_chunk_steps


def test_the_buffer_forgets_steps_that_no_window_needs() -> None:
    steps = StepBuffer()
    for index in range(10):
        steps.append(np.full((4, 2), index, np.float32))
    taken = steps.take(Window(17, 23, 0, 1, False))
    assert taken[:, 0].tolist() == [4, 4, 4, 5, 5, 5]
    assert steps.num_steps == 40
    assert steps.take(Window(36, 40, 0, 1, True))[:, 0].tolist() == [9] * 4
