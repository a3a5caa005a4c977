"""Faults that are found without a reference: each one alone, and none in what is in order."""

from __future__ import annotations

import numpy as np
import pytest
from chattts_pipeline.quality import REASONS, SegmentQuality, has_loop, joined

RATE = 24000
STEP = 512
SECOND = 47
"""Steps of about a second."""


def voice(num_steps: int, loudness: float = 0.2) -> np.ndarray:
    """Something as loud as speech, with pauses."""
    rng = np.random.default_rng(0)
    length = num_steps * STEP
    envelope = np.abs(np.sin(np.arange(length) / RATE * 9))
    return (rng.normal(size=length) * envelope * loudness / 2).astype(np.float32)


def codes(num_steps: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 625, (num_steps, 4)).astype(np.int32)


def found(
    samples: np.ndarray,
    steps: np.ndarray,
    *,
    estimated_s: float = 4.0,
    finish_reason: str = "eos",
    min_new_tokens: int = 0,
    piece: int = 5000,
) -> tuple[str, ...]:
    quality = SegmentQuality(RATE, STEP, estimated_s)
    for start in range(0, len(samples), piece):
        quality.push(samples[start : start + piece])
    return quality.reasons(steps, finish_reason, min_new_tokens)


def test_what_is_in_order_has_no_fault() -> None:
    assert found(voice(4 * SECOND), codes(4 * SECOND)) == ()


@pytest.mark.parametrize("loudness", [0.0, 0.001])
def test_silence_and_hum_are_silent(loudness: float) -> None:
    assert found(voice(4 * SECOND, loudness), codes(4 * SECOND)) == ("silent",)


def test_a_click_does_not_make_it_speech() -> None:
    samples = voice(4 * SECOND, 0.0)
    samples[5000:5200] = 0.5
    assert found(samples, codes(4 * SECOND)) == ("silent",)


def test_overdriven_is_clipped_and_a_few_peaks_are_not() -> None:
    loud = np.clip(voice(4 * SECOND) * 30, -1, 1)
    assert found(loud, codes(4 * SECOND)) == ("clipped",)
    peaks = voice(4 * SECOND)
    peaks[::10000] = 1.0
    assert found(peaks, codes(4 * SECOND)) == ()


@pytest.mark.parametrize(
    ("num_steps", "reason"), [(SECOND, "too_short"), (14 * SECOND, "too_long")]
)
def test_the_length_has_to_fit_the_text(num_steps: int, reason: str) -> None:
    assert found(voice(num_steps), codes(num_steps)) == (reason,)


@pytest.mark.parametrize("finish_reason", ["length", "deadline"])
def test_what_was_cut_off_is_not_too_short(finish_reason: str) -> None:
    assert found(voice(SECOND), codes(SECOND), finish_reason=finish_reason) == ()


def test_what_the_caller_asked_for_is_not_too_long() -> None:
    long = 14 * SECOND
    assert found(voice(long), codes(long), min_new_tokens=long) == ()
    assert found(voice(long), codes(long), estimated_s=0.0) == ()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_found(bad: float) -> None:
    samples = voice(4 * SECOND)
    samples[7] = bad
    assert found(samples, codes(4 * SECOND)) == ("not_finite",)


@pytest.mark.parametrize("period", [1, 2, 7, 40])
def test_codes_that_repeat_are_a_loop(period: int) -> None:
    steps = codes(4 * SECOND)
    num_looped = max(SECOND, 2 * period) + period
    start = 30
    for step in range(start + period, start + num_looped):
        steps[step] = steps[step - period]
    assert found(voice(4 * SECOND), steps) == ("loop",)
    assert not has_loop(steps[: start + num_looped - 2], SECOND)


def test_one_codebook_that_stands_still_is_no_loop() -> None:
    steps = codes(4 * SECOND)
    steps[:, 0] = 7
    assert found(voice(4 * SECOND), steps) == ()


def test_nothing_at_all_is_not_judged() -> None:
    nothing = np.zeros(0, np.float32)
    assert found(nothing, np.zeros((0, 4), np.int32), finish_reason="deadline") == ()


def test_the_pieces_do_not_matter() -> None:
    samples = voice(SECOND, 0.011)
    whole = found(samples, codes(SECOND), piece=len(samples))
    assert {found(samples, codes(SECOND), piece=size) for size in (1, 333, 12288)} == {whole}


def test_an_utterance_has_the_faults_of_its_segments_once_and_in_order() -> None:
    assert joined([("loop", "silent"), (), ("silent", "not_finite")]) == (
        "silent",
        "loop",
        "not_finite",
    )
    assert joined([REASONS[::-1]]) == REASONS
