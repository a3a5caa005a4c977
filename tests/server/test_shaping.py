"""Speed, trim, level, pauses and carry-over on a real server."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from chattts_pipeline.level import CEILING, TARGET_LUFS, loudness
from ear import SENTENCES, demo_ear
from launcher import EmbeddedServer
from speech_calls import Response, audio, open_stream, stream, unary_http
from train_voice.recognizer import WordScore

RATE = 24000
STEPS = 90
SEGMENT_SAMPLES = 512 * STEPS - 256
TWO_SENTENCES: dict[str, Any] = {
    "text": "hello world. this is a test.",
    "seed": 5,
    "max_new_tokens": STEPS,
}
SPOKEN: dict[str, Any] = {
    "text": "please call anna at six. the train to london leaves at this time.",
    "voice": "en",
    "seed": 1,
}
MAX_LOSS = 0.03
CONCURRENCY = 4


def options(**values: Any) -> str:
    return json.dumps(values)


def segments(responses: list[Response]) -> list[np.ndarray[Any, Any]]:
    """The samples of each segment."""
    num_segments = responses[0].metadata["num_segments"]
    return [
        np.concatenate([r.samples for r in responses if r.metadata["segment_index"] == index])
        for index in range(num_segments)
    ]


@pytest.mark.parametrize(
    "shape",
    [
        {"speed": 1.5},
        {"speed": 0.5},
        {"trim": True},
        {"level": True},
        {"speed": 1.3, "trim": True, "level": True},
    ],
    ids="+".join,
)
def test_streamed_samples_are_the_one_shot_samples(
    demo_server: EmbeddedServer, shape: dict[str, Any]
) -> None:
    streamed = stream(demo_server, options=options(**shape), **SPOKEN)
    (whole,) = stream(demo_server, options=options(**shape), stream=False, **SPOKEN)
    assert whole.samples.tobytes() == audio(streamed).tobytes()
    assert whole.metadata["finish_reasons"] == ["eos", "eos"]
    assert [response.is_final for response in streamed].count(True) == 1
    assert ("trimmed_ms" in whole.metadata) == shape.get("trim", False)


@pytest.mark.parametrize("speed", [0.5, 0.9, 1.5, 2.0])
@pytest.mark.parametrize("latency", ["exact", "low"])
def test_speed_changes_the_duration_alone(
    tiny_server: EmbeddedServer, speed: float, latency: str
) -> None:
    responses = stream(tiny_server, options=options(speed=speed), latency=latency, **TWO_SENTENCES)
    assert [len(one) for one in segments(responses)] == [round(SEGMENT_SAMPLES / speed)] * 2
    final = responses[-1].metadata
    assert final["speed"] == speed
    assert final["timings"]["audio_s"] == pytest.approx(len(audio(responses)) / RATE, abs=1e-3)


def test_the_unary_model_shapes_too(tiny_server: EmbeddedServer) -> None:
    streamed = stream(tiny_server, options=options(speed=1.5), **TWO_SENTENCES)
    whole = unary_http(tiny_server, options=options(speed=1.5), **TWO_SENTENCES)
    assert whole.samples.tobytes() == audio(streamed).tobytes()


def test_segments_continue_from_the_first(tiny_server: EmbeddedServer) -> None:
    apart = segments(stream(tiny_server, **TWO_SENTENCES))
    carried = segments(stream(tiny_server, options=options(carry_over=True), **TWO_SENTENCES))
    again = segments(stream(tiny_server, options=options(carry_over=True), **TWO_SENTENCES))
    assert carried[0].tobytes() == apart[0].tobytes()
    assert carried[1].tobytes() == again[1].tobytes()
    assert not np.array_equal(carried[1], apart[1])
    request = {"options": options(carry_over=True, speed=1.3, level=True), **TWO_SENTENCES}
    (whole,) = stream(tiny_server, stream=False, **request)
    assert whole.samples.tobytes() == audio(stream(tiny_server, **request)).tobytes()


def test_segments_come_out_equally_loud(demo_server: EmbeddedServer) -> None:
    levelled = segments(stream(demo_server, options=options(level=True), **SPOKEN))
    values = [loudness(one, RATE) for one in levelled]
    assert values == pytest.approx([TARGET_LUFS] * 2, abs=0.5)
    assert max(np.abs(one).max() for one in levelled) <= CEILING


def test_a_break_is_silence_of_its_length(demo_server: EmbeddedServer) -> None:
    sentences = ["hello anna.", "how are you today?"]
    marked = '<break time="700ms"/>'.join(sentences)
    for shape in ({}, {"speed": 1.5}):
        spoken = stream(
            demo_server, text=marked, voice="en", seed=1, options=options(trim=True, **shape)
        )
        first, second = segments(spoken)
        silent = round(0.7 * RATE)
        assert not first[-silent:].any()
        assert first[-silent - RATE // 10 : -silent].any()
        assert second[: RATE // 2].any()


def test_a_short_text_has_time_to_be_said(demo_server: EmbeddedServer) -> None:
    for text in ("yes", "是。", "好"):
        responses = stream(demo_server, text=text, seed=3)
        assert len(audio(responses)) >= 512 * 5 - 256
        assert responses[-1].metadata["retries"] == [0]


def test_a_held_segment_is_given_up_with_its_caller(demo_server: EmbeddedServer) -> None:
    request = {"text": SPOKEN["text"], "min_new_tokens": 2000, "options": options(level=True)}
    for _ in range(3):
        with open_stream(demo_server, **request):
            pass
    assert stream(demo_server, options=options(level=True), **SPOKEN)[-1].is_final


@pytest.fixture(scope="module")
def understood(demo_server: EmbeddedServer) -> Any:
    """Says how well the sentences are understood with some options."""
    ear = demo_ear()

    def listen(**shape: Any) -> WordScore:
        def speak(sentence: str) -> tuple[str, list[Response]]:
            request = {"voice": "en", "seed": 1, "options": options(**shape)}
            return sentence, stream(demo_server, text=sentence, **request)

        with ThreadPoolExecutor(CONCURRENCY) as pool:
            spoken = list(pool.map(speak, SENTENCES[::2]))
        return ear.score((said, ear.hear(audio(heard), RATE)) for said, heard in spoken)

    return listen


def test_shaped_speech_is_understood_as_well(understood: Any) -> None:
    plain = understood()
    for shape in ({"speed": 0.75}, {"speed": 1.5}, {"trim": True, "level": True}):
        score = understood(**shape)
        assert score.accuracy >= plain.accuracy - MAX_LOSS, (shape, score, plain)
