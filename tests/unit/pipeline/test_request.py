"""SpeechRequest: what is accepted, and the one error for everything else."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from chattts_pipeline.options import Options
from chattts_pipeline.request import SpeechRequest
from chattts_text import Switches
from hypothesis import given, settings
from hypothesis import strategies as st
from random_tensors import Array, outcome
from random_tensors import tensors as random_tensors

MAX_CHARACTERS = 100
SPECIAL_TOKENS = ["[Stts]", "[Ebreak]", "[spk_emb]", "[speed_5]", "[laugh]", "[uv_break]"]


def string(value: str | bytes) -> np.ndarray[Any, Any]:
    content = value.encode() if isinstance(value, str) else value
    return np.array([content], dtype=np.object_)


def read(**inputs: np.ndarray[Any, Any] | None) -> SpeechRequest:
    return read_all({"text": string("hello"), **inputs})


def read_all(inputs: dict[str, Any]) -> SpeechRequest:
    return SpeechRequest.from_inputs(
        inputs, max_text_characters=MAX_CHARACTERS, special_tokens=SPECIAL_TOKENS
    )


def error_of(**inputs: np.ndarray[Any, Any] | None) -> str:
    with pytest.raises(ValueError, match=r"^\w+: ") as caught:
        read(**inputs)
    return str(caught.value)


def test_a_request_with_nothing_but_text_has_the_documented_defaults() -> None:
    assert read() == SpeechRequest(text="hello")


def test_every_input_is_read() -> None:
    request = read(
        voice=string("en"),
        language=string("zh"),
        style=string("[speed_2][oral_9]"),
        refine=np.array([True]),
        temperature=np.array([1e-5], np.float32),
        top_p=np.array([1.0], np.float32),
        top_k=np.array([626], np.int32),
        repetition_penalty=np.array([2.0], np.float32),
        min_new_tokens=np.array([3], np.int32),
        max_new_tokens=np.array([3], np.int32),
        seed=np.array([2**64 - 1], np.uint64),
        stream=np.array([False]),
        latency=string("low"),
        encoding=string("pcm16"),
        priority=np.array([1], np.int32),
        deadline_ms=np.array([5000], np.int32),
        queue_deadline_ms=np.array([300], np.int32),
        options=string('{"split": false}'),
    )
    assert request.seed == 2**64 - 1
    assert request.style == "[speed_2][oral_9]"
    assert (request.refine, request.stream, request.options.split) == (True, False, False)
    assert (request.min_new_tokens, request.max_new_tokens, request.top_k) == (3, 3, 626)
    assert isinstance(request.temperature, float)
    assert isinstance(request.top_k, int)


def test_the_text_arrives_as_it_was_written() -> None:
    assert read(text=string("cafe\u0301 ")).text == "cafe\u0301 "


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("temperature", np.float32(0), "0.00001 ... 2"),
        ("temperature", np.float32(3), "0.00001 ... 2"),
        ("temperature", np.float32(np.nan), "0.00001 ... 2"),
        ("temperature", np.float32(-np.inf), "0.00001 ... 2"),
        ("top_p", np.float32(0), "0 (excluded) ... 1"),
        ("top_p", np.float32(1.5), "0 (excluded) ... 1"),
        ("top_p", np.float32(np.nan), "0 (excluded) ... 1"),
        ("repetition_penalty", np.float32(0.4), "0.5 ... 2"),
        ("repetition_penalty", np.float32(np.inf), "0.5 ... 2"),
        ("top_k", np.int32(0), "1 ... 626"),
        ("top_k", np.int32(627), "1 ... 626"),
        ("min_new_tokens", np.int32(-1), "0 ... 2048"),
        ("max_new_tokens", np.int32(0), "1 ... 2048"),
        ("max_new_tokens", np.int32(2**31 - 1), "1 ... 2048"),
        ("priority", np.int32(4), "1 ... 3"),
        ("deadline_ms", np.int32(-1), "0 ... 2147483647"),
        ("queue_deadline_ms", np.int32(-1), "0 ... 2147483647"),
    ],
)
def test_a_number_out_of_range_names_field_value_and_range(
    field: str, value: np.generic, allowed: str
) -> None:
    message = error_of(**{field: np.array([value])})
    assert message == f"{field}: {value} is outside {allowed}"


def test_more_minimum_than_maximum_tokens_is_refused() -> None:
    message = error_of(
        min_new_tokens=np.array([11], np.int32), max_new_tokens=np.array([10], np.int32)
    )
    assert message == "min_new_tokens: 11 is outside 0 ... 10 (max_new_tokens)"


@pytest.mark.parametrize(
    ("field", "array", "allowed"),
    [
        ("seed", np.array([1, 2], np.uint64), "(1,)"),
        ("seed", np.array([[1]], np.uint64), "(1,)"),
        ("seed", np.array([1], np.int32), "uint64"),
        ("temperature", np.array([0.3]), "float32"),
        ("stream", np.array([1], np.int32), "bool"),
        ("text", np.array([], dtype=np.object_), "(1,)"),
        ("text", np.array(["no bytes"], dtype=np.object_), "bytes in UTF-8"),
        ("voice", np.array([1.0], np.float32), "bytes"),
    ],
)
def test_a_wrong_shape_or_type_names_what_is_allowed(
    field: str, array: np.ndarray[Any, Any], allowed: str
) -> None:
    message = error_of(**{field: array})
    assert message.startswith(f"{field}: ")
    assert message.endswith(f"allowed: {allowed}")


@pytest.mark.parametrize("field", ["text", "voice", "style", "language", "encoding", "options"])
def test_text_that_is_not_utf8_is_refused(field: str) -> None:
    assert error_of(**{field: string(b"ab\xff\xfe")}).startswith(f"{field}: byte 2 is not UTF-8")


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("latency", "lowest", "exact, low"),
        ("language", "fr", "auto, zh, en"),
        ("encoding", "mp3", "f32, pcm16, wav_base64"),
        ("encoding", "", "f32, pcm16, wav_base64"),
        ("style", "[speed_10]", "[speed_0] ... [speed_9]"),
        ("style", "[uv_break]", "[speed_0] ... [speed_9]"),
        ("style", "[speed_5] fast", "[speed_0] ... [speed_9]"),
        ("style", "[Stts]", "[speed_0] ... [speed_9]"),
    ],
)
def test_a_value_that_is_no_choice_lists_the_choices(field: str, value: str, allowed: str) -> None:
    message = error_of(**{field: string(value)})
    assert message.startswith(f"{field}: {value!r} is not allowed; allowed: {allowed}")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('{"volume": 2}', "unknown key 'volume'; allowed: list_voices, dry_run, health, split, "),
        ('{"speed": 3}', "speed is 3; allowed: 0.5 ... 2.0"),
        ('{"speed": 0.49}', "speed is 0.49; allowed: 0.5 ... 2.0"),
        ('{"speed": NaN}', "speed is nan; allowed: 0.5 ... 2.0"),
        ('{"speed": true}', "speed is True; allowed: 0.5 ... 2.0"),
        ('{"speed": "1"}', "speed is '1'; allowed: 0.5 ... 2.0"),
        ('{"speed": ' + "9" * 400 + "}", "speed is 999"),
        ('{"split": 1}', "split is 1; allowed: true, false"),
        ('{"split": null}', "split is None; allowed: true, false"),
        ("[1]", "not a JSON object"),
        ("{", "not JSON"),
        ('{"links": "all"}', "links is 'all'; allowed: host, full, omit"),
        ('{"stages": {"sing": true}}', "stages: {'sing': True}; allowed: an object with"),
        ('{"lexicon": {"a": ""}}', "lexicon: ''; allowed: an object of at most 200 texts"),
        ("[" * 4000, "not JSON"),
        ('"' + "a" * 65535 + '"', "65537 bytes; allowed: 0 ... 65536 bytes"),
    ],
)
def test_wrong_options_are_refused(content: str, what: str) -> None:
    assert error_of(options=string(content)).startswith(f"options: {what}")


def test_the_shape_of_the_output_is_chosen_by_options() -> None:
    content = '{"speed": 2, "trim": true, "level": true, "carry_over": true}'
    options = read(options=string(content)).options
    assert (options.trim, options.level, options.carry_over) == (True, True, True)
    assert isinstance(options.speed, float)
    assert options.speed == 2.0


def test_the_switches_of_the_text_front_end_are_read() -> None:
    content = '{"normalize": false, "links": "omit", "lexicon": {"SQL": "sequel"}}'
    request = read(language=string("zh"), options=string(content))
    assert request.switches == Switches(
        language="zh", normalize=False, links="omit", lexicon={"SQL": "sequel"}
    )
    assert request.options == Options()


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b\ufeff", "\u3000\u00a0\u2028", "\u202e"])
def test_a_blank_text_is_refused(text: str) -> None:
    assert error_of(text=string(text)).endswith("is blank; allowed: at least one visible character")


@pytest.mark.parametrize("text", ["...", "！？", "[laugh]", "😀"])
def test_what_has_no_words_is_left_to_the_front_end(text: str) -> None:
    assert read(text=string(text)).text == text


def test_a_missing_text_is_refused() -> None:
    assert error_of(text=None) == "text: missing; allowed: 1 ... 100 characters"


def test_a_text_that_is_too_long_is_refused_before_it_is_decoded() -> None:
    assert (
        error_of(text=string("好" * 101)) == "text: 101 characters; allowed: 1 ... 100 characters"
    )
    far_too_long = error_of(text=string(b"\xff" * 401))
    assert far_too_long == "text: 401 bytes; allowed: 1 ... 100 characters"


@pytest.mark.parametrize(
    "token", ["[Stts]", "[Ebreak]", "[spk_emb]", "[speed_5]", "[UNK]", "[PAD]", "[CLS]", "[MASK]"]
)
def test_a_structural_token_inside_the_text_is_refused_by_name(token: str) -> None:
    message = error_of(text=string(f"good {token} day"))
    assert message.startswith(f"text: control token {token} is not allowed; allowed: [uv_break]")


def test_a_structural_token_that_appears_only_in_normal_form_is_refused() -> None:
    assert "[MASK]" in error_of(text=string("a [MAS\u212a]"))  # the Kelvin sign becomes K


def test_the_first_of_several_structural_tokens_is_named() -> None:
    assert "[spk_emb]" in error_of(text=string("a [spk_emb] b [Stts]"))


@pytest.mark.parametrize("text", ["so [uv_break] good[laugh]", "see [12] and [foo]", "[stts] 5"])
def test_pauses_laughter_and_plain_brackets_pass(text: str) -> None:
    assert read(text=string(text)).text == text


@pytest.mark.parametrize("switch", ["list_voices", "health"])
def test_what_answers_without_speech_needs_no_text(switch: str) -> None:
    request = read(text=string(""), options=string(json.dumps({switch: True})))
    assert getattr(request.options, switch)


TYPES: dict[str, Any] = {
    **dict.fromkeys(
        ["text", "voice", "language", "style", "latency", "encoding", "options"], np.object_
    ),
    **dict.fromkeys(["temperature", "top_p", "repetition_penalty"], np.float32),
    **dict.fromkeys(["top_k", "min_new_tokens", "max_new_tokens", "priority"], np.int32),
    **dict.fromkeys(["deadline_ms", "queue_deadline_ms"], np.int32),
    **dict.fromkeys(["refine", "stream"], np.bool_),
    "seed": np.uint64,
}


def test_the_fuzz_knows_every_field() -> None:
    assert set(SpeechRequest.__dataclass_fields__) - {"switches"} <= set(TYPES)


@settings(max_examples=300, deadline=None)
@given(given_tensors=random_tensors(TYPES), has_text=st.booleans())
def test_any_tensors_are_a_request_in_range_or_one_error_that_names_an_input(
    given_tensors: dict[str, Array], has_text: bool
) -> None:
    inputs = {**given_tensors, **({"text": string("hello")} if has_text else {})}
    request, refusal = outcome(lambda: read_all(inputs))
    if request is None:
        names = "|".join({*inputs, "text"})
        assert re.match(rf"({names}): .*(outside|allowed: )", refusal, re.DOTALL)
        return
    assert 1e-5 <= np.float32(request.temperature) <= 2
    assert 0 < request.top_p <= 1
    assert request.priority in (1, 2, 3)
    assert 0 <= (request.min_new_tokens or 0) <= (request.max_new_tokens or 2048) <= 2048
    assert min(request.deadline_ms, request.queue_deadline_ms) >= 0
    assert len(request.text) <= MAX_CHARACTERS or request.options.list_voices
