"""Mandarin number words: they read back as the number, whatever it is."""

from __future__ import annotations

import pytest
from chattts_text.mandarin_numbers import MAX_CARDINAL_DIGITS, cardinal, digits, number
from hypothesis import given
from hypothesis import strategies as st

DIGITS = {word: value for value, word in enumerate("零一二三四五六七八九")} | {"两": 2}
PLACES = {"十": 10, "百": 100, "千": 1000}
LARGEST = 10**MAX_CARDINAL_DIGITS - 1


def parsed(words: str) -> int:
    """Read number words back, as the inverse of `cardinal`."""
    if "亿" in words:
        high, _, low = words.rpartition("亿")
        return parsed(high) * 10**8 + parsed(low)
    high, large, low = words.rpartition("万")
    if large:
        return parsed(high) * 10**4 + parsed(low)
    total, digit = 0, 0
    for word in words:
        if word in PLACES:
            total, digit = total + (digit or 1) * PLACES[word], 0
        else:
            digit = DIGITS[word]
    return total + digit


@given(st.integers(0, LARGEST) | st.integers(0, 99_999))
def test_number_words_read_back_as_the_number(value: int) -> None:
    assert parsed(cardinal(str(value))) == value


@given(st.integers(0, LARGEST))
def test_zero_is_said_once_for_each_gap_and_never_last(value: int) -> None:
    words = cardinal(str(value))
    assert "零零" not in words
    assert not words.endswith("零") or value == 0


@given(st.integers(0, LARGEST))
def test_two_is_liang_only_at_the_head_of_a_number(value: int) -> None:
    words = cardinal(str(value))
    assert "两" not in words[1:]
    assert words[0] != "两" or words[1] in "百千万亿"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("10", "十"),
        ("12", "十二"),
        ("110", "一百一十"),
        ("1010", "一千零一十"),
        ("10010", "一万零一十"),
        ("100100", "十万零一百"),
        ("101000", "十万一千"),
        ("200", "两百"),
        ("2222", "两千二百二十二"),
        ("120000", "十二万"),
        ("200000000", "两亿"),
        ("100020000", "一亿零二万"),
        ("1000000000000", "一万亿"),
    ],
)
def test_zeros_tens_and_twos(written: str, words: str) -> None:
    assert cardinal(written) == words


def test_longer_numbers_are_said_digit_by_digit() -> None:
    assert cardinal("1" * (MAX_CARDINAL_DIGITS + 1)) == "一" * (MAX_CARDINAL_DIGITS + 1)


def test_fractions_and_zeros_at_the_head() -> None:
    assert number("1,299.05") == "一千二百九十九点零五"
    assert number(".5") == "零点五"
    assert number("2.50") == "二点五零"
    assert number("007") == "零零七"
    assert number("2", is_counted=True) == "两"
    assert number("2.0", is_counted=True) == "二点零"


def test_one_has_two_names_in_codes() -> None:
    assert digits("110-1", "幺") == "幺幺零幺"
    assert digits("110-1") == "一一零一"
