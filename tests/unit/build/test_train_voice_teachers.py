"""The teachers say what they are given, and tell when each word was said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from train_voice.corpus import Utterance, words_of
from train_voice.speech_data import FACTS_FILE, SpeechData
from train_voice.synthesis import synthesize, teacher_speech
from train_voice.teachers import (
    LEAD_SECONDS,
    TAIL_SECONDS,
    TeacherError,
    joined_spans,
    make_teacher,
    pinyin,
)
from voice_teachers import needs_teachers

RATE = 24_000
TEXTS = {
    "slt": "it's twenty-four minutes past ten o'clock, don't wait.",
    "rms": "what is your name?",
    "cmn": "今天是五月三号，你好吗？",
}


@needs_teachers
@pytest.mark.parametrize("name", TEXTS)
def test_a_teacher_tells_when_each_word_was_said(name: str) -> None:
    speech = make_teacher(name).say(TEXTS[name])
    seconds = len(speech.samples) / RATE
    assert len(speech.spans) == len(words_of(TEXTS[name]))
    assert speech.spans[0][0] == pytest.approx(LEAD_SECONDS, abs=1e-3)
    assert speech.spans[-1][1] == pytest.approx(seconds - TAIL_SECONDS, abs=1e-3)
    starts = [start for start, _ in speech.spans]
    assert starts == sorted(starts)
    assert all(end > start for start, end in speech.spans)
    inside = [speech.samples[int(a * RATE) : int(b * RATE)] for a, b in speech.spans]
    assert all(np.abs(word).max() > 0.02 for word in inside)
    assert np.abs(speech.samples).max() <= 1.02


@needs_teachers
def test_what_was_said_before_changes_next_to_nothing() -> None:
    teacher = make_teacher("cmn")
    first = np.array(teacher.say("你好吗？").spans)
    teacher.say(TEXTS["cmn"])
    make_teacher("cmn").say("一")
    again = np.array(teacher.say("你好吗？").spans)
    np.testing.assert_allclose(again, first, atol=0.02)


def test_a_voice_that_is_not_installed_says_where_to_find_it() -> None:
    with pytest.raises(TeacherError, match=r"apt-packages\.txt"):
        make_teacher("nobody")


def test_parts_of_a_word_are_joined() -> None:
    read = [("it", 0.1, 0.2), ("'s", 0.2, 0.3), ("oclock", 0.3, 0.5)]
    assert joined_spans(["it's", "o'clock"], read) == [(0.1, 0.3), (0.3, 0.5)]


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (["read"], [("red", 0.0, 0.1), ("book", 0.1, 0.2)]),
        (["two"], [("three", 0.0, 0.1)]),
        (["two", "men"], [("two", 0.0, 0.1)]),
        (["two"], [("two", 0.0, 0.1), ("men", 0.1, 0.2)]),
    ],
)
def test_other_words_are_refused(words: list[str], read: list[tuple[str, float, float]]) -> None:
    with pytest.raises(TeacherError):
        joined_spans(words, read)


def test_pinyin_has_tones_and_keeps_marks_at_their_words() -> None:
    assert pinyin("银行在哪儿？") == "yin2 hang2 zai4 na3 er2?"
    assert pinyin("你好，没问题！") == "ni2 hao3, mei2 wen4 ti2!"
    assert pinyin("一共一张，第一次，十一点") == "yi2 gong4 yi4 zhang1, di4 yi1 ci4, shi2 yi1 dian3"


@needs_teachers
def test_the_corpus_is_written_in_order_and_read_back(tmp_path: Path) -> None:
    utterances = [
        Utterance("hello anna", "en", "slt", "train"),
        Utterance("the red house", "en", "rms", "train"),
        Utterance("你好", "zh", "cmn", "held_out"),
    ]
    synthesize(tmp_path, utterances, lambda line: None)
    data = SpeechData(tmp_path)
    assert [spoken.utterance for spoken in data.all] == utterances
    assert [s.utterance.teacher for s in data.of("train", teachers=["rms"])] == ["rms"]
    for spoken in data.all:
        wanted = teacher_speech(spoken.utterance.teacher, spoken.utterance.text)
        found = data.wave(spoken).numpy()
        assert len(found) == pytest.approx(len(wanted), rel=0.05)
        assert found.std() == pytest.approx(wanted.std(), rel=0.1)
        longer = data.wave(spoken, 100, spoken.num_samples)
        assert (longer[-100:] == 0).all()


@needs_teachers
def test_an_evaluation_hears_the_teacher_as_the_corpus_has_it() -> None:
    steps = 32767 * teacher_speech("slt", "hello anna")
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-2)


@needs_teachers
def test_too_many_refusals_are_a_fault(tmp_path: Path) -> None:
    # 1 is read as "one"
    with pytest.raises(TeacherError, match="read otherwise"):
        synthesize(tmp_path, [Utterance("room 1", "en", "slt", "train")], lambda line: None)
    assert not (tmp_path / FACTS_FILE).exists()


def test_a_missing_teacher_is_no_misreading(tmp_path: Path) -> None:
    utterances = [Utterance("hello", "en", "nobody", "train")] * 3
    with pytest.raises(TeacherError, match=r"apt-packages\.txt"):
        synthesize(tmp_path, utterances, lambda line: None)
    assert not list(tmp_path.iterdir())


@needs_teachers
def test_flite_is_asked_for_ascii_only() -> None:
    with pytest.raises(TeacherError, match="ASCII only, not 'a café'"):
        make_teacher("slt").say("a café")
