"""Loudness: BS.1770, one target for all segments, no sample above the ceiling."""

from __future__ import annotations

import numpy as np
import pytest
from chattts_pipeline.level import CEILING, TARGET_LUFS, Level, limited, loudness
from sounds import RATE, Array, assert_cuts_change_nothing, hiss, noise, run, silence, tone, vowel

SPEECH = np.concatenate([silence(0.2), hiss(0.1), vowel(0.6), silence(0.3), vowel(0.5, 210, 0.06)])


def levelled(samples: Array) -> Array:
    return run(Level(RATE).push, samples)


def measured(samples: Array) -> float:
    value = loudness(samples, RATE)
    assert value is not None
    return value


@pytest.mark.parametrize("rate", [24000, 44100, 48000])
def test_the_reference_tone_measures_as_the_standard_says(rate: int) -> None:
    """BS.1770: a full-scale sine of 997 Hz in one channel reads -3.01 LKFS."""
    time = np.arange(3 * rate) / rate
    sine = np.sin(2 * np.pi * 997 * time).astype(np.float32)
    assert loudness(sine, rate) == pytest.approx(-3.01, abs=0.02)
    assert loudness(sine / 10, rate) == pytest.approx(-23.01, abs=0.02)


def test_low_tones_weigh_less_and_high_ones_more() -> None:
    low, middle, high = (measured(tone(frequency, 2.0)) for frequency in (40, 997, 4000))
    assert middle - low > 5
    assert 3 < high - middle < 5


def test_pauses_do_not_count() -> None:
    with_pause = np.concatenate([vowel(2.0), silence(4.0), vowel(2.0)])
    assert measured(with_pause) == pytest.approx(measured(vowel(2.0)), abs=0.5)


@pytest.mark.parametrize("samples", [silence(0.0), silence(1.0), noise(1.0, 1e-5)])
def test_what_is_not_heard_has_no_loudness_and_is_left_alone(samples: Array) -> None:
    assert loudness(samples, RATE) is None
    assert np.array_equal(levelled(samples), samples)


def test_segments_of_any_gain_come_out_equally_loud() -> None:
    gains = [0.1, 0.3, 1.0, 2.5, 8.0]
    results = [levelled(SPEECH * np.float32(gain)) for gain in gains]
    values = [measured(result) for result in results]
    assert max(values) - min(values) < 0.1
    assert values == pytest.approx([TARGET_LUFS] * 5, abs=1.0)
    assert max(np.abs(result).max() for result in results) <= CEILING


def test_a_short_word_is_levelled_too() -> None:
    assert measured(levelled(vowel(0.15, rms=0.01))) == pytest.approx(TARGET_LUFS, abs=0.1)


def test_noise_far_below_speech_is_not_lifted_to_it() -> None:
    assert measured(levelled(noise(1.0, 0.0007))) < TARGET_LUFS - 10


def test_peaks_are_turned_down_without_clipping_or_clicks() -> None:
    wave = tone(200, 1.0, 0.5)
    wave[RATE // 4 : RATE // 2] *= 6
    result = limited(wave, RATE)
    assert np.abs(result).max() <= CEILING
    assert np.array_equal(result[: RATE // 5], wave[: RATE // 5])
    assert np.abs(np.diff(result)).max() <= 1.1 * np.abs(np.diff(tone(200, 1.0, CEILING))).max()
    # The loud part stays a sine: the third harmonic of a clipped one would have over 0.1.
    part = result[RATE // 3 : RATE // 3 + 4800] * np.hanning(4800)
    spectrum = np.abs(np.fft.rfft(part))
    assert spectrum[120] < 0.01 * spectrum[40]


@pytest.mark.parametrize("num_samples", [1, 119, 120, 121, 1000])
def test_loud_sounds_of_any_length_stay_below_the_ceiling(num_samples: int) -> None:
    assert np.abs(limited(noise(1.0, 2.0)[:num_samples], RATE)).max() <= CEILING


def test_nothing_comes_out_before_the_end() -> None:
    level = Level(RATE)
    assert not len(level.push(SPEECH, False))
    assert len(level.push(SPEECH[:5], True)) == len(SPEECH) + 5


def test_cuts_change_no_sample() -> None:
    assert_cuts_change_nothing(lambda: Level(RATE).push, SPEECH)
