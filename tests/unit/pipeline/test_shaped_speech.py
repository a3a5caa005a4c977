"""The options that shape a request's audio, from its segments to its last response."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from chattts_pipeline.carry_over import MAX_STEPS
from chattts_pipeline.options import Options
from chattts_pipeline.pacing import Pace
from chattts_pipeline.services import TokenChunk
from chattts_voices import Voice
from speech_stage import DEADLINE_S, RATE, Stage, chunk, samples, script, steps

SCRIPTS = {"three": script(2, 33), "two": script(1, 25, "length"), "one": script(0)}
TEXTS = ("number one", "number two", "number three")
LENGTHS = [len(samples(steps(segment, count))) for segment, count in enumerate((40, 25, 33))]


def stage_of(*pauses_ms: int) -> Stage:
    stage = Stage(SCRIPTS)
    stage.pauses_ms = pauses_ms
    return stage


@pytest.mark.parametrize("stream", [True, False])
def test_pauses_are_silence_of_the_exact_length_in_order(stream: bool) -> None:
    caller = stage_of(500, 0, 20).speak(*TEXTS, stream=stream)
    first, second, third = (samples(steps(*one)) for one in ((0, 40), (1, 25), (2, 33)))
    pause, last_pause = np.zeros(RATE // 2, np.float32), np.zeros(RATE // 50, np.float32)
    expected = np.concatenate([first, pause, second, third, last_pause])
    assert np.array_equal(caller.audio, expected)
    assert caller.finals.count(True) == 1
    assert caller.metadata[-1]["timings"]["audio_s"] == pytest.approx(len(expected) / RATE)


@pytest.mark.parametrize("latency", ["exact", "low"])
def test_speed_shortens_the_speech_and_not_the_pauses(latency: str) -> None:
    caller = stage_of(500).speak(*TEXTS, latency=latency, options=Options(speed=1.6))
    expected = sum(round(length / 1.6) for length in LENGTHS) + RATE // 2
    assert len(caller.audio) == expected
    assert caller.metadata[-1]["speed"] == 1.6
    order = [entry["segment_index"] for entry in caller.metadata]
    assert order == sorted(order)


def test_the_pace_of_low_latency_is_that_of_the_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = []

    def pace(*arguments: Any, speed: float) -> Pace:
        speeds.append(speed)
        return Pace(*arguments, speed=speed)

    monkeypatch.setattr("chattts_pipeline.speech.Pace", pace)
    stage_of().speak(*TEXTS, latency="low", options=Options(speed=1.6))
    assert speeds == [1.6]


@pytest.mark.parametrize("shape", [{"speed": 0.7}, {"level": True}, {"speed": 2.0, "level": True}])
def test_one_response_holds_what_the_stream_would(shape: dict[str, Any]) -> None:
    options = Options(**shape)
    streamed = stage_of(100, 0, 0).speak(*TEXTS, options=options)
    whole = stage_of(100, 0, 0).speak(*TEXTS, options=options, stream=False)
    assert streamed.audio.tobytes() == whole.audio.tobytes()
    assert streamed.finals == [False] * (len(streamed.finals) - 1) + [True]


def test_levelled_segments_come_whole_and_without_guesses() -> None:
    caller = stage_of().speak(*TEXTS, latency="low", options=Options(level=True))
    assert [len(piece) for piece in caller.pieces] == LENGTHS
    assert caller.metadata[-1]["latency"] == "exact"


def test_the_metadata_tells_what_was_cut_only_if_asked_for() -> None:
    assert "trimmed_ms" not in stage_of().speak(*TEXTS).metadata[-1]
    final = stage_of().speak(*TEXTS, options=Options(trim=True)).metadata[-1]
    assert final["trimmed_ms"] == [0, 0, 0]


def test_later_segments_continue_from_the_first_and_wait_for_its_end() -> None:
    stage = stage_of()
    stage.tokens.released.clear()
    speech = stage.speech(*TEXTS, options=Options(carry_over=True))
    thread = threading.Thread(target=speech.run)
    thread.start()
    assert stage.tokens.holding.wait(DEADLINE_S)
    assert len(stage.tokens.requests) == 1
    stage.tokens.released.set()
    thread.join(DEADLINE_S)
    first, *later = stage.tokens.requests
    assert "audio_prompt_codes" not in first
    assert len(later) == 2
    codes = np.repeat(np.arange(40, dtype=np.int32)[:, None], 4, axis=1)
    for request, text in zip(later, TEXTS[1:], strict=True):
        assert np.array_equal(request["audio_prompt_codes"], codes)
        assert request["prompt"].decode() == f"[Stts][empty_spk]{TEXTS[0]}[speed_5]{text}[Ptts]"


def test_no_segment_starts_before_the_first_has_ended() -> None:
    class Slow(list[TokenChunk | Exception]):
        """A script that dawdles before its end; others could start meanwhile."""

        def __iter__(self) -> Iterator[TokenChunk | Exception]:
            yield self[0]
            time.sleep(0.2)
            yield from self[1:]

    stage = Stage({"two": script(1), "one": Slow(script(0))})
    stage.parallel_segments = 3
    stage.speak("one", "two", options=Options(carry_over=True))
    assert stage.tokens.most_running == 1
    assert len(stage.tokens.requests[1]["audio_prompt_codes"]) == 40


def test_carry_over_ends_with_the_deadline_like_any_other_request() -> None:
    stage = Stage({"two": script(1), "one": [chunk(reason="deadline")]})
    caller = stage.speak("one", "two", queue_deadline_ms=5000, options=Options(carry_over=True))
    assert caller.metadata[-1]["finish_reasons"] == ["deadline", "deadline"]
    assert caller.finals == [True]


def test_only_so_much_is_carried_over() -> None:
    stage = Stage({"two": script(1), "one": script(0, 2 * MAX_STEPS)})
    stage.speak("one [laugh] half", "two", options=Options(carry_over=True))
    request = stage.tokens.requests[1]
    assert len(request["audio_prompt_codes"]) == MAX_STEPS
    assert request["prompt"].decode() == "[Stts][empty_spk] half[speed_5]two[Ptts]"


def test_a_voice_with_an_audio_prompt_cannot_be_carried_over() -> None:
    voice = Voice("v", None, np.ones((5, 4), np.int32), "before")
    with pytest.raises(ValueError, match="^options: carry_over is True; needs a voice without"):
        stage_of().speech(*TEXTS, voice=voice, options=Options(carry_over=True))


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        ("one", {}, 10),
        ("one", {"min_new_tokens": 0}, 0),
        ("one", {"min_new_tokens": 3}, 3),
        ("one", {"max_new_tokens": 4}, 4),
        ("number one", {}, 0),
    ],
)
def test_a_short_text_cannot_end_at_once(text: str, fields: dict[str, Any], expected: int) -> None:
    stage = stage_of()
    stage.speak(text, **fields)
    assert stage.tokens.requests[0]["min_new_tokens"] == expected


def test_seeds_tried_anew_are_told() -> None:
    stage = Stage({"two": script(1), "one": [chunk(steps(0, 5), "eos", num_retries=2)]})
    assert stage.speak("one", "two").metadata[-1]["retries"] == [2, 0]
