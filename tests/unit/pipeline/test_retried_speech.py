"""A second try after a fault: when, with which seed, which one is sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chattts_pipeline.errors import SpeechError
from chattts_pipeline.options import Options
from chattts_pipeline.request import SpeechRequest
from chattts_pipeline.retried_speech import RetriedSpeech
from speech_stage import FakeCaller, Stage, chunk, script

SILENCE = [chunk([0.0] * 40), chunk(reason="eos")]
"""Samples are what the steps hold."""
OVERDRIVEN = [chunk([2.0] * 40), chunk(reason="eos")]
GOOD = [chunk([0.5] * 40), chunk(reason="eos")]


class Tries(Stage):
    """A stage whose token model plays one script per try."""

    def __init__(self, *scripts: Any) -> None:
        super().__init__({"one": scripts[0]})
        self._left = list(scripts)
        generate = self.tokens.generate

        def next_try(inputs: Any) -> Any:
            self.tokens.scripts = {"one": self._left.pop(0)}
            yield from generate(inputs)

        self.tokens.generate = next_try  # type: ignore[method-assign]

    def retried(self, **fields: Any) -> tuple[FakeCaller, RetriedSpeech]:
        once = self.speech("one", stream=False, options=Options(retry_quality=True), **fields)
        speech = RetriedSpeech(
            once._plan, once._services, self.caller, {"model_version": "1"}, once._received_at
        )
        try:
            speech.run()
        finally:
            speech.drain()
        return self.caller, speech


def test_what_is_in_order_is_spoken_once() -> None:
    stage = Tries(GOOD)
    caller, speech = stage.retried()
    assert caller.finals == [True]
    assert caller.metadata[0]["quality"] == []
    assert "quality_retry" not in caller.metadata[0]
    assert not speech.progress().is_retried


def test_a_fault_is_spoken_again_with_another_seed_that_can_be_asked_for() -> None:
    stage = Tries(SILENCE, GOOD)
    caller, speech = stage.retried()
    metadata = caller.metadata[0]
    assert caller.finals == [True]
    assert np.all(caller.audio == 0.5)
    assert metadata["quality"] == []
    assert metadata["seed"] == 7
    retry = metadata["quality_retry"]
    assert (retry["first"], retry["second"], retry["kept"]) == (["silent"], [], "second")
    progress = speech.progress()
    assert (progress.seed, progress.num_tokens, progress.is_retried) == (7, 80, True)
    assert progress.quality == ()
    again = Stage({"one": GOOD}).speech("one", stream=False)
    assert retry["seed"] < 2**53
    assert stage.tokens.requests[0]["seed"] != stage.tokens.requests[1]["seed"]
    assert again._plan.seed == 7


def test_the_second_seed_follows_from_the_first() -> None:
    seeds = set()
    for _ in range(2):
        caller, _speech = Tries(SILENCE, GOOD).retried()
        seeds.add(caller.metadata[0]["quality_retry"]["seed"])
    assert len(seeds) == 1


@pytest.mark.parametrize("second", [SILENCE, OVERDRIVEN])
def test_the_first_is_sent_unless_the_second_is_better(second: Any) -> None:
    caller, speech = Tries(SILENCE, second).retried()
    metadata = caller.metadata[0]
    assert np.all(caller.audio == 0)
    assert metadata["quality"] == ["silent"]
    assert metadata["quality_retry"]["kept"] == "first"
    assert speech.progress().quality == ("silent",)


def test_a_second_try_that_fails_costs_nothing() -> None:
    caller, _ = Tries(SILENCE, [SpeechError("UNAVAILABLE", "full")]).retried()
    assert caller.finals == [True]
    retry = caller.metadata[0]["quality_retry"]
    assert (retry["second"], retry["kept"]) == (None, "first")


def test_a_second_try_that_is_cancelled_ends_the_request() -> None:
    stage = Tries(SILENCE, [SpeechError("CANCELLED", "gone")])
    with pytest.raises(SpeechError, match="gone"):
        stage.retried()
    assert stage.caller.finals == []


def test_what_ran_into_its_deadline_is_not_tried_again() -> None:
    caller, speech = Tries([chunk([0.0] * 40), chunk(reason="deadline")]).retried()
    assert caller.metadata[0]["quality"] == ["silent"]
    assert not speech.progress().is_retried


def test_a_stream_cannot_be_tried_again() -> None:
    inputs = {
        "text": np.array([b"hello"], np.object_),
        "options": np.array([b'{"retry_quality": true}'], np.object_),
    }
    with pytest.raises(ValueError, match="options: retry_quality is True; needs stream false"):
        SpeechRequest.from_inputs(inputs, 100, ())
    once = inputs | {"stream": np.array([False])}
    assert SpeechRequest.from_inputs(once, 100, ()).options.retry_quality


def test_the_stage_finds_faults_in_streams_too() -> None:
    caller = Stage({"one": SILENCE, "two": script(0)}).speak("one", "two")
    assert "silent" in caller.metadata[-1]["quality"]
