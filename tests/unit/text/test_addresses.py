"""Addresses: what counts as one, what is read of it, what is noted."""

from __future__ import annotations

import pytest
from chattts_text.addresses import read_address
from hypothesis import given, settings
from hypothesis import strategies as st
from text_stages import normalized, said

LINK = "See https://www.example.com:8080/a/b?c=1#d, please."


def test_the_host_is_read_and_the_rest_is_noted() -> None:
    aligned = normalized(LINK)
    assert aligned.text == "See example dot com colon eighty eighty, please."
    dropped = [LINK[note.start : note.end] for note in aligned.notes]
    assert dropped == ["https://www.", "/a/b?c=1#d"]
    assert {note.code for note in aligned.notes} == {"dropped_link"}


def test_a_whole_link_is_read_sign_by_sign() -> None:
    aligned = normalized(LINK, links="full")
    assert not aligned.notes
    assert aligned.text == (
        "See h t t p s colon slash slash w w w dot example dot com colon eighty eighty slash a "
        "slash b question mark c equals one hash d, please."
    )


def test_an_omitted_link_is_noted() -> None:
    aligned = normalized(LINK, links="omit")
    assert aligned.text == "See , please."
    assert [LINK[note.start : note.end] for note in aligned.notes] == [
        "https://www.example.com:8080/a/b?c=1#d"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "end.The next",
        "one.then two",
        "either/or",
        "he said.It is",
        "a.b",
        "3.14",
        "10:30",
        "and / or",
        "e.g.this",
    ],
)
def test_what_is_no_address_is_left_to_others(text: str) -> None:
    assert " dot " not in said(text, language="en")
    assert "slash" not in said(text, language="en")


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("(see example.org)", "(see example dot org)"),
        ("(https://example.org/x).", "(example dot org)."),
        ("http://localhost", "local host"),
        ("a+b@my-mail.co.uk!", "a plus b at my dash mail dot co dot u k!"),
        ("D:\\data\\x.csv", "D colon backslash data backslash x dot c s v"),
        ("../lib/app.js", "dot dot slash lib slash app dot j s"),
        ("请看https://example.com/路径", "请看 example dot com 路径"),
    ],
)
def test_addresses_end_where_prose_goes_on(text: str, spoken: str) -> None:
    assert said(text).replace("看example", "看 example").replace("com路", "com 路") == spoken


def test_a_network_address_is_read_digit_by_digit() -> None:
    assert read_address("10.0.0.12:80") == "one zero dot zero dot zero dot one two colon eighty"


@settings(deadline=None)
@given(st.text(alphabet="ab1./\\:@-_~?#%+www=&()[] 中。", max_size=60))
def test_no_text_raises(text: str) -> None:
    for links in ("host", "full", "omit"):
        normalized(text, links=links)
