"""The end of a segment: breath and noise go, consonants and everything before them stay."""

from __future__ import annotations

import numpy as np
import pytest
from chattts_pipeline.tail import FADE_S, KEPT_S, TailTrim
from sounds import (
    RATE,
    Array,
    assert_cuts_change_nothing,
    breath,
    creak,
    hiss,
    noise,
    run,
    silence,
    tone,
    vowel,
)

TOLERANCE_S = 0.03
WORD = np.concatenate([hiss(0.12), vowel(0.35)])
"""Ends by a vowel."""

TAILS = {
    "breath": np.concatenate([silence(0.1), breath(0.8)]),
    "breath at once": breath(1.0, 0.02),
    "rustling": np.concatenate([silence(0.15), noise(1.2, 0.02)]),
    "noise at once": noise(1.5, 0.02),
    "whoosh": np.concatenate([silence(0.2), hiss(0.9, 0.05)]),
    "hum": tone(50, 1.0, 0.02),
    "rumble": tone(20, 1.0, 0.05),
    "silence": silence(0.7),
    "clicks": np.concatenate([silence(0.3), [0.3], silence(0.3), [-0.3], silence(0.2)]),
}

CONSONANTS = {
    "this": hiss(0.15),
    "this, long": hiss(0.32, 0.05),
    "this, soft": hiss(0.2, 0.003),
    "fifths": np.concatenate([hiss(0.12, 0.01), hiss(0.18, 0.03, seed=5)]),
    "texts": np.concatenate([silence(0.07), hiss(0.1), silence(0.06), hiss(0.18)]),
    "creaking": creak(0.4),
    "stop": np.concatenate([silence(0.1), noise(0.03, 0.05)]),
}


def cut(samples: Array, reason: str = "eos") -> Array:
    trim = TailTrim(RATE)
    result = trim.push(samples, reason)
    assert trim.num_trimmed == len(samples) - len(result)
    return result


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
@pytest.mark.parametrize("pitch", [85.0, 120.0, 230.0])
def test_what_follows_the_last_word_is_cut(tail: Array, pitch: float) -> None:
    word = np.concatenate([hiss(0.12), vowel(0.35, pitch)])
    result = cut(np.concatenate([word, tail.astype(np.float32)]))
    end = len(word) + round(KEPT_S * RATE)
    assert end - TOLERANCE_S * RATE <= len(result) <= end + TOLERANCE_S * RATE
    untouched = len(result) - round(FADE_S * RATE)
    assert np.array_equal(result[: len(word)], word)
    assert np.array_equal(result[:untouched], np.concatenate([word, tail])[:untouched])
    assert abs(result[-1]) < 1e-3


@pytest.mark.parametrize("consonants", CONSONANTS.values(), ids=CONSONANTS)
@pytest.mark.parametrize("after", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("pitch", [85.0, 120.0, 230.0])
def test_consonants_at_the_end_stay_whole(consonants: Array, after: float, pitch: float) -> None:
    word = np.concatenate([vowel(0.3, pitch), consonants]).astype(np.float32)
    result = cut(np.concatenate([word, silence(after)]))
    assert np.array_equal(result[: len(word)], word)


def test_what_comes_soon_after_the_end_of_speech_is_not_shortened() -> None:
    speech = np.concatenate([WORD, breath(0.2)])
    assert np.array_equal(cut(speech), speech)


@pytest.mark.parametrize("reason", ["length", "deadline"])
def test_without_an_end_token_nothing_is_cut(reason: str) -> None:
    speech = np.concatenate([WORD, breath(1.0)])
    assert np.array_equal(cut(speech, reason), speech)


def test_silence_and_noise_before_and_between_words_stay() -> None:
    speech = np.concatenate([breath(0.6), silence(0.5), WORD, silence(3.0), breath(0.5), WORD])
    assert np.array_equal(cut(speech), speech)


def test_a_whisper_is_not_touched() -> None:
    whisper = np.concatenate([hiss(0.4), breath(0.5, 0.05), hiss(0.3), silence(1.0)])
    assert np.array_equal(cut(whisper), whisper)


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_not_taken_for_a_voice(seed: int) -> None:
    tail = np.concatenate([silence(0.1), breath(1.5, 0.02, seed), noise(1.0, 0.02, seed)])
    result = cut(np.concatenate([WORD, tail]))
    assert len(result) <= len(WORD) + (KEPT_S + TOLERANCE_S) * RATE


def test_no_more_is_held_back_than_may_be_cut() -> None:
    trim = TailTrim(RATE)
    speech = np.concatenate([WORD] * 4 + [silence(2.0)] + [WORD] * 4)
    sent, most_held = 0, 0
    for start in range(0, len(speech), 512):
        sent += len(trim.push(speech[start : start + 512], ""))
        if start + 512 < 4 * len(WORD):
            most_held = max(most_held, start + 512 - sent)
    # In running speech what is held is at most a fricative longer than what is always kept.
    assert most_held == 0
    assert sent == len(speech)


@pytest.mark.parametrize("reason", ["eos", "length"])
def test_cuts_change_no_sample(reason: str) -> None:
    def make() -> TailTrim:
        return TailTrim(RATE)

    speech = np.concatenate([breath(0.3), WORD, silence(0.4), WORD, hiss(0.2), breath(0.6)])

    def push_of(trim: TailTrim):  # type: ignore[no-untyped-def]
        return lambda samples, is_end: trim.push(samples, reason if is_end else "")

    assert_cuts_change_nothing(lambda: push_of(make()), speech)
    assert len(run(push_of(make()), speech)) <= len(speech)


@pytest.mark.parametrize("num_samples", [0, 1, 239, 960, 961, 1200])
def test_short_sounds_pass(num_samples: int) -> None:
    assert np.array_equal(cut(vowel(1.0)[:num_samples]), vowel(1.0)[:num_samples])
