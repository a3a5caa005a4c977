"""What holds for the whole front end whatever is written."""

from __future__ import annotations

import re

from chattts_text import PreparedText, Switches
from chattts_text.switches import STAGES
from hypothesis import example, given, settings
from hypothesis import strategies as st
from text_vocabulary import StandInVocabulary, stand_in_front_end

SCRAPS = [
    *"你好行长重还得吗的了。，？！…—：；、“”《》【】（）[]{}<>|/\\*#_~`'\"&@%$¥€£^+-=.,:;?! \n\t",
    *["[laugh]", "[uv_break]", "[Stts]", "[spk_emb]", "[break_7]", "[12]", "[表3]", "\\[laugh]"],
    *[
        "{行|hang2}",
        "{乐|xx}",
        '<break time="1s"/>',
        "<b>",
        "</b>",
        "<br>",
        "&amp;",
        "&#91;",
        "&lt;",
    ],
    *[
        "hello",
        "World",
        "don't",
        "PyTorch",
        "KPI",
        "e.g.",
        "Mr.",
        "café",
        "x" * 130,
        "頭髮",
        "𠮷",
        "踽",
    ],
    *["2026-03-09", "14:05", "3.5", "1,299.00", "-5℃", "3/4", "v2.10.3", "010-8888-6666", "½", "Ⅳ"],
    *[
        "https://a.example/b?c=1",
        "a@b.example",
        "🎉",
        "こんにちは",
        "مرحبا",
        "안녕",
        "\u200b",
        "\u202e",
    ],
    *[
        "\ufeff",
        "\u3000",
        "\u00a0",
        "\r\n",
        "\ue000",
        "\U000f0000",
        "①",
        "m²",
        "＃",
        "Ａ１",
        "- ",
        "## ",
    ],
]
TAGS = [
    *["<p>", "</p>", "<s>", "</s>", '<sub alias="好">', "</sub>", "<!-- x -->", "<!--", "</speak>"],
    *[
        '<say-as interpret-as="digits">',
        '<say-as interpret-as="ordinal">',
        "</say-as>",
        "<p/>",
        "<voice>",
    ],
    *['<break time="2s"/>', "12", "好", "<", ">", "[laugh]", "{行|hang2}", "\\<p>"],
]
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(SCRAPS), max_size=25).map("".join),
    st.lists(st.sampled_from([*TAGS, *SCRAPS]), max_size=12).map(
        lambda scraps: f"<speak>{''.join(scraps)}</speak>"
    ),
    st.text(st.characters(codec=None, exclude_categories=()), max_size=30),
)
ALLOWED_TOKENS = re.compile(r"\[(?:uv_break|v_break|lbreak|llbreak|laugh)\]")
MANY = settings(max_examples=150, deadline=None)


def prepared(text: str, switches: Switches) -> PreparedText | None:
    """Prepare a text; None: it is refused by one of the documented errors."""
    try:
        return stand_in_front_end().prepare(text, switches)
    except ValueError as error:
        message = str(error)
    assert message.startswith("text: ")
    assert "; allowed: " in message
    assert "<" in text
    return None


SWITCHES = st.builds(
    Switches,
    language=st.sampled_from(["auto", "zh", "en"]),
    normalize=st.booleans(),
    input_format=st.sampled_from(["plain", "markdown", "auto"]),
    on_unsupported=st.sampled_from(["skip", "spell"]),
    footnotes=st.booleans(),
    stages=st.dictionaries(st.sampled_from(STAGES), st.booleans()),
    lexicon=st.sampled_from([{}, {"PyTorch": "pie torch", "行": "航", "好": "\ud800[laugh]５"}]),
)


@MANY
@given(TEXTS, SWITCHES)
@example("<speak>\ud800</speak>", Switches())
@example("[laugh]" * 30, Switches())
def test_no_text_makes_it_fail_and_the_alignment_covers_it(text: str, switches: Switches) -> None:
    done = prepared(text, switches)
    if done is None:
        return
    spans = done.aligned.alignment()
    assert "".join(text[span.start : span.end] for span in spans) == text
    spoken = done.aligned.text
    assert done.spoken in ("", spoken)
    assert "".join(spoken[span.spoken_start : span.spoken_end] for span in spans) == spoken
    assert all(
        0 <= one["start"] <= one["end"] <= len(text) for one in done.warnings if "start" in one
    )
    done.as_json()


@MANY
@given(TEXTS)
def test_only_what_the_tokenizer_knows_comes_out_and_no_token_of_ours(text: str) -> None:
    done = prepared(text, Switches())
    if done is None:
        return
    bare = ALLOWED_TOKENS.sub("", done.spoken)
    assert StandInVocabulary().has(bare)
    assert not re.search(r"[\[\]]", bare)


@MANY
@given(TEXTS)
def test_without_normalization_no_structural_token_comes_out(text: str) -> None:
    done = prepared(text, Switches(normalize=False))
    if done is not None:
        assert not re.search(r"[\[\]]", ALLOWED_TOKENS.sub("", done.spoken))


@MANY
@given(TEXTS)
def test_what_is_spoken_is_spoken_the_same(text: str) -> None:
    done = prepared(text, Switches())
    if done is None or any(segment.pause_ms for segment in done.segments):
        return  # a pause parts segments and is no part of the spoken text
    again = stand_in_front_end().prepare(done.spoken, Switches())
    assert again.spoken == done.spoken


@MANY
@given(TEXTS.filter(lambda text: not {*"<&"} & {*text}))
def test_no_letter_and_no_digit_is_lost_in_silence(text: str) -> None:
    done = stand_in_front_end().prepare(text, Switches())
    noted = {
        position
        for note in done.aligned.notes
        for position in range(note.start, max(note.end, note.start + 1))
    }
    for span in done.aligned.alignment():
        if span.spoken_start == span.spoken_end:
            lost = [i for i in range(span.start, span.end) if text[i].isalnum() and i not in noted]
            assert not lost, (text, [text[i] for i in lost])


BRACKETS = st.lists(
    st.sampled_from([*"好的你，。[](){}【】（）<>《》", "[laugh]", "[uv_break]", "[la", "ugh]"])
)


@MANY
@given(BRACKETS.map("".join))
def test_control_tokens_stay_where_they_are_among_any_brackets(text: str) -> None:
    words_and_tokens = re.compile(rf"{ALLOWED_TOKENS.pattern}|[好的你]")
    spoken = stand_in_front_end().prepare(text, Switches()).spoken
    if re.search("[好的你]", text):
        assert words_and_tokens.findall(spoken) == words_and_tokens.findall(text)


@MANY
@given(
    st.lists(st.sampled_from([*"你好第章共元室ABCxyz0123456789%+-/.", "2026-03-09", "14:05"])).map(
        "".join
    )
)
def test_full_width_is_spoken_as_half_width(text: str) -> None:
    wide = "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text)
    front_end = stand_in_front_end()
    assert front_end.prepare(wide, Switches()).spoken == front_end.prepare(text, Switches()).spoken
