"""chattts and chattts_unary on a real server: samples, order, markers, voices, seeds, overload."""

from __future__ import annotations

import base64
import io
import wave
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import golden
import numpy as np
import pytest
from chattts_pipeline.audio import pcm16, wav_header
from conftest import DEMO_VOICES
from launcher import EmbeddedServer
from speech_calls import CallError, Response, audio, open_stream, stream, unary_grpc, unary_http

TWO_SENTENCES = "hello world. this is a test."
FIXED: dict[str, Any] = {"text": TWO_SENTENCES, "seed": 5, "max_new_tokens": 90}
MAX_STREAMS = 64


@pytest.fixture(scope="module")
def streamed(tiny_server: EmbeddedServer) -> list[Response]:
    return stream(tiny_server, **FIXED)


def test_streamed_samples_are_the_one_shot_samples(
    tiny_server: EmbeddedServer, streamed: list[Response]
) -> None:
    whole = stream(tiny_server, stream=False, **FIXED)
    assert len(streamed) > 4
    assert len(whole) == 1
    assert whole[0].samples.shape == audio(streamed).shape
    assert whole[0].samples.tobytes() == audio(streamed).tobytes()


def test_only_the_last_response_is_final_and_it_has_audio(streamed: list[Response]) -> None:
    assert [response.is_final for response in streamed] == [False] * (len(streamed) - 1) + [True]
    assert all(len(response.samples) for response in streamed)
    assert {response.sample_rate for response in streamed} == {24000}


def test_segments_are_in_order_and_each_has_a_finish_reason(streamed: list[Response]) -> None:
    order = [response.metadata["segment_index"] for response in streamed]
    assert order == sorted(order)
    assert set(order) == {0, 1}
    final = streamed[-1].metadata
    assert final["num_segments"] == 2
    assert final["finish_reasons"] == ["length", "length"]
    assert final["text_segments"] == ["hello world.", "this is a test."]
    assert len(audio(streamed)) == 2 * (512 * 90 - 256)


def test_the_final_metadata_is_complete(streamed: list[Response]) -> None:
    final = streamed[-1].metadata
    assert final["request_id"] == "5"
    assert final["seed"] == 5
    assert (final["checkpoint"], final["precision"]) == ("tiny", "fp32")
    assert (final["model_version"], final["voice"]) == ("1", "")
    assert isinstance(final["untrained"], bool)
    timings = final["timings"]
    assert 0 < timings["first_audio_ms"] <= timings["total_ms"]
    assert timings["audio_s"] == pytest.approx(len(audio(streamed)) / 24000, abs=1e-3)


def test_a_drawn_seed_is_returned_and_gives_the_same_samples_again(
    tiny_server: EmbeddedServer,
) -> None:
    request = {"text": "hello", "max_new_tokens": 70}
    first = stream(tiny_server, **request)
    seed = first[0].metadata["seed"]
    again = stream(tiny_server, seed=seed, **request)
    other = stream(tiny_server, seed=seed + 1, **request)
    assert np.array_equal(audio(first), audio(again))
    assert not np.array_equal(audio(first), audio(other))


def test_a_segment_sounds_the_same_whatever_follows(
    tiny_server: EmbeddedServer, streamed: list[Response]
) -> None:
    alone = audio(stream(tiny_server, **{**FIXED, "text": "hello world."}))
    assert alone.tobytes() == audio(streamed)[: len(alone)].tobytes()


def test_without_splitting_the_text_is_one_segment(tiny_server: EmbeddedServer) -> None:
    responses = stream(tiny_server, options='{"split": false}', **FIXED)
    assert responses[-1].metadata["text_segments"] == [TWO_SENTENCES]


@pytest.mark.parametrize("ask", [unary_grpc, unary_http])
def test_the_unary_model_returns_the_same_samples(
    tiny_server: EmbeddedServer, streamed: list[Response], ask: Any
) -> None:
    answer = ask(tiny_server, **FIXED)
    assert answer.is_final
    assert answer.metadata["finish_reasons"] == ["length", "length"]
    assert answer.samples.tobytes() == audio(streamed).tobytes()


def test_other_encodings_hold_the_same_samples(
    tiny_server: EmbeddedServer, streamed: list[Response]
) -> None:
    expected = pcm16(audio(streamed))
    raw = stream(tiny_server, encoding="pcm16", **FIXED)
    assert all(len(response.samples) == 0 for response in raw)
    joined = np.frombuffer(b"".join(response.content for response in raw), "<i2")
    assert joined.tobytes() == expected
    parts = stream(tiny_server, encoding="wav_base64", **FIXED)
    decoded = b"".join(base64.b64decode(part.content, validate=True) for part in parts)
    assert decoded == wav_header(24000, None) + joined.tobytes()


def test_a_whole_wav_opens_with_exact_sizes(tiny_server: EmbeddedServer) -> None:
    answer = unary_http(tiny_server, encoding="wav_base64", **FIXED)
    with wave.open(io.BytesIO(base64.b64decode(answer.content))) as file:
        assert file.getnframes() == 2 * (512 * 90 - 256)
        assert file.getframerate() == 24000


def test_a_speaker_string_changes_the_voice(
    tiny_server: EmbeddedServer, streamed: list[Response]
) -> None:
    custom = stream(tiny_server, voice=golden.TINY_CASES["spk_string"], **FIXED)
    assert custom[-1].metadata["voice"] == "custom"
    assert not np.array_equal(audio(custom), audio(streamed))


def test_the_refine_pass_keeps_the_words_or_warns(tiny_server: EmbeddedServer) -> None:
    final = stream(tiny_server, refine=True, **FIXED)[-1].metadata
    warnings = [warning["code"] for warning in final["warnings"]]
    assert set(warnings) <= {"refine_discarded"}
    assert len(final["text_segments"]) == 2


def test_a_deadline_ends_the_speech_with_what_there_is(tiny_server: EmbeddedServer) -> None:
    text = " ".join([TWO_SENTENCES] * 20)
    responses = stream(tiny_server, text=text, deadline_ms=300, min_new_tokens=2048)
    reasons = responses[-1].metadata["finish_reasons"]
    assert reasons[-1] == "deadline"
    assert len(reasons) == responses[-1].metadata["num_segments"] > 1
    assert [response.is_final for response in responses].count(True) == 1


def test_voices_are_listed_and_spoken(demo_server: EmbeddedServer) -> None:
    (answer,) = stream(demo_server, text="", options='{"list_voices": true}')
    assert answer.is_final
    voices = {voice["name"]: voice["language"] for voice in answer.metadata["voices"]}
    assert voices == DEMO_VOICES
    final = stream(demo_server, text="hello anna, how are you today", voice="en", seed=1)[-1]
    assert final.metadata["voice"] == "en"
    assert final.metadata["warnings"] == []
    assert final.metadata["finish_reasons"] == ["eos"]


def test_words_the_voice_does_not_know_are_named(demo_server: EmbeddedServer) -> None:
    request = {"text": "hello quantum 42", "max_new_tokens": 40, "seed": 1}
    (warning,) = stream(demo_server, **request)[-1].metadata["warnings"]
    assert warning["code"] == "outside_vocabulary"
    assert ": quantum;" in warning["message"]


def test_cancelled_requests_free_their_places(tiny_server: EmbeddedServer) -> None:
    for _ in range(MAX_STREAMS + 6):
        with open_stream(tiny_server, text=TWO_SENTENCES, min_new_tokens=2048) as responses:
            assert not next(responses).is_final
    assert stream(tiny_server, **FIXED)[-1].is_final


def test_one_request_too_many_is_refused_at_once_and_the_others_finish(
    tiny_server: EmbeddedServer,
) -> None:
    """Also keeps many streams in flight at once, which crashed the front's process before."""

    def speak(seed: int) -> str:
        try:
            return str(stream(tiny_server, **{**FIXED, "seed": seed})[-1].is_final)
        except CallError as error:
            return str(error)

    with ThreadPoolExecutor(MAX_STREAMS + 16) as pool:
        answers = list(pool.map(speak, range(MAX_STREAMS + 16)))
    refused = {answer for answer in answers if answer != "True"}
    assert answers.count("True") >= MAX_STREAMS
    assert refused <= {"UNAVAILABLE 64 requests are running; try again in 1 s"}
    assert stream(tiny_server, **FIXED)[-1].is_final
