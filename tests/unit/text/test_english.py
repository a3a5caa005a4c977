"""English rules: what the table of cases does not show one by one, and what holds for any text."""

from __future__ import annotations

import re

import pytest
from chattts_text import english_numbers as numbers
from chattts_text.acronyms import read_name, read_word
from hypothesis import given, settings
from hypothesis import strategies as st
from text_stages import normalized, said

ONES = {word: value for value, word in enumerate(numbers.below_hundred(n) for n in range(20))}
TENS = {numbers.below_hundred(value): value for value in range(20, 100, 10)}
SCALES = {numbers.cardinal(f"1{'000' * power}")[4:]: 1000**power for power in range(1, 9)}


SETTINGS = settings(deadline=None)  # a slow machine is no failure


def parsed(words: str) -> int:
    """Read number words back, as the inverse of `cardinal`."""
    total, below_thousand = 0, 0
    for word in words.replace("-", " ").split():
        if word == "hundred":
            below_thousand *= 100
        elif word in SCALES:
            total, below_thousand = total + below_thousand * SCALES[word], 0
        else:
            below_thousand += ONES[word] if word in ONES else TENS[word]
    return total + below_thousand


@SETTINGS
@given(st.integers(0, 10**numbers.MAX_DIGITS - 1))
def test_number_words_read_back_as_the_number(value: int) -> None:
    assert parsed(numbers.cardinal(str(value))) == value
    assert parsed(numbers.cardinal(f"{value:,}")) == value


def test_longer_numbers_are_read_digit_by_digit() -> None:
    text = "1" * (numbers.MAX_DIGITS + 1)
    assert numbers.cardinal(text) == " ".join(["one"] * len(text))


@SETTINGS
@given(st.integers(1000, 2199))
def test_years_have_no_more_than_four_words(value: int) -> None:
    words = numbers.year(str(value))
    assert len(words.replace("-", " ").split()) <= 4


@SETTINGS
@given(st.integers(1, 399))
def test_roman_numerals_round_trip(value: int) -> None:
    assert numbers.roman(numbers.to_roman(value)) == value


@pytest.mark.parametrize("text", ["IIX", "VV", "IC", "XM", "", "A", "IXI"])
def test_what_is_no_roman_numeral_is_none(text: str) -> None:
    assert numbers.roman(text) == 0


@pytest.mark.parametrize(
    ("number", "ordinal"),
    [("1", "first"), ("12", "twelfth"), ("20", "twentieth"), ("101", "one hundred first")],
)
def test_ordinals(number: str, ordinal: str) -> None:
    assert numbers.ordinal(number) == ordinal


@pytest.mark.parametrize(
    ("word", "spoken"),
    [
        ("hello", "hello"),
        ("I", "I"),
        ("KPI", "K P I"),
        ("KPIs", "K P I's"),
        ("NASA", "NASA"),
        ("UNICEF", "UNICEF"),
        ("HTTP", "H T T P"),
        ("xml", "x m l"),
        ("hmm", "hmm"),
        ("YouTube", "YouTube"),
        ("JavaScript", "Java Script"),
        ("McDonald", "McDonald"),
    ],
)
def test_words_of_letters(word: str, spoken: str) -> None:
    assert read_word(word) == spoken


def test_digits_in_names_are_read_as_people_read_models() -> None:
    assert read_name("H264") == "H two sixty-four"
    assert read_name("R2D2") == "R two D two"
    assert read_name("X007") == "X zero zero seven"


def test_capitals_in_a_line_of_capitals_are_words() -> None:
    assert said("DO NOT OPEN THE DOOR, CALL THE FBI", language="en") == (
        "DO NOT OPEN THE DOOR, CALL THE F B I"
    )


def test_edits_are_small_so_that_the_alignment_is_fine() -> None:
    aligned = normalized("On May 5, 2024 we paid 3 people.", language="en")
    changed = [
        (aligned.original[one.start : one.end], aligned.text[one.spoken_start : one.spoken_end])
        for one in aligned.alignment()
        if aligned.original[one.start : one.end] != aligned.text[one.spoken_start : one.spoken_end]
    ]
    assert changed == [("5", "fifth"), ("2024", "twenty twenty-four"), ("3", "three")]


def test_a_rule_never_reads_beyond_its_span() -> None:
    assert said("用 Python 3，跑 5 km").startswith("用 Python three，跑 五")


WORDS = (
    "the people were in May on by call Chapter King Henry room version Dr. St. etc. e.g. No. p.m. "
    "U.S. KPI iPhone http and x a I"
)
WRITTEN = st.one_of(
    st.sampled_from(WORDS.split()),
    st.from_regex(r"[0-9]{1,5}([.,:/-][0-9]{1,4}){0,3}(km|%|th|pm|k|s|)", fullmatch=True),
    st.from_regex(r"[$€£#@~<+-][0-9]{1,3}", fullmatch=True),
    st.from_regex(r"[A-Za-z]{1,4}[0-9]{0,3}", fullmatch=True),
)


@SETTINGS
@given(st.lists(WRITTEN, min_size=1, max_size=8))
def test_no_digit_remains_and_what_is_said_stays(pieces: list[str]) -> None:
    spoken = said(said(" ".join(pieces), language="en"), language="en")
    assert not re.search(r"[0-9]", spoken)
    assert said(spoken, language="en") == spoken


@SETTINGS
@given(st.text(alphabet="0123456789.,:/-+$€%°'\"()x×=<>~#@&_^²½ aIVpmksth\nμ→🎉数年", max_size=60))
def test_no_text_raises_and_every_character_is_accounted_for(text: str) -> None:
    aligned = normalized(text)
    spans = aligned.alignment()
    assert [one.start for one in spans][1:] == [one.end for one in spans][:-1]
    assert (spans[0].start, spans[-1].end) == (0, len(text)) if text else not spans


@SETTINGS
@given(st.text(max_size=40))
def test_no_unicode_text_raises(text: str) -> None:
    normalized(text, language="en")


SIGNS = "&@#%$€£+±×÷=≠≈<>≤≥∞√→§©™®•✓★🎉|\\^*_~`°№"


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_sign_is_said_or_noted_but_never_lost(sign: str, language: str) -> None:
    aligned = normalized(f"a {sign} b", language=language)
    left = re.sub(r"\s+", " ", aligned.text)
    assert sign not in left
    assert left != "a b" or [note.code for note in aligned.notes] == ["dropped_symbol"]


@pytest.mark.parametrize(
    "text",
    [
        "$" + "9" * 6000 + ".50",
        "9" * 6000 + "h 5m",
        "9" * 6000 + "/" + "9" * 6000,
        "9" * 6000 + "th",
    ],
)
def test_huge_numbers_do_not_raise(text: str) -> None:
    assert not re.search(r"[0-9]", said(text, language="en"))
