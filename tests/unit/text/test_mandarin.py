"""Mandarin rules: what the table of cases does not show one by one, and what holds for any text."""

from __future__ import annotations

import datetime
import re

import pytest
from chattts_text import AlignedText, Context, Switches, mandarin
from chattts_text.aligned import Edit
from hypothesis import example, given, settings
from hypothesis import strategies as st
from text_stages import Everything, normalized, said
from text_vocabulary import stand_in_front_end

SIGNS = "-+−±~～/.·×÷=<>≤≥≈≠%‰°℃$¥€£:：,，、()（） '\"#*^²³½Ⅳ①○〇№"
HAN = "年月日号点分秒个人元万亿千百第周星期零下气温比分电话验证码拨打转楼室座双后代节折度米路次京粤"
WRITTEN = st.text("0123456789" * 4 + SIGNS + HAN + "kgmhsxXIVTZAG", max_size=40)
MANY = settings(max_examples=200, deadline=None)


def edits(text: str, start: int = 0, end: int | None = None) -> list[Edit]:
    context = Context(Everything(), Switches(), {})
    return list(mandarin.edits(text, start, len(text) if end is None else end, context))


def spoken(text: str) -> str:
    return AlignedText.of(text).edited(edits(text)).text


@MANY
@given(WRITTEN)
@example("1:58.32-9.58")
@example("2026-02-30T25:61")
@example("京A")
@example("1/0")
def test_no_digit_is_left_whatever_is_around_it(text: str) -> None:
    assert not re.search("[0-9]", spoken(text))


@MANY
@given(WRITTEN)
def test_what_was_said_is_said_again_in_the_same_way(text: str) -> None:
    front_end = stand_in_front_end()
    once = front_end.prepare("说" + text, Switches()).spoken
    assert front_end.prepare(once, Switches()).spoken == once


@MANY
@given(st.text(max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_edits_stay_in_their_part_and_in_order(text: str, one: int, other: int) -> None:
    start, end = sorted((min(one, len(text)), min(other, len(text))))
    reached = start
    for edit in edits(text, start, end):
        assert reached <= edit.start < edit.end <= end
        reached = edit.end


@given(st.integers(0, 10**16 - 1))
def test_a_number_counts_the_same_in_any_grouping(value: int) -> None:
    assert said(f"共{value:,}只") == said(f"共{value}只")


@given(st.dates(datetime.date(1000, 1, 1), datetime.date(2999, 12, 31)))
def test_all_ways_to_write_a_date_are_said_alike(date: datetime.date) -> None:
    year, month, day = str(date).split("-")
    iso = said(f"{year}-{month}-{day}")
    assert iso == said(f"{year}/{month}/{day}") == said(f"{year}.{int(month)}.{int(day)}")
    assert iso == said(f"{year}年{month}月{day}日")


@given(st.times())
def test_hours_and_minutes_are_said_as_a_time_of_day(time: datetime.time) -> None:
    words = said(f"今天{str(time)[:5]}见")
    assert re.fullmatch(
        "今天[零一两三四五六七八九十二]+点(?:[零一二三四五六七八九十]+分)?见", words
    )


@pytest.mark.parametrize("text", ["-5℃", "−5℃", "–5℃", "气温-5℃", "（-5℃）", "到-5℃", "~-5℃"])
def test_a_sign_is_never_lost(text: str) -> None:
    assert "零下五摄氏度" in said(text + "。冷")


def test_one_in_codes_follows_the_switch() -> None:
    assert said("拨打110") == "拨打幺幺零"
    assert said("拨打110", telephone_one="一") == "拨打一一零"
    assert said("打了110次", telephone_one="幺") == "打了一百一十次"


def test_edits_are_small_so_that_the_alignment_is_fine() -> None:
    assert [text for _, _, text, _ in edits("3月9日有2个")] == ["三", "九", "两"]


def test_signs_without_a_reading_are_noted() -> None:
    notes = normalized("他说🎉好").notes
    assert [note.code for note in notes] == ["dropped_symbol"]


def test_work_grows_with_the_text_and_no_faster() -> None:
    """Each place is tried once: the number of edits and their reach is all that grows."""
    for scrap in ("1-", "1+", "3.", "1:", "1/", "1,234", "2026-03-", "0", "a1 ", "1 000 "):
        found = edits(scrap * 2000)
        assert len(found) <= len(scrap) * 2000
