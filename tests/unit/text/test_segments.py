"""Cutting a spoken text into segments."""

from __future__ import annotations

import re

import pytest
from chattts_text import AlignedText, Context, SegmentLimits, Switches, Token
from chattts_text.segments import Segment, cut
from hypothesis import given, settings
from hypothesis import strategies as st
from text_vocabulary import StandInVocabulary

LIMIT = 40

PARTS = st.sampled_from(
    ["你好", "。", "！", "？", "…", "；", "，", "hello", "World", "Mr.", "3.5", "1,299", ". ", "? "]
    + ["!", " ", "\n", "x" * 50, "哈" * 90, "-", '"', "<laugh>", "<break>", "<行>"]
)
TOKENS = {
    "<laugh>": Token("[laugh]"),
    "<break>": Token(pause_ms=500),
    "<long>": Token(pause_ms=9_000),
    "<行>": Token("航"),
}


def segments(text: str, limits: SegmentLimits | None) -> list[Segment]:
    """Cut a text in which `<name>` stands for a token."""
    context = Context(StandInVocabulary(), Switches(), {})
    for name, token in TOKENS.items():
        text = text.replace(name, context.placeholder(token))
    return cut(AlignedText.of(text), context, limits)


def texts(text: str, limits: SegmentLimits | None) -> list[str]:
    return [segment.text for segment in segments(text, limits)]


@pytest.mark.parametrize(
    ("text", "expected"),
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
        ("好的。<laugh>走吧。", ["好的。[laugh]", "走吧。"]),
        ("好的。<行>列走吧。", ["好的。", "航列走吧。"]),
        ("Really?! Yes...\nOk", ["Really?! ", "Yes...\n", "Ok"]),
        ("你好!世界.再见", ["你好!", "世界.", "再见"]),
        ('"...\nhello. ... <laugh>', ['"...\nhello. ... [laugh]']),
    ],
)
def test_a_text_is_cut_at_sentence_ends(text: str, expected: list[str]) -> None:
    assert texts(text, SegmentLimits(200, 0.0)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "一二三四五，六七八九十一二三四五，六七八九十",
            ["一二三四五，六七八九十一二三四五，", "六七八九十"],
        ),
        ("aaaa bbbb cccc dddd eeee", ["aaaa bbbb cccc dddd ", "eeee"]),
        ("price 1,299 for aaaa bbbb", ["price 1,299 for ", "aaaa bbbb"]),
        ("we really do need thirty four of", ["we really do need ", "thirty four of"]),
        ("哈" * 15 + "<laugh>" + "好" * 6, ["哈" * 15 + "[laugh]" + "好" * 4, "好" * 2]),
        ("哈" * 15 + "computers", ["哈" * 15, "computers"]),
        ("哈" * 15 + "一千二百三十四点五六人", ["哈" * 15, "一千二百三十四点五六人"]),
        (
            "今天我们大家学习的内容是关于服务器人工智能的",
            ["今天我们大家学习的内容是关于服务器", "人工智能的"],
        ),
        ("x" * 45, ["x" * 20, "x" * 20, "x" * 5]),
    ],
)
def test_a_long_sentence_is_cut_at_clauses_then_spaces_then_hard(
    text: str, expected: list[str]
) -> None:
    assert texts(text, SegmentLimits(20, 0.0)) == expected


@pytest.mark.parametrize(
    "text", ["我们在学校里学习人工智能" * 70, "x" * 1500, "哈" * 500, "九千万" * 200]
)
def test_a_text_without_any_mark_is_cut_too(text: str) -> None:
    found = texts(text, SegmentLimits(120, 20.0))
    assert "".join(found) == text
    assert all(60 < len(one) <= 120 for one in found[:-1])
    assert not any(one.startswith(("工", "智", "能", "习", "校")) for one in found)


def test_sentences_are_joined_up_to_the_wanted_length_but_the_first_stands_alone() -> None:
    joined = texts("一二三四五。" * 9, SegmentLimits(100, 4.6))
    assert joined == ["一二三四五。", *["一二三四五。" * 3] * 2, "一二三四五。" * 2]


def test_a_pause_ends_a_segment_and_stands_after_it() -> None:
    found = segments("你好<break>世界<break>……<break>再见。", SegmentLimits(100, 20.0))
    assert [(one.text, one.pause_ms) for one in found] == [
        ("你好", 500),
        ("世界……", 1000),
        ("再见。", 0),
    ]


def test_pauses_in_one_place_add_up_to_the_longest_allowed() -> None:
    assert segments("你好<break><break>世界", None)[0].pause_ms == 1_000
    with pytest.raises(ValueError, match="^text: pauses of 18000 ms follow one another; allowed"):
        segments("你好<long><long>世界", None)


def test_without_limits_only_pauses_cut() -> None:
    assert texts("One.\nTwo. " + "哈" * 500, None) == ["One.\nTwo. " + "哈" * 500]
    assert texts("One.<break>Two.", None) == ["One.", "Two."]


@pytest.mark.parametrize("text", ["", "。", "<laugh>", "……<break>!"])
def test_nothing_to_say_is_no_segment(text: str) -> None:
    assert segments(text, SegmentLimits(20, 5.0)) == []


def test_a_segment_knows_its_place_and_its_length() -> None:
    first, second = segments("一二三四五。Hello world.", SegmentLimits(100, 20.0))
    assert (first.start, first.end, second.start, second.end) == (0, 6, 6, 18)
    assert first.estimated_s == pytest.approx(5 * 0.22 + 0.4)
    assert second.estimated_s == pytest.approx(3 * 0.19 + 0.4)


@settings(deadline=None)
@given(st.lists(PARTS, max_size=40).map("".join), st.sampled_from([0.0, 3.0, 20.0]))
def test_segments_joined_are_the_whole_text_and_none_is_too_long(text: str, seconds: float) -> None:
    found = segments(text, SegmentLimits(LIMIT, seconds))
    assert bool(found) == any(
        character.isalnum() for character in re.sub("<(laugh|break)>", "", text)
    )
    for name, token in TOKENS.items():
        text = text.replace(name, token.text)
    if found:
        assert "".join(segment.text for segment in found) == text
    lengths = [len(segment.text.replace("[laugh]", ".")) for segment in found]
    assert all(0 < length <= LIMIT for length in lengths)
    assert all(0 <= one.start <= one.end for one in found)


def test_no_segment_is_longer_than_the_model_can_speak() -> None:
    han, mixed = "很" * 390, "很" * 150 + "a" * 150
    for text in (han, mixed):
        found = segments(text, SegmentLimits(400, 0.0))
        assert len(found) > 1
        assert max(segment.estimated_s for segment in found) <= 30.0
        assert "".join(segment.text for segment in found) == text
