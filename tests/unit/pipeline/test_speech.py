"""A request's life with scripted models: order, final marker, cancellation, errors, refine."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from chattts_pipeline.errors import SpeechError
from chattts_pipeline.segment import derive_seed
from chattts_pipeline.services import TokenChunk
from chattts_voices import Voice
from speech_stage import DEADLINE_S, P, Stage, chunk, samples, script, steps


def test_segments_come_in_order_whole_and_with_one_final_response() -> None:
    stage = Stage({"one": script(0), "two": script(1, 5, "length"), "three": script(2, 33)})
    caller = stage.speak("one", "two", "three")
    expected = [samples(steps(0)), samples(steps(1, 5)), samples(steps(2, 33))]
    assert np.array_equal(caller.audio, np.concatenate(expected))
    assert caller.finals == [False] * (len(caller.finals) - 1) + [True]
    assert all(len(piece) for piece in caller.pieces)
    order = [entry["segment_index"] for entry in caller.metadata]
    assert order == sorted(order)
    assert set(order) == {0, 1, 2}


def test_the_final_metadata_tells_how_it_went() -> None:
    stage = Stage({"one": script(0), "two": script(1, 5, "length")})
    metadata = stage.speak("one", "two").metadata
    shared = {"request_id": "mine", "segment_index": 0, "num_segments": 2, "seed": 7}
    assert metadata[0] == shared
    final = metadata[-1]
    assert final["finish_reasons"] == ["eos", "length"]
    assert final["text_segments"] == ["one", "two"]
    assert final["model_version"] == "1"
    assert final["warnings"] == []
    assert final["latency"] == "exact"
    assert final["timings"]["queue_ms"] == 3
    assert final["timings"]["audio_s"] == pytest.approx((P * 45 - P) / (P * 100), abs=1e-3)
    assert 0 <= final["timings"]["first_audio_ms"] <= final["timings"]["total_ms"]


def test_progress_tells_how_far_it_has_come() -> None:
    stage = Stage({"one": script(0), "two": script(1, 20, "length")})
    speech = stage.speech("one", "two")
    before = speech.progress()
    assert (before.num_tokens, before.finish_reasons, before.quality) == (0, ("", ""), ())
    try:
        speech.run()
    finally:
        speech.drain()
    after = speech.progress()
    assert (after.num_tokens, after.finish_reasons) == (60, ("eos", "length"))
    assert (after.seed, after.queue_ms, after.mean_batch) == (7, 3, 2.0)
    assert list(after.quality) == stage.caller.metadata[-1]["quality"]


def test_one_response_holds_what_the_stream_would() -> None:
    scripts = {"one": script(0), "two": script(1)}
    streamed = Stage(scripts).speak("one", "two").audio
    whole = Stage(scripts).speak("one", "two", stream=False)
    assert whole.finals == [True]
    assert np.array_equal(whole.audio, streamed)


def test_low_latency_speaks_as_soon_as_the_look_ahead_is_there() -> None:
    """The vocoder here needs no context, so its guesses are right and every sample must be too."""
    stage = Stage({"one": script(0), "two": script(1, 5)})
    caller = stage.speak("one", "two", latency="low")
    for request in stage.tokens.requests:
        assert (request["first_chunk_tokens"], request["chunk_tokens"]) == (6, 4)
    assert np.array_equal(caller.audio, np.concatenate([samples(steps(0)), samples(steps(1, 5))]))
    assert len(caller.pieces[0]) % P == 0
    assert caller.finals == [False] * (len(caller.finals) - 1) + [True]
    assert caller.metadata[-1]["latency"] == "low"


def test_low_latency_has_nothing_to_gain_in_one_response() -> None:
    stage = Stage({"one": script(0)})
    whole = stage.speak("one", latency="low", stream=False)
    assert whole.metadata[-1]["latency"] == "exact"
    assert stage.tokens.requests[0]["first_chunk_tokens"] == 3
    assert np.array_equal(whole.audio, samples(steps(0)))


def test_only_the_allowed_number_of_segments_is_in_the_token_model() -> None:
    stage = Stage({"s": script(0, 30)})
    stage.speak(*["s"] * 8)
    assert 1 <= stage.tokens.most_running <= stage.parallel_segments


def test_a_segment_waits_for_the_first_chunk_of_the_one_before() -> None:
    stage = Stage({"one": script(0), "two": script(1)})
    stage.tokens.released.clear()
    speech = stage.speech("one", "two")
    thread = threading.Thread(target=speech.run)
    thread.start()
    assert stage.tokens.holding.wait(DEADLINE_S)
    assert len(stage.tokens.requests) == 1
    stage.tokens.released.set()
    thread.join(DEADLINE_S)
    assert len(stage.tokens.requests) == 2


def test_a_caller_that_goes_stops_the_live_segment() -> None:
    stage = Stage({"one": script(0), "two": script(1)})
    stage.tokens.released.clear()
    errors: list[SpeechError] = []
    thread = threading.Thread(target=lambda: errors.append(stage.error("one", "two")))
    thread.start()
    assert stage.tokens.holding.wait(DEADLINE_S)
    stage.caller.has_gone = True
    thread.join(DEADLINE_S)
    assert [error.code for error in errors] == ["CANCELLED"]
    assert set(stage.tokens.cancelled) == {"unique/0"}
    assert stage.caller.finals == []
    assert len(stage.tokens.requests) == 1


def test_a_failing_vocoder_ends_the_request_and_its_segments() -> None:
    stage = Stage({"one": script(0), "two": script(1)})
    stage.vocoder.error = SpeechError("INTERNAL", "vocoder: broken")
    assert stage.error("one", "two").message == "vocoder: broken"


@pytest.mark.parametrize(
    ("events", "code", "message"),
    [
        ([SpeechError("UNAVAILABLE", "queue is full")], "UNAVAILABLE", "queue is full"),
        ([chunk(reason="eos")], "INTERNAL", "segment 0: the speech ended at once"),
        ([chunk(steps(0, 3)), chunk(reason="error")], "INTERNAL", "segment 0: the token model"),
        ([chunk(reason="cancelled")], "CANCELLED", "segment 0: cancelled"),
        ([chunk(steps(0, 3))], "INTERNAL", "segment 0: the token model stopped early"),
        ([], "INTERNAL", "segment 0: the token model stopped early"),
    ],
)
def test_what_goes_wrong_in_the_token_model_is_one_typed_error(
    events: list[TokenChunk | Exception], code: str, message: str
) -> None:
    error = Stage({"one": events}).error("one")
    assert error.code == code
    assert error.message.startswith(message)


def test_an_unexpected_error_of_a_reader_reaches_the_request() -> None:
    stage = Stage({"one": [KeyError("bug")]})
    with pytest.raises(KeyError):
        stage.speak("one")


def test_segments_after_the_deadline_are_not_started() -> None:
    stage = Stage({"one": [*script(0)[:-1], chunk(reason="deadline")], "two": script(1)})
    stage.parallel_segments = 1
    stage.tokens.released.clear()
    speech = stage.speech("one", "two", deadline_ms=50)
    thread = threading.Thread(target=speech.run)
    thread.start()
    assert stage.tokens.holding.wait(DEADLINE_S)
    assert 1 <= stage.tokens.requests[0]["deadline_ms"] <= 50
    expired = time.monotonic() + 0.06
    while time.monotonic() < expired:
        threading.Event().wait(0.005)
    stage.tokens.released.set()
    thread.join(DEADLINE_S)
    assert len(stage.tokens.requests) == 1
    assert stage.caller.metadata[-1]["finish_reasons"] == ["deadline", "deadline"]
    assert stage.caller.finals.count(True) == 1
    assert np.array_equal(stage.caller.audio, samples(steps(0)))


def test_a_queue_deadline_is_for_the_first_segment_only() -> None:
    stage = Stage({"one": script(0), "two": script(1)})
    caller = stage.speak("one", "two", queue_deadline_ms=5000)
    first, second = stage.tokens.requests
    assert 1 <= first["queue_deadline_ms"] <= 5000
    assert "queue_deadline_ms" not in second
    assert caller.metadata[-1]["finish_reasons"] == ["eos", "eos"]


def test_a_queue_deadline_is_met_when_the_refine_pass_has_begun() -> None:
    stage = Stage({"[Sbreak]": [chunk(ids=[1, 2], reason="eos")], "w1": script(0)})
    stage.speak("w1w2", refine=True, queue_deadline_ms=5000)
    refine, code = stage.tokens.requests
    assert 1 <= refine["queue_deadline_ms"] <= 5000
    assert "queue_deadline_ms" not in code


@pytest.mark.parametrize("refine", [False, True])
def test_a_request_that_waited_too_long_for_its_first_segment_ends_whole(refine: bool) -> None:
    stage = Stage({"one": [chunk(reason="deadline")], "two": script(1)})
    caller = stage.speak("one", "two", refine=refine, queue_deadline_ms=5000)
    assert len(stage.tokens.requests) == 1
    assert caller.metadata[-1]["finish_reasons"] == ["deadline", "deadline"]
    assert caller.metadata[-1]["warnings"] == []
    assert caller.finals == [True]


def test_a_request_without_any_audio_still_ends_with_a_final_response() -> None:
    for stream in (True, False):
        caller = Stage({"one": [chunk(reason="deadline")]}).speak("one", stream=stream)
        assert caller.finals == [True]
        assert len(caller.audio) == 0
        assert caller.metadata[0]["timings"]["first_audio_ms"] is None


def test_the_token_model_gets_the_whole_request() -> None:
    speaker = np.arange(6, dtype=np.float16)
    codes = np.ones((5, 4), np.int32)
    stage = Stage({"one": script(0)})
    fields = {"temperature": 0.5, "top_k": 9, "min_new_tokens": 2, "priority": 1}
    stage.speak("one", voice=Voice("v", speaker, codes, "before"), style="[speed_1]", **fields)
    request = stage.tokens.requests[0]
    assert request["prompt"] == b"[Stts][spk_emb]before[speed_1]one[Ptts]"
    assert request["mode"] == b"code"
    assert (request["top_k"], request["priority"], request["min_new_tokens"]) == (9, 1, 2)
    assert request["first_chunk_tokens"] == 3
    assert request["chunk_tokens"] == 4
    assert request["seed"] == derive_seed(7, 0)
    assert request["speaker_embedding"] is not None
    assert "deadline_ms" not in request
    assert np.array_equal(request["audio_prompt_codes"], codes)


def test_a_refined_text_that_keeps_the_words_is_spoken() -> None:
    scripts = {"[Sbreak]": [chunk(ids=[1]), chunk(ids=[2], reason="eos")], "w1 w2": script(0)}
    stage = Stage(scripts)
    caller = stage.speak("W1w2", refine=True, style="[speed_1][oral_3]")
    refine, code = stage.tokens.requests
    assert refine["prompt"] == b"[Sbreak]W1w2[Pbreak][oral_3]"
    assert refine["seed"] == derive_seed(7, 1)
    assert code["prompt"] == b"[Stts][empty_spk][speed_1]w1 w2[Ptts]"
    assert caller.metadata[-1]["text_segments"] == ["w1 w2"]
    assert caller.metadata[-1]["warnings"] == []


def test_a_refined_text_that_changes_the_words_is_discarded_with_a_warning() -> None:
    stage = Stage({"[Sbreak]": [chunk(ids=[1, 3], reason="eos")], "w1w2": script(0)})
    caller = stage.speak("w1w2", refine=True)
    assert caller.metadata[-1]["text_segments"] == ["w1w2"]
    assert [entry["code"] for entry in caller.metadata[-1]["warnings"]] == ["refine_discarded"]


def test_seeds_of_segments_differ_and_depend_on_nothing_else() -> None:
    assert derive_seed(0, 0) == 0xE220A8397B1DCDAF  # first output of SplitMix64 with state 0
    derived = {derive_seed(seed, index) for seed in (0, 7, 2**64 - 1) for index in range(100)}
    assert len(derived) == 300
    assert all(0 <= seed < 2**64 for seed in derived)
