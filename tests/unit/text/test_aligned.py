"""A text that knows where each character came from."""

from __future__ import annotations

import pytest
from chattts_text import AlignedText, Edit, Note, Span
from hypothesis import given
from hypothesis import strategies as st


def test_edits_of_several_stages_point_back_to_the_original() -> None:
    aligned = AlignedText.of("共5kg，<b>好")
    aligned = aligned.edited([Edit(5, 8, "", "dropped_markup")])
    aligned = aligned.edited([Edit(1, 2, "五"), Edit(2, 4, "公斤")])
    assert aligned.text == "共五公斤，好"
    assert aligned.alignment() == [
        Span(0, 1, 0, 1),
        Span(1, 2, 1, 2),
        Span(2, 3, 2, 3),
        Span(3, 4, 3, 4),
        Span(4, 5, 4, 5),
        Span(5, 8, 5, 5),
        Span(8, 9, 5, 6),
    ]
    assert aligned.notes == (Note("dropped_markup", 5, 8, ""),)


def test_a_longer_replacement_stands_as_a_whole() -> None:
    aligned = AlignedText.of("3/4好").edited([Edit(0, 3, "四分之三")])
    assert aligned.alignment() == [Span(0, 3, 0, 4), Span(3, 4, 4, 5)]
    assert aligned.source(1, 2) == (0, 3)


@pytest.mark.parametrize("edits", [[Edit(0, 2, ""), Edit(1, 3, "")], [Edit(2, 9, "")]])
def test_edits_that_overlap_or_leave_the_text_are_errors(edits: list[Edit]) -> None:
    with pytest.raises(ValueError, match="overlaps another edit or is outside"):
        AlignedText.of("abc").edited(edits)


@given(st.text(max_size=20), st.data())
def test_any_edits_leave_an_alignment_that_covers_both_texts(
    text: str, data: st.DataObject
) -> None:
    aligned = AlignedText.of(text)
    for _ in range(3):
        places = st.integers(0, len(aligned.text))
        start, end = sorted((data.draw(places), data.draw(places)))
        aligned = aligned.edited([Edit(start, end, data.draw(st.text(max_size=4)))])
        spans = aligned.alignment()
        assert "".join(text[one.start : one.end] for one in spans) == text
        spoken = "".join(aligned.text[one.spoken_start : one.spoken_end] for one in spans)
        assert spoken == aligned.text
