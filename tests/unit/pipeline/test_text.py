"""Cleaning and cutting a text."""

from __future__ import annotations

import pytest
from chattts_pipeline.text import clean, split, spoken_segments
from chattts_text.tokens import is_speakable
from hypothesis import given
from hypothesis import strategies as st

LIMIT = 40

PARTS = st.sampled_from(
    [
        "你好",
        "。",
        "！",
        "？",
        "…",
        "；",
        "，",
        "hello",
        "World",
        "Mr.",
        "3.5",
        "1,299",
        ". ",
        "? ",
        "!",
    ]
    + [
        " ",
        "\n",
        "\r\n",
        "\t",
        "\u3000",
        "[laugh]",
        "[uv_break]",
        "x" * 50,
        "哈" * 90,
        "-",
        '"',
        "é",
    ]
)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("  a\t b\u3000c ", "a b c"),
        ("one\r\n\r\n two \x0b three", "one\ntwo\nthree"),
        ("a\x00b\x07c", "a b c"),
        ("你好\n", "你好"),
    ],
)
def test_separators_become_one_space_or_one_newline(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        (
            "你好。今天天气好！真的吗？是…好；",
            ["你好。", "今天天气好！", "真的吗？", "是…", "好；"],
        ),
        ("One. Two? Three! Four", ["One. ", "Two? ", "Three! ", "Four"]),
        ("It costs 3.5 dollars. Fine.", ["It costs 3.5 dollars. ", "Fine."]),
        ("Mr. Smith vs. Dr. No. Right.", ["Mr. Smith vs. Dr. No. ", "Right."]),
        ("The U.S. army, e.g. this one.", ["The U.S. army, e.g. this one."]),
        ("So do I. Then go.", ["So do I. ", "Then go."]),
        ("1. Open it. 2. Close it.", ["1. Open it. ", "2. Close it."]),
        ("see example.com/a?b=c now", ["see example.com/a?b=c now"]),
        ("line one\nline two", ["line one\n", "line two"]),
        ('He said "Go!" Then left.', ['He said "Go!" ', "Then left."]),
        ("好的。[laugh]走吧。", ["好的。[laugh]", "走吧。"]),
        ("Really?! Yes...\nOk", ["Really?! ", "Yes...\n", "Ok"]),
        ("你好!世界.再见", ["你好!", "世界.", "再见"]),
    ],
)
def test_a_text_is_cut_at_sentence_ends(text: str, segments: list[str]) -> None:
    assert split(text, 200) == segments


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        (
            "一二三四五，六七八九十一二三四五，六七八九十",
            ["一二三四五，六七八九十一二三四五，", "六七八九十"],
        ),
        ("aaaa bbbb cccc dddd eeee", ["aaaa bbbb cccc dddd ", "eeee"]),
        ("price 1,299 for aaaa bbbb", ["price 1,299 for ", "aaaa bbbb"]),
        ("哈" * 25, ["哈" * 20, "哈" * 5]),
        ("哈" * 15 + "[uv_break]好", ["哈" * 15, "[uv_break]好"]),
        ("哈" * 15 + "computers", ["哈" * 15, "computers"]),
        ("x" * 45, ["x" * 20, "x" * 20, "x" * 5]),
    ],
)
def test_a_long_sentence_is_cut_at_clauses_then_spaces_then_hard(
    text: str, segments: list[str]
) -> None:
    assert split(text, 20) == segments


def test_pieces_with_nothing_to_speak_join_their_neighbour() -> None:
    assert split('"...\nhello. ... [laugh]', LIMIT) == ['"...\nhello. ... [laugh]']


@given(st.lists(PARTS, max_size=40).map("".join))
def test_nothing_is_lost_and_no_segment_is_too_long(text: str) -> None:
    cleaned = clean(text)
    segments = split(cleaned, LIMIT)
    assert "".join(segments) == cleaned
    assert all(0 < len(segment) <= LIMIT for segment in segments)
    assert clean(cleaned) == cleaned


@given(st.lists(PARTS, max_size=40).map("".join))
def test_no_tag_is_cut_in_two(text: str) -> None:
    segments = split(clean(text), LIMIT)
    for token in ("[laugh]", "[uv_break]"):
        assert sum(segment.count(token) for segment in segments) == text.count(token)


@given(st.lists(PARTS, max_size=40).map("".join))
def test_all_words_are_in_spoken_segments(text: str) -> None:
    segments = spoken_segments(text, LIMIT)
    assert all(is_speakable(segment) for segment in segments)
    letters = [character for character in text if character.isalnum()]
    spoken = [character for segment in segments for character in segment if character.isalnum()]
    if is_speakable(text):
        assert [c for c in spoken if c not in "laughuv_break"] == [
            c for c in letters if c not in "laughuv_break"
        ]


def test_without_a_limit_the_text_is_one_segment() -> None:
    assert spoken_segments(" One.\nTwo. ", None) == ["One.\nTwo."]
