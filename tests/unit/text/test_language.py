"""Which language each part of a text is read in."""

from __future__ import annotations

import pytest
from chattts_text.language import language_spans
from hypothesis import given
from hypothesis import strategies as st


def parts(text: str, wanted: str = "auto") -> list[tuple[str, str]]:
    spans = language_spans(text, wanted)  # type: ignore[arg-type]
    return [(text[start:end].strip(), language) for start, end, language in spans]


def in_language(text: str, language: str, wanted: str = "auto") -> str:
    return "|".join(part for part, one in parts(text, wanted) if one == language)


@given(st.text(), st.sampled_from(["auto", "zh", "en"]))
def test_spans_cover_any_text_in_order_and_alternate(text: str, wanted: str) -> None:
    spans = language_spans(text, wanted)  # type: ignore[arg-type]
    assert "".join(text[start:end] for start, end, _ in spans) == text
    assert all(one.end == other.start for one, other in zip(spans, spans[1:], strict=False))
    assert all(one.language != other.language for one, other in zip(spans, spans[1:], strict=False))


@pytest.mark.parametrize(
    ("text", "mandarin"),
    [
        ("延迟是47.3 ms，可以", "延迟是47.3 ms，可以"),
        ("延迟是 47.3 ms", "延迟是 47.3 ms"),
        ("时速60km/h吧", "时速60km/h吧"),
        ("内存16GB", "内存16GB"),
        ("付了100 USD", "付了100 USD"),
        ("三km", "三km"),
        ("屏幕1920x1080", "屏幕1920x1080"),
        ("IV期", "IV期"),
        ("第III章", "第III章"),
        ("5G网络", "5G网络"),
        ("T3航站楼", "3航站楼"),
        ("CA1831次", "1831次"),
        ("编号XY-7", "编号|-7"),
        ("用 Python 3 个月", "用|3 个月"),
        ("用PyTorch 2.4训练", "用|2.4训练"),
        ("别超过 15 分钟，deadline 到了", "别超过 15 分钟，|到了"),
    ],
)
def test_quantities_and_names_of_a_mandarin_sentence_are_mandarin(text: str, mandarin: str) -> None:
    assert in_language(text, "zh") == mandarin


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("把 Q3 的 KPI 用 PyTorch 2.4 跑", "Q3|KPI|PyTorch 2.4"),
        ("iPhone 15 Pro 很贵", "iPhone 15 Pro"),
        ("他说 I ran 5 km today 就走了", "I ran 5 km today"),
        ("It costs 5 USD.", "It costs 5 USD."),
        ("见v2.10.3版", "v2.10.3"),
        ("周五Friday 3pm见", "Friday 3pm"),
    ],
)
def test_numbers_of_latin_words_are_english(text: str, english: str) -> None:
    assert in_language(text, "en") == english


def test_what_shows_no_language_is_mandarin_unless_wanted_otherwise() -> None:
    assert parts("123") == [("123", "zh")]
    assert parts("123", "en") == [("123", "en")]
    assert parts("5 km") == [("5 km", "zh")]
    assert parts("5 km", "en") == [("5 km", "en")]


def test_the_wanted_language_decides_only_where_the_sentence_does_not() -> None:
    assert in_language("用 iPhone 15 拍", "zh", "zh") == "用|15 拍"
    assert in_language("有3个", "en", "en") == ""
    assert in_language("I have 3 cats.", "zh", "zh") == ""
