"""Arguments become tensors and tensors become results; what does not fit is a typed error."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from types import MappingProxyType
from typing import Any

import chattts_pipeline
import numpy as np
import pytest
from chattts_client import (
    AlignedSpan,
    InvalidRequestError,
    ProtocolError,
    SpeechOptions,
    TextSegment,
)
from chattts_client._answers import Reader, read_chunk, read_dry_run, read_voices
from chattts_client._protocol import (
    CONTRACT,
    INPUTS,
    OWN_INPUTS,
    SWITCHES,
    SpeechRequest,
    dry_run_request,
    speech_request,
    voices_request,
    with_deadline,
)
from chattts_pipeline.options import Options
from chattts_text import OPTION_NAMES
from numpy.typing import NDArray
from unit.client.fake_answers import Outputs, dry_run_answer, outputs, voices_answer


def nested(depth: int) -> dict[str, Any]:
    """A mapping in a mapping in a mapping, and so on."""
    inner: dict[str, Any] = {}
    for _ in range(depth):
        inner = {"split": inner}
    return inner


def values(request: SpeechRequest) -> dict[str, Any]:
    return {tensor.name: tensor.data.item() for tensor in request.tensors}


def reader(response: Outputs) -> Reader:
    return response.get


def final_response(changes: dict[str, NDArray[Any] | None]) -> Reader:
    return {**outputs(np.zeros(4, dtype=np.float32), is_final=True), **changes}.get


def test_options_are_the_inputs_that_the_client_does_not_set_itself() -> None:
    assert set(SpeechOptions.__annotations__) == set(INPUTS) - OWN_INPUTS | {"model_version"}


def test_every_option_reaches_its_input() -> None:
    options: SpeechOptions = {
        "voice": "en",
        "language": "en",
        "style": "[speed_3]",
        "refine": True,
        "temperature": 0.5,
        "top_p": 1,
        "top_k": 5,
        "repetition_penalty": 1.0,
        "min_new_tokens": 0,
        "max_new_tokens": 64,
        "seed": 2**64 - 1,
        "latency": "exact",
        "priority": 1,
        "deadline_ms": 500,
        "options": {"split": False},
    }
    request = speech_request("héllo 你好", options, stream=True)
    expected: dict[str, Any] = {**options, "text": "héllo 你好", "stream": True}
    expected["options"] = json.dumps(expected["options"])
    texts = {name for name, kind in INPUTS.items() if kind == "BYTES"}
    decoded = {k: v.decode() if k in texts else v for k, v in values(request).items()}
    assert decoded == expected
    kinds = {"FP32": np.float32, "INT32": np.int32, "UINT64": np.uint64, "BOOL": np.bool_}
    for tensor in request.tensors:
        assert tensor.data.shape == (1,)
        assert tensor.data.dtype == kinds.get(tensor.datatype, np.object_)


def test_the_version_is_no_input_but_travels_beside_them() -> None:
    request = speech_request("hello", {"model_version": "2"}, stream=False)
    assert values(request) == {"text": b"hello", "stream": False}
    assert request.model_version == voices_request("2").model_version == "2"
    assert speech_request("hello", {}, stream=False).model_version == ""


@pytest.mark.parametrize("version", [2, "two", "-1", "1.0"])
def test_a_version_that_is_no_number_is_refused(version: object) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        speech_request("hello", {"model_version": version}, stream=False)
    assert caught.value.field == "model_version"


def test_what_is_not_given_is_left_to_the_server() -> None:
    request = speech_request("hello", {"seed": None}, stream=False)
    assert values(request) == {"text": b"hello", "stream": False}


def test_each_request_has_its_own_id() -> None:
    ids = {speech_request("hello", {}, stream=True).request_id for _ in range(50)}
    assert len(ids) == 50


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("voice", 3, "voice: 3 is not a str"),
        ("voice", b"en", "voice: b'en' is not a str"),
        ("style", "\ud800", "style: .*surrogates not allowed"),
        ("refine", 1, "refine: 1 is not a bool"),
        ("temperature", "hot", "temperature: 'hot' is not a number"),
        ("temperature", True, "temperature: True is not a number"),
        ("top_k", 2.5, "top_k: 2.5 is not a whole number"),
        ("top_k", np.array(1.5), "top_k: .* is not a whole number"),
        ("top_k", True, "top_k: True is not a whole number"),
        ("max_new_tokens", 2**31, "max_new_tokens: 2147483648 is outside -2147483648 ... 21"),
        ("seed", -1, "seed: -1 is outside 0 ... 18446744073709551615"),
        ("seed", 2**64, "seed: 18446744073709551616 is outside 0 ... 18446744073709551615"),
        ("options", {"split": {1}}, r"options: \{1\} is neither text, a number, a list nor"),
        ("options", {"split": float("nan")}, "options: Out of range float"),
        ("options", {1: True}, "options: the key 1 is not a str"),
        ("options", '{"split": false}', "options: .* is not a mapping, such as"),
        ("options", ["split"], "options: .* is not a mapping, such as"),
        ("options", nested(5_000), "options: .*recursion"),
    ],
)
def test_a_value_that_cannot_be_sent_names_its_field(name: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message) as caught:
        speech_request("hello", {name: value}, stream=True)
    assert caught.value.field == name
    assert not caught.value.retryable


def test_numpy_numbers_are_numbers() -> None:
    options = {"seed": np.uint64(3), "top_k": np.int64(4), "temperature": np.float64(0.25)}
    sent = values(speech_request("hello", options, stream=True))
    assert (sent["seed"], sent["top_k"], sent["temperature"]) == (3, 4, 0.25)


@pytest.mark.parametrize("value", [1e300, float("nan"), 10**400, -(10**400)])
def test_a_number_outside_float32_is_left_to_the_server_to_refuse(value: float) -> None:
    sent = values(speech_request("hello", {"temperature": value}, stream=True))
    assert not np.isfinite(sent["temperature"])


@pytest.mark.parametrize("name", ["volume", *sorted(OWN_INPUTS - {"text"})])
def test_an_unknown_option_is_a_type_error_as_in_any_python_call(name: str) -> None:
    with pytest.raises(TypeError, match=f"unknown option '{name}'"):
        speech_request("hello", {name: 1}, stream=True)


def test_a_mistyped_option_is_told_the_right_one() -> None:
    with pytest.raises(TypeError, match="unknown option 'tempurature'; did you mean 'temperature'"):
        speech_request("hello", {"tempurature": 0.3}, stream=True)


@pytest.mark.parametrize(("name", "meant"), [("speed", "speed"), ("retry_qualty", "retry_quality")])
def test_a_switch_is_told_its_place(name: str, meant: str) -> None:
    place = re.escape(f"unknown option '{name}'; did you mean options={{'{meant}': ...}}?")
    with pytest.raises(TypeError, match=place):
        speech_request("hello", {name: 1.5}, stream=True)


def test_the_switches_are_those_of_the_server() -> None:
    answers = {"list_voices", "dry_run", "health"}
    names = {one.name for one in fields(Options)} | set(OPTION_NAMES)
    assert names - answers == SWITCHES


def test_text_must_be_text() -> None:
    with pytest.raises(InvalidRequestError, match="text: None is not a str"):
        speech_request(None, {}, stream=True)  # type: ignore[arg-type] # the point of the test


def test_the_voices_request_asks_for_nothing_else() -> None:
    assert values(voices_request()) == {"text": b"", "options": b'{"list_voices": true}'}


@pytest.mark.parametrize(
    ("timeout_s", "deadline_ms"), [(2.5, 3500), (0.0001, 1001), (1e12, 2**31 - 1)]
)
def test_a_deadline_is_added_after_the_time_limit(timeout_s: float, deadline_ms: int) -> None:
    request = with_deadline(speech_request("hello", {}, stream=False), timeout_s)
    assert values(request)["deadline_ms"] == deadline_ms


def test_a_deadline_is_not_added_without_limit_or_over_the_callers() -> None:
    free = speech_request("hello", {}, stream=False)
    assert with_deadline(free, None) is free
    own = speech_request("hello", {"deadline_ms": 70}, stream=False)
    assert with_deadline(own, 5.0) is own


def test_a_final_chunk_carries_the_summary_and_read_only_samples() -> None:
    samples = np.linspace(-1, 1, 5, dtype=np.float32)
    warning = {"code": "unknown_words", "message": "'xyzzy' is unknown"}
    chunk = read_chunk(reader(outputs(samples, is_final=True, warnings=[warning])), 4)
    assert (chunk.index, chunk.segment_index, chunk.num_segments) == (4, 0, 1)
    assert chunk.samples.tolist() == samples.tolist()
    assert not chunk.samples.flags.writeable
    assert chunk.summary is not None
    assert chunk.summary.seed == 7
    assert chunk.summary.timings.first_audio_ms == 20.5
    assert chunk.summary.warnings[0].code == "unknown_words"


@pytest.mark.parametrize(("sent", "expected"), [({}, ()), ({"quality": ["loop"]}, ("loop",))])
def test_faults_are_in_the_summary_if_the_server_looks_for_them(
    sent: dict[str, list[str]], expected: tuple[str, ...]
) -> None:
    chunk = read_chunk(reader(outputs(np.zeros(0, np.float32), is_final=True, **sent)), 0)
    assert chunk.summary is not None
    assert chunk.summary.quality == expected


def test_a_chunk_before_the_final_one_has_no_summary() -> None:
    response = outputs(np.zeros(4, dtype=np.float32), is_final=False)
    assert read_chunk(reader(response), 0).summary is None


def test_an_utterance_without_audio_has_no_time_of_first_audio() -> None:
    timings = {"queue_ms": 0, "first_audio_ms": None, "total_ms": 3, "audio_s": 0}
    response = outputs(np.zeros(0, dtype=np.float32), is_final=True, timings=timings)
    summary = read_chunk(reader(response), 0).summary
    assert summary is not None
    assert summary.timings.first_audio_ms is None


def changed(**metadata: object) -> NDArray[Any]:
    return outputs(np.zeros(0, dtype=np.float32), is_final=True, **metadata)["metadata"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"audio": None}, "lacks the output 'audio'"),
        ({"audio": np.zeros((2, 2), dtype=np.float32)}, r"'audio' is float32 \[2, 2\]"),
        ({"audio": np.zeros(2)}, r"'audio' is float64 \[2\]"),
        ({"is_final": None}, "lacks the output 'is_final'"),
        ({"sample_rate": np.zeros(2, dtype=np.int32)}, "'sample_rate' has 2 values"),
        ({"metadata": np.array([b"{"], dtype=np.object_)}, "not JSON"),
        ({"metadata": np.array([b"\xff"], dtype=np.object_)}, "not JSON"),
        ({"metadata": np.array([b"[]"], dtype=np.object_)}, r"answer is \[\] instead of a dict"),
        ({"metadata": changed(seed="7")}, "'seed' is '7' instead of a int"),
        ({"metadata": changed(untrained=None)}, "'untrained' is None"),
        ({"metadata": changed(finish_reasons=[1])}, "an item of 'finish_reasons' is 1"),
        ({"metadata": changed(timings={})}, "'queue_ms' is None instead of a float"),
        ({"metadata": changed(warnings=[{"code": "x"}])}, "'message' is None"),
    ],
)
def test_a_malformed_response_is_a_protocol_error(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        read_chunk(final_response(changes), 0)


def test_voices_are_read_from_the_metadata() -> None:
    (voice,) = read_voices(reader(voices_answer()))
    assert (voice.name, voice.language, voice.description) == ("en", "en", "English, calm")
    assert (voice.kind, voice.gender, voice.auditioned) == ("speaker", "female", False)
    assert (voice.languages, voice.styles, voice.aliases) == (("en",), ("calm",), ("alloy",))
    assert voice.provenance == {"method": "random", "seed": "1"}
    assert (voice.license, voice.sha256) == ("CC0-1.0", "0" * 64)


def test_an_answer_without_voices_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="'voices' is None"):
        read_voices(final_response({}))


def test_a_wrong_value_is_shown_in_short() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        speech_request("hello", {"voice": b"v" * 10_000}, stream=True)
    assert len(str(caught.value)) < 100


def test_nested_options_may_be_any_mapping_and_numpy_numbers() -> None:
    switches = MappingProxyType({"stages": MappingProxyType({"dates": False}), "n": np.int32(3)})
    (text, stream, options) = speech_request("hi", {"options": switches}, stream=True).tensors
    assert json.loads(options.data.item()) == {"stages": {"dates": False}, "n": 3}


def test_the_contract_is_that_of_the_server() -> None:
    assert CONTRACT == chattts_pipeline.CONTRACT


@pytest.mark.parametrize("is_final", [True, False])
def test_another_contract_is_refused_and_both_sides_are_named(is_final: bool) -> None:
    samples = np.zeros(4, dtype=np.float32)
    read_chunk(reader(outputs(samples, is_final=is_final, contract=CONTRACT)), 0)
    other = CONTRACT + 1
    message = f"the server speaks contract {other}, this client contract {CONTRACT}"
    with pytest.raises(ProtocolError, match=message) as caught:
        read_chunk(reader(outputs(samples, is_final=is_final, contract=other)), 0)
    assert "chattts-client" in caught.value.hint


def test_a_server_that_names_no_contract_is_understood() -> None:
    assert read_chunk(reader(outputs(np.zeros(4, dtype=np.float32), is_final=True)), 0).is_final


@pytest.mark.parametrize("option", ["list_voices", "dry_run", "health"])
def test_other_answers_are_not_asked_for_as_speech(option: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"^options: {option} is no speech"):
        speech_request("hello", {"options": {option: True}}, stream=True)


def test_a_dry_run_is_a_request_with_one_option_more() -> None:
    options: SpeechOptions = {"language": "zh", "options": {"links": "omit"}, "model_version": "2"}
    request = dry_run_request("你好", options)
    assert values(request) == {
        "text": "你好".encode(),
        "stream": False,
        "language": b"zh",
        "options": b'{"links": "omit", "dry_run": true}',
    }
    assert request.model_version == "2"
    assert values(dry_run_request("hi", {}))["options"] == b'{"dry_run": true}'


def test_a_normalized_text_is_read_from_the_metadata() -> None:
    found = read_dry_run(reader(dry_run_answer()))
    assert found.spoken == "at three "
    assert found.segments == (TextSegment("at three ", 0, 5, 0.4, 500),)
    assert found.alignment[1] == AlignedSpan(3, 4, "3", "three ")
    (warning,) = found.warnings
    assert (warning.start, warning.end, warning.text, warning.spoken) == (4, 5, "☃", "")
    assert found.estimated_s == 1.0
    with pytest.raises(ProtocolError, match="'segments' is None"):
        read_dry_run(final_response({}))
