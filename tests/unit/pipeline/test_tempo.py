"""Speed: as long as asked for, at the same pitch, without clicks, however the samples come."""

from __future__ import annotations

import numpy as np
import pytest
from chattts_pipeline.tempo import BLOCK_S, Tempo
from sounds import RATE, Array, assert_cuts_change_nothing, noise, run, silence, tone, vowel

SPEEDS = [0.5, 0.75, 0.9, 1.1, 1.37, 1.5, 2.0]


def played(samples: Array, speed: float) -> Array:
    return run(Tempo(speed, RATE).push, samples)


def frequency_of(samples: Array) -> float:
    """The strongest frequency in Hz, from a parabola through the highest bins."""
    size = 1 << 18
    power = np.log(np.abs(np.fft.rfft(samples * np.hanning(len(samples)), size)) + 1e-12)
    best = int(np.argmax(power))
    left, middle, right = power[best - 1 : best + 2]
    return float((best + 0.5 * (left - right) / (left - 2 * middle + right)) * RATE / size)


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("frequency", [100.0, 200.0, 997.0, 1000.0])
def test_a_tone_keeps_its_pitch_and_has_no_clicks(speed: float, frequency: float) -> None:
    source = tone(frequency, 2.0)
    result = played(source, speed)
    assert len(result) == round(len(source) / speed)
    assert frequency_of(result) == pytest.approx(frequency, rel=0.005)
    # No step above what the tone itself has, up to the last blocks, where the source ends.
    inner = result[: -RATE // 20]
    steepest = 0.5 * 2 * np.pi * frequency / RATE
    assert np.abs(np.diff(inner)).max() <= 1.25 * steepest + 0.01
    level = np.sqrt(np.mean(inner.astype(float) ** 2))
    assert level == pytest.approx(0.5 / np.sqrt(2), rel=0.03)


@pytest.mark.parametrize("num_samples", [0, 1, 150, 299, 300, 301, 1199, 1200, 5000])
@pytest.mark.parametrize("speed", [0.5, 0.97, 2.0])
def test_short_sounds_have_the_right_length_too(num_samples: int, speed: float) -> None:
    assert len(played(noise(1.0, 0.1)[:num_samples], speed)) == round(num_samples / speed)


def test_at_speed_one_nothing_changes() -> None:
    speech = np.concatenate([silence(0.1), vowel(0.5), noise(0.2, 0.05), silence(0.1)])
    assert np.array_equal(played(speech, 1.0), speech)


@pytest.mark.parametrize("speed", SPEEDS)
def test_the_first_sample_and_silence_are_kept(speed: float) -> None:
    speech = np.concatenate([vowel(0.4), silence(0.4), vowel(0.4)])
    result = played(speech, speed)
    assert result[0] == speech[0]
    middle = result[round(0.55 * RATE / speed) : round(0.65 * RATE / speed)]
    assert np.abs(middle).max() < 1e-3


@pytest.mark.parametrize("speed", [0.5, 0.8, 1.7])
def test_sounds_stay_where_they_are_due(speed: float) -> None:
    speech = silence(2.0)
    for start in (0.5, 1.0, 1.5):
        speech[round(start * RATE) : round((start + 0.1) * RATE)] = vowel(0.1)
    is_loud = np.abs(played(speech, speed)) > 0.02
    for start in (0.5, 1.0, 1.5):
        heard = np.flatnonzero(is_loud[round((start - 0.2) / speed * RATE) :])[0] / RATE
        assert heard == pytest.approx(0.2 / speed, abs=BLOCK_S / speed + 2 * BLOCK_S)


@pytest.mark.parametrize("speed", [0.5, 1.3, 2.0])
def test_cuts_change_no_sample(speed: float) -> None:
    speech = np.concatenate([silence(0.05), vowel(0.3), noise(0.1, 0.03), vowel(0.2, 210.0)])
    assert_cuts_change_nothing(lambda: Tempo(speed, RATE).push, speech)


def test_it_lags_by_few_blocks_only() -> None:
    tempo, speech = Tempo(1.5, RATE), vowel(1.0)
    sent = sum(len(tempo.push(part, False)) for part in np.split(speech, 100))
    assert sent >= len(speech) / 1.5 - 0.06 * RATE
