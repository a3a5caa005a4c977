"""What the voice is taught: every word often, and nothing of what it is examined in."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter

import pytest
from chattts_text import english_numbers
from train_voice.corpus import (
    GRAMMARS,
    KIND_SHARES,
    TEACHERS,
    CorpusError,
    CorpusSizes,
    Utterance,
    bare,
    domain_text,
    draw,
    vocabulary,
    word_places,
    words_of,
)
from train_voice.english import number, ordinal
from train_voice.language_model import arpa, dictionary
from train_voice.mandarin import number as number_zh

SIZES = CorpusSizes(
    sentences={"slt": 100, "rms": 50, "cmn": 100},
    min_counts={"slt": 4, "rms": 1, "cmn": 3},
    held_out=15,
    held_out_templates=6,
)


@pytest.fixture(scope="module")
def corpus() -> list[Utterance]:
    return draw(SIZES, seed=3)


def test_the_same_seed_draws_the_same_corpus(corpus: list[Utterance]) -> None:
    assert draw(SIZES, seed=3) == corpus
    assert draw(SIZES, seed=4) != corpus


@pytest.mark.parametrize(("language", "teacher"), [("en", "slt"), ("en", "rms"), ("zh", "cmn")])
def test_every_word_is_said_often(corpus: list[Utterance], language: str, teacher: str) -> None:
    texts = [u.text for u in corpus if u.teacher == teacher and u.split == "train"]
    counts = Counter(word for text in texts for word in words_of(text))
    known = vocabulary("en" if language == "en" else "zh")
    assert min(counts[word] for word in known) >= SIZES.min_counts[teacher]
    assert counts.keys() <= set(known)
    assert len(texts) >= SIZES.sentences[teacher]
    assert len(set(texts)) == len(texts)


def test_patchworks_are_pieces_of_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    def pairs(text: str) -> list[tuple[str, str]]:
        words = words_of(text)
        return list(zip(words, words[1:], strict=False))

    monkeypatch.setitem(KIND_SHARES, "en", (0.0, 0.0, 1.0))
    patchworks = [u.text for u in draw(SIZES, seed=3) if u.teacher == "slt" and u.split == "train"]
    given = {pair for text in domain_text("en", 50_000, (), seed=1) for pair in pairs(text)}
    lengths = [len(words_of(text)) for text in patchworks]
    assert max(lengths) <= 15
    new = [sum(pair not in given for pair in pairs(text)) for text in patchworks]
    # two or three pieces have one or two joints; a rare pair of a sentence may be unknown too
    assert sum(new) / len(new) > 0.7
    assert sum(number <= 2 for number in new) > 0.9 * len(new)


def test_an_english_corpus_has_all_three_kinds_and_a_mandarin_one_no_patchworks() -> None:
    assert all(share > 0 for share in KIND_SHARES["en"])
    assert KIND_SHARES["zh"][2] == 0


@pytest.mark.parametrize("templates", [(), ("good morning {name}",)])
def test_too_few_sentences_to_hold_out_are_an_error(
    monkeypatch: pytest.MonkeyPatch, templates: tuple[str, ...]
) -> None:
    few = dataclasses.replace(GRAMMARS["en"], held_out=templates)
    monkeypatch.setitem(GRAMMARS, "en", few)
    sizes = dataclasses.replace(SIZES, held_out_templates=30)
    with pytest.raises(CorpusError, match="fewer than 30 different sentences of en to hold out"):
        draw(sizes, seed=3)


def test_words_without_a_pronunciation_are_named() -> None:
    with pytest.raises(CorpusError, match="cannot know these words: caf, zyx$"):
        dictionary(["zyx", "it's", "caf"], {"its": ["IH T S"]})


def test_the_domain_is_as_wide_as_a_demo_needs() -> None:
    assert len(vocabulary("en")) >= 400
    assert len(vocabulary("zh")) >= 300


def test_what_is_held_out_is_never_said_in_training(corpus: list[Utterance]) -> None:
    trained = {bare(u.text) for u in corpus if u.split == "train"}
    held_out = [u for u in corpus if u.split != "train"]
    assert not trained & {bare(u.text) for u in held_out}
    per_language = Counter(u.language for u in held_out)
    assert per_language == dict.fromkeys(TEACHERS, SIZES.held_out + SIZES.held_out_templates)
    assert {u.teacher for u in held_out} == {"slt", "cmn"}


def test_held_out_templates_have_no_word_of_their_own() -> None:
    rng = random.Random(1)
    for language, grammar in GRAMMARS.items():
        known = set(vocabulary(language))
        for template in grammar.held_out:
            for _ in range(50):
                assert set(words_of(grammar.fill(template, rng))) <= known, template
        assert not set(grammar.held_out) & set(grammar.templates)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_slot_of_a_template_can_be_filled(language: str) -> None:
    grammar = GRAMMARS["en" if language == "en" else "zh"]
    rng = random.Random(1)
    for template in (*grammar.templates, *grammar.held_out):
        assert "{" not in grammar.fill(template, rng)


def test_text_for_the_language_model_leaves_out_what_it_must() -> None:
    texts = domain_text("en", 300, (), 5)
    excluded = set(texts[:100])
    again = domain_text("en", 300, excluded, 5)
    assert not excluded & set(again)
    assert all(text == bare(text) for text in again)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "zero"), (13, "thirteen"), (40, "forty"), (99, "ninety-nine"), (100, "one hundred"),
     (215, "two hundred fifteen"), (1900, "one thousand nine hundred")],
)  # fmt: skip
def test_english_numbers(value: int, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "first"), (12, "twelfth"), (20, "twentieth"), (22, "twenty-second"), (30, "thirtieth"),
     (31, "thirty-first")],
)  # fmt: skip
def test_english_ordinals(value: int, text: str) -> None:
    assert ordinal(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "零"), (10, "十"), (15, "十五"), (20, "二十"), (42, "四十二"), (100, "一百"),
     (105, "一百零五"), (110, "一百一十"), (250, "二百五十"), (999, "九百九十九")],
)  # fmt: skip
def test_mandarin_numbers(value: int, text: str) -> None:
    assert number_zh(value) == text


def test_english_numbers_are_written_as_the_front_end_writes_them() -> None:
    assert all(number(value) == english_numbers.cardinal(str(value)) for value in range(10_000))
    assert all(ordinal(day) == english_numbers.ordinal(str(day)) for day in range(1, 32))


def test_words_are_found_with_their_places() -> None:
    text = "it's twenty-four o'clock, anna."
    assert words_of(text) == ["it's", "twenty", "four", "o'clock", "anna"]
    assert [text[start:end] for start, end in word_places(text)] == words_of(text)
    assert words_of("你好，吗？") == ["你", "好", "吗"]


def test_the_language_model_spends_all_chances_and_lets_any_word_follow() -> None:
    words = ["a", "b", "c"]
    lines = arpa([["a", "b"], ["a", "c"], ["b", "a"]], words).splitlines()
    middle = lines.index("\\2-grams:")
    singles = {parts[1]: parts for parts in map(str.split, lines[5 : middle - 1])}
    pairs = [line.split() for line in lines[middle + 1 : -2]]
    assert sum(10 ** float(p[0]) for p in singles.values() if p[1] != "<s>") == pytest.approx(
        1, abs=1e-3
    )
    for history in ("<s>", *words):
        seen = {p[2]: 10 ** float(p[0]) for p in pairs if p[1] == history}
        weight = 10 ** float(singles[history][2])
        others = [w for w in (*words, "</s>") if w not in seen]
        unseen = sum(weight * 10 ** float(singles[word][0]) for word in others)
        assert sum(seen.values()) + unseen == pytest.approx(1, abs=1e-3)


def test_the_dictionary_has_every_pronunciation() -> None:
    known = {"read": ["R EH D", "R IY D"], "oclock": ["AH K L AA K"]}
    assert dictionary(["read", "o'clock"], known).splitlines() == [
        "o'clock AH K L AA K",
        "read R EH D",
        "read(2) R IY D",
    ]
