"""Every fault in the input is one INVALID_ARGUMENT that names the field, and harms nobody else."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import golden
import numpy as np
import pytest
import tritonclient.http
from launcher import EmbeddedServer
from speech_calls import CallError, audio, stream, unary_grpc, unary_http

SPEAKER: str = golden.TINY_CASES["spk_string"]
OTHER_SPEAKER: str = golden.VECTOR_CASES["spk_string"]  # of another checkpoint's length
PROMPT_STRING: str = golden.TINY_CASES["prompt_string"]
GOOD: dict[str, Any] = {"text": "hello world.", "seed": 3, "max_new_tokens": 60}
NAN = float("nan")

FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("text", {"text": ""}),
    ("text", {"text": " \n "}),
    ("text", {"text": "x" * 5001}),
    ("text", {"text": "好" * 5001}),
    ("text", {"text": b"hello \xff\xfe"}),
    ("text", {"text": b"\xed\xa0\x80"}),
    ("text", {"text": "\u200b\ufeff\u3000"}),
    ("text", {"text": "<speak>hello<audio/></speak>"}),
    ("text", {"text": "hello<break time='11s'/>"}),
    ("text", {"text": "Привет", "options": '{"on_unsupported": "error"}'}),
    ("text", {"text": "hello [spk_emb] world"}),
    ("text", {"text": "hello [Ebreak]"}),
    ("text", {"text": "[Stts]hello[Ptts]"}),
    ("text", {"text": "[empty_spk] hello"}),
    ("text", {"text": "hello [UNK]"}),
    ("text", {"text": "[speed_9] hello"}),
    ("temperature", {"temperature": NAN}),
    ("temperature", {"temperature": 0.0}),
    ("temperature", {"temperature": 2.5}),
    ("top_p", {"top_p": NAN}),
    ("top_p", {"top_p": 0.0}),
    ("top_p", {"top_p": 1.01}),
    ("top_k", {"top_k": 0}),
    ("top_k", {"top_k": 10_000}),
    ("repetition_penalty", {"repetition_penalty": float("inf")}),
    ("repetition_penalty", {"repetition_penalty": -1.0}),
    ("min_new_tokens", {"min_new_tokens": -5}),
    ("min_new_tokens", {"min_new_tokens": 61, "max_new_tokens": 60}),
    ("max_new_tokens", {"max_new_tokens": 0}),
    ("max_new_tokens", {"max_new_tokens": 2**31 - 1}),
    ("priority", {"priority": 0}),
    ("deadline_ms", {"deadline_ms": -1}),
    ("voice", {"voice": "alloy"}),
    ("voice", {"voice": "小美"}),
    ("voice", {"voice": "@@@"}),
    ("voice", {"voice": SPEAKER[:-8]}),
    ("voice", {"voice": SPEAKER[:30] + "A" + SPEAKER[31:]}),
    ("voice", {"voice": OTHER_SPEAKER}),
    ("voice", {"voice": PROMPT_STRING}),
    ("voice", {"voice": b"\xff"}),
    ("style", {"style": "[speed_10]"}),
    ("style", {"style": "slowly"}),
    ("language", {"language": "fr"}),
    ("latency", {"latency": "lowest"}),
    ("encoding", {"encoding": "mp3"}),
    ("options", {"options": '{"speed": 3}'}),
    ("options", {"options": '{"split": "yes"}'}),
    ("options", {"options": "{"}),
]
WORDLESS = ["[laugh]", "[uv_break][lbreak]", "...!?", "😀", "“”"]
SHAPE_FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("seed", {"seed": np.array([1, 2], np.uint64)}),
    ("temperature", {"temperature": np.array([[0.3]], np.float32)}),
    ("text", {"text": np.array([b"a", b"b"], np.object_)}),
    ("stream", {"stream": np.zeros(0, np.bool_)}),
]


def error_of(ask: Any, server: EmbeddedServer, **values: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        ask(server, **{**GOOD, **values})
    return caught.value


@pytest.mark.parametrize(("field", "values"), FAULTS)
def test_a_fault_is_one_typed_error_that_names_the_field(
    tiny_server: EmbeddedServer, field: str, values: dict[str, Any]
) -> None:
    error = error_of(stream, tiny_server, **values)
    assert error.code == "INVALID_ARG"
    assert error.message.startswith(f"{field}: ")


@pytest.mark.parametrize("text", WORDLESS)
def test_a_text_without_words_is_silence_in_a_stream_and_a_fault_otherwise(
    tiny_server: EmbeddedServer, text: str
) -> None:
    (answer,) = stream(tiny_server, **{**GOOD, "text": text})
    assert answer.is_final
    assert len(answer.samples) == 0
    assert answer.metadata["finish_reasons"] == []
    assert answer.metadata["warnings"][-1]["code"] == "no_speakable_text"
    error = error_of(unary_grpc, tiny_server, text=text)
    assert error.code == "StatusCode.INVALID_ARGUMENT"
    assert error.message.startswith("text: nothing in it can be spoken")


@pytest.mark.parametrize(("field", "values"), SHAPE_FAULTS)
def test_a_wrong_shape_is_refused_by_triton_itself_and_names_the_input(
    tiny_server: EmbeddedServer, field: str, values: dict[str, Any]
) -> None:
    """On a stream such an error has no code; the unary call has one."""
    assert f"input '{field}'" in error_of(stream, tiny_server, **values).message
    error = error_of(unary_grpc, tiny_server, **values)
    assert error.code == "StatusCode.INVALID_ARGUMENT"
    assert f"input '{field}'" in error.message


@pytest.mark.parametrize(("field", "values"), FAULTS[::7])
def test_the_unary_model_gives_the_same_code_and_message(
    tiny_server: EmbeddedServer, field: str, values: dict[str, Any]
) -> None:
    streamed = error_of(stream, tiny_server, **values)
    over_grpc = error_of(unary_grpc, tiny_server, **values)
    over_http = error_of(unary_http, tiny_server, **values)
    assert over_grpc.code == "StatusCode.INVALID_ARGUMENT"
    assert over_http.code == "400"
    assert over_grpc.message == streamed.message
    assert over_http.message.endswith(streamed.message)


def test_an_unknown_voice_says_how_to_list_the_voices(tiny_server: EmbeddedServer) -> None:
    message = error_of(stream, tiny_server, voice="alloy").message
    assert 'options={"list_voices": true}' in message


def test_a_megabyte_of_text_is_refused_without_being_worked_on(tiny_server: EmbeddedServer) -> None:
    started_at = time.monotonic()
    for text in ("x" * 1_000_000, "好" * 350_000, b"\xff" * 1_000_000):
        assert "allowed: 1 ... 5000 characters" in error_of(stream, tiny_server, text=text).message
    refused_s = time.monotonic() - started_at
    started_at = time.monotonic()
    stream(tiny_server, **{**GOOD, "min_new_tokens": 500, "max_new_tokens": 500})
    assert refused_s < time.monotonic() - started_at


def test_good_requests_beside_200_malformed_ones_all_succeed(tiny_server: EmbeddedServer) -> None:
    expected = audio(stream(tiny_server, **GOOD))
    chance = random.Random(11)
    faults: list[dict[str, Any] | None] = [
        {**GOOD, **chance.choice(FAULTS + SHAPE_FAULTS)[1]}
        if chance.random() < 0.7
        else _noise(chance)
        for _ in range(200)
    ]
    requests = [*faults, *[None] * 40]
    chance.shuffle(requests)

    def ask(values: dict[str, Any] | None) -> str:
        if values is None:
            return "good" if np.array_equal(audio(stream(tiny_server, **GOOD)), expected) else "bad"
        try:
            stream(tiny_server, **values)
        except CallError as error:
            return "shape" if "unexpected shape" in error.message else error.code
        return "accepted"

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, requests))
    assert answers.count("good") == 40
    assert answers.count("INVALID_ARG") + answers.count("shape") == 200
    with tritonclient.http.InferenceServerClient(tiny_server.http_url) as client:
        assert client.is_server_ready()
        assert all(client.is_model_ready(name) for name in ("chattts", "chattts_gpt"))


def _noise(chance: random.Random) -> dict[str, Any]:
    """Random bytes where text belongs, always with one byte that UTF-8 does not have."""
    field = chance.choice(["text", "voice", "style", "language", "encoding", "options"])
    return {**GOOD, field: chance.randbytes(chance.randrange(60)) + b"\xff"}
