"""Markup: what is honoured, what is refused, and what the caller is told."""

from __future__ import annotations

import pytest
from chattts_text import PreparedText, Switches
from text_vocabulary import stand_in_front_end


def prepare(text: str) -> PreparedText:
    return stand_in_front_end().prepare(text, Switches())


def codes(text: str) -> list[tuple[str, str]]:
    return [(one["code"], one["text"]) for one in prepare(text).warnings]


@pytest.mark.parametrize(
    ("tag", "pause_ms"),
    [
        ('<break time="800ms"/>', 800),
        ("<break time='1.5s' />", 1500),
        ('<break time="10s">', 10_000),
        ('<break time=".5s"></break>', 500),
        ("<break/>", 400),
        ('<BREAK strength="x-strong"/>', 1200),
        ('<break strength="none"/>', 0),
        ('<break time="0ms"/>', 0),
    ],
)
def test_a_break_is_a_pause_of_its_length(tag: str, pause_ms: int) -> None:
    segments = prepare(f"你好{tag}世界").segments
    assert segments[0].pause_ms == pause_ms
    assert "".join(one.text for one in segments) == "你好世界"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('一<break time="10001ms"/>', r'^text: <break time="10001ms"/>; allowed: <break time='),
        ('一<break time="soon"/>', "^text: <break time=.*0ms … 10000ms or 0s … 10s"),
        ('一<break strength="huge"/>', "none, x-weak, weak, medium, strong, x-strong$"),
        ("一<break 5s/>", "^text: <break 5s/>; allowed: "),
        (
            "<speak><voice>一</voice></speak>",
            "^text: <voice> is not allowed inside <speak>; allowed",
        ),
        ("<speak><prosody>一</prosody></speak>", "allowed: speak, break, p, s, sub, say-as$"),
        ("<speak>一", "^text: <speak> is not closed; allowed: </speak> at its end"),
        ("<speak><p>一</speak></p>", "^text: </speak> in the wrong place; allowed: </p> here"),
        ("<speak>一</speak></speak>", "^text: </speak> in the wrong place"),
        ("<speak><sub>一</sub></speak>", "^text: <sub> without an alias"),
        ("<speak><say-as>1</say-as></speak>", "interpret-as '' *; allowed: characters"),
        ('<speak><sub alias="x"><s>一</s></sub></speak>', "^text: <s> inside <sub>"),
        ('<speak><sub alias="x">一<break/></sub></speak>', "^text: <break> inside <sub>"),
        ('<speak><say-as interpret-as="date"><!-- --></say-as></speak>', "^text: <!-- --> inside"),
        ("<speak><!DOCTYPE x>一</speak>", "^text: <!DOCTYPE> is not allowed"),
    ],
)
def test_what_is_not_allowed_is_refused_with_what_is(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prepare(text)


def test_a_pause_before_the_first_word_is_left_out_with_a_warning() -> None:
    assert codes("<break/>你好") == [("dropped_pause", "<break/>")]


def test_a_forced_reading_that_nobody_has_is_read_as_written_with_a_warning() -> None:
    done = prepare("银{行|hong7}")
    assert done.spoken == "银行"
    assert codes("银{行|hong7}") == [("unknown_reading", "{行|hong7}")]


def test_a_forced_reading_is_aligned_with_all_that_is_written_for_it() -> None:
    (span,) = [one for one in prepare("银{行|hang2}").as_json()["alignment"] if "行" in one["text"]]
    assert (span["start"], span["end"], span["spoken"]) == (1, 10, "航")


def test_html_is_left_out_with_a_warning_and_comparisons_stay() -> None:
    assert codes("a <b>c</b>") == [("dropped_markup", "<b>"), ("dropped_markup", "</b>")]
    assert codes("5 < 7, a<b") == []


def test_private_characters_never_pass_for_placeholders() -> None:
    done = prepare("\U000f0000[laugh]好\U000f0001")
    assert done.spoken == "[laugh]好"
    assert [one["code"] for one in done.warnings] == ["dropped_control"] * 2


def test_thousands_of_different_pauses_find_room() -> None:
    text = "".join(f'好<break time="{pause}ms"/>' for pause in range(1, 3000))
    segments = prepare(text).segments
    assert [one.pause_ms for one in segments] == list(range(1, 3000))


@pytest.mark.parametrize("scraps", ["[laugh", "{行|", "<break", "\\[", "<!--", "<speak"])
def test_unfinished_markup_is_prose(scraps: str) -> None:
    assert prepare(f"好{scraps}的").spoken.startswith("好")
