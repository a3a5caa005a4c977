"""The chain of filters of a segment: order, silence after it, and that cuts change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chattts_pipeline.level import TARGET_LUFS, loudness
from chattts_pipeline.options import Options
from chattts_pipeline.shaping import SegmentShape
from chattts_pipeline.tail import KEPT_S
from sounds import RATE, Array, Push, assert_cuts_change_nothing, breath, run, vowel

WORD = vowel(0.5, rms=0.02)
SPEECH = np.concatenate([WORD, breath(1.0, 0.001)])


def push_of(reason: str = "eos", pause_ms: int = 0, **options: Any) -> Push:
    shape = SegmentShape(Options(**options), RATE, pause_ms)
    return lambda samples, is_end: shape.push(samples, reason if is_end else "")


def shaped(reason: str = "eos", pause_ms: int = 0, **options: Any) -> Array:
    return run(push_of(reason, pause_ms, **options), SPEECH)


def test_without_options_the_very_samples_pass() -> None:
    shape = SegmentShape(Options(), RATE, 0)
    assert shape.push(SPEECH, "") is SPEECH
    assert shape.push(SPEECH, "eos") is SPEECH


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("reason", ["eos", "length"])
def test_the_silence_is_as_long_as_asked_for_at_any_speed(speed: float, reason: str) -> None:
    result = shaped(reason, pause_ms=333, speed=speed)
    without = shaped(reason, speed=speed)
    assert np.array_equal(result[: len(without)], without)
    assert len(result) - len(without) == 333 * 24
    assert not result[len(without) :].any()


def test_a_segment_that_was_late_has_no_silence() -> None:
    assert len(shaped("deadline", pause_ms=500)) == len(SPEECH)


def test_the_end_is_cut_before_the_speed_changes() -> None:
    shape = SegmentShape(Options(trim=True, speed=2.0), RATE, 0)
    result = shape.push(SPEECH, "eos")
    seconds = len(result) * 2 / RATE
    assert seconds == pytest.approx(0.5 + KEPT_S, abs=0.04)
    assert shape.trimmed_ms == pytest.approx(1500 - seconds * 1000, abs=1)
    assert SegmentShape(Options(), RATE, 0).trimmed_ms == 0


def test_loudness_is_that_of_what_is_left() -> None:
    value = loudness(shaped(trim=True, level=True, speed=1.25), RATE)
    assert value == pytest.approx(TARGET_LUFS, abs=0.5)


@pytest.mark.parametrize("trim", [False, True])
@pytest.mark.parametrize("level", [False, True])
@pytest.mark.parametrize("speed", [1.0, 1.4])
def test_cuts_change_no_sample(trim: bool, level: bool, speed: float) -> None:
    options = {"trim": trim, "level": level, "speed": speed}
    assert_cuts_change_nothing(lambda: push_of(pause_ms=20, **options), SPEECH)
