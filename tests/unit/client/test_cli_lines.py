"""The lines of a batch: what each kind of input holds, and what is refused."""

from __future__ import annotations

import pytest
from chattts_client._types import SpeechOptions
from chattts_client.cli.lines import COLUMNS, Format, read_lines
from unit.client.cli_calls import CSV, JSONL

DEFAULTS: SpeechOptions = {"voice": "en", "options": {"split": False}}


def test_a_text_has_a_line_per_utterance() -> None:
    lines = read_lines("one\n\n  two \n", "text", "in.txt", DEFAULTS)
    assert [(line.number, line.name, line.text) for line in lines] == [
        (1, "00001", "one"),
        (3, "00003", "two"),
    ]
    assert all(line.options == DEFAULTS for line in lines)


def test_a_csv_file_has_options_in_columns() -> None:
    first, second = read_lines(CSV, "csv", "in.csv", DEFAULTS)
    assert (first.text, first.name, second.text) == ("hello", "greeting", "two\nlines")
    assert first.options == {**DEFAULTS, "seed": 7, "refine": True}
    switches = {"split": False, "a": 1, "speed": 1.5}
    assert second.options == {"voice": "en", "options": switches}


def test_jsonl_has_options_in_keys() -> None:
    first, second = read_lines(JSONL, "jsonl", "in.jsonl", DEFAULTS)
    assert (first.number, first.options) == (1, {**DEFAULTS, "seed": 7})
    assert (second.number, second.name) == (3, "b")
    assert second.options == {"voice": "zh", "options": {"split": False, "speed": 2}}


def test_every_option_of_speech_may_be_a_column() -> None:
    assert set(COLUMNS) == {"text", "name", "speed", *SpeechOptions.__annotations__}


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("csv", "text,voicee\nhello,en\n", "column 'voicee' is unknown; known are text, name"),
        ("csv", "voice\nen\n", "no column 'text'"),
        ("csv", "text,seed,seed\nhello,1,2\n", "column 'seed' is there twice"),
        ("csv", "text,seed\nhello,x\n", "line 2: seed: 'x' is no number"),
        ("csv", "text,refine\nhello,x\n", "line 2: refine: 'x' is neither true nor false"),
        ("csv", "text,language\nhello,fr\n", "line 2: language: 'fr' is none of auto, zh, en"),
        ("csv", "text,options\nhello,x\n", "line 2: 'x' is not JSON"),
        ("csv", "text\nhello,en\n", "line 2: more cells than columns"),
        ("csv", 'text\n"hello\n', "line 2: unexpected end"),
        ("csv", "text,name\n,a\n", "line 2: text: there is none"),
        ("jsonl", '{"text": "a"}\n{"text": "b", "tex": 1}', "line 2: key 'tex' is unknown"),
        ("jsonl", "hello", "line 1 is not JSON"),
        ("jsonl", "[1]", "line 1: not a JSON object"),
        ("jsonl", "[" * 100_000, "line 1 is not JSON"),
        ("jsonl", '{"text": 1}', "line 1: text: 1 is no string"),
        ("jsonl", '{"text": "a", "text": "b"}', "line 1 has the key 'text' twice"),
        ("jsonl", '{"text": "a", "speed": true}', "line 1: speed: True is no number in 0.5 ... 2"),
        ("csv", "text,speed\na,nan\n", "line 2: speed: nan is no number in 0.5 ... 2"),
        ("jsonl", '{"text": "a", "seed": "x"}', "line 1: seed: 'x' is not a whole number"),
        ("jsonl", '{"text": "a", "options": 1}', "line 1: options: 1 is no JSON object"),
        ("jsonl", '{"text": "a", "name": "../x"}', "line 1: name: '../x' is no stem of a file"),
        ("jsonl", '{"text": "a", "name": "%s"}' % ("é" * 101), "line 1: name: 'éééé"),
        ("jsonl", '{"text": "a", "name": "x"}\n' * 2, "line 2: name: 'x' is that of line 1 too"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(kind: Format, content: str, message: str) -> None:
    with pytest.raises(ValueError, match="^in") as caught:
        read_lines(content, kind, "in", {})
    assert message in str(caught.value)


def test_the_key_is_that_of_the_content() -> None:
    (one,) = read_lines("hello", "text", "in", {"seed": 1})
    (same,) = read_lines("\nhello", "text", "other", {"seed": 1})
    others = [*read_lines("hallo", "text", "in", {"seed": 1}), *read_lines("hello", "text", "", {})]
    assert one.key == same.key
    assert one.key not in {other.key for other in others}
