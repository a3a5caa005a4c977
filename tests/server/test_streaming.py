"""Streams on a real server: exact ones bit by bit and merged in the vocoder, low ones sooner.

What latency=low does to samples is measured by loadtest/low_latency.py; here it is held.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from chattts_bench.lookahead import SpokenSegment, compare, decibels
from chattts_bench.vocoding import LocalVocoder, hidden_states
from chattts_pipeline import LowLatency, Settings
from ear import SENTENCES, demo_ear
from google.protobuf import text_format
from launcher import EmbeddedServer
from speech_calls import Response, audio, open_stream, stream
from tritonclient.grpc import model_config_pb2

P = 512
FADE = P // 2
SAMPLE_RATE = 24_000
LENGTHS = [1, 2, 13, 14, 36, 37, 38, 51, 52, 53, 75, 76, 77, 100, 500, 2000]
ERROR_BOUND_DB = -40.0
"""Of a look-ahead of 16 steps, the default; -53 dB was measured over ten sentences."""

Array = np.ndarray[Any, Any]


def of_steps(num_steps: int, **values: Any) -> dict[str, Any]:
    """A request of one segment that lasts `num_steps` steps."""
    steps = {"min_new_tokens": num_steps, "max_new_tokens": num_steps}
    return {"text": "hello world", "seed": num_steps, **steps, **values}


def num_samples(num_steps: int) -> int:
    return P * num_steps - P // 2


def merged(server: EmbeddedServer) -> tuple[int, int]:
    """Chunks that the vocoder was asked for, and calls of its graph."""
    with tritonclient.grpc.InferenceServerClient(server.grpc_url) as client:
        (model,) = client.get_inference_statistics("chattts_vocoder", as_json=True)["model_stats"]
    return int(model.get("inference_count", 0)), int(model.get("execution_count", 0))


@pytest.fixture(scope="module")
def settings(tiny_repository: Path) -> Settings:
    text = (tiny_repository / "chattts" / "config.pbtxt").read_text(encoding="utf-8")
    config = text_format.Parse(text, model_config_pb2.ModelConfig())
    return Settings.from_parameters(
        {key: value.string_value for key, value in config.parameters.items()}
    )


@pytest.mark.parametrize("num_steps", LENGTHS)
def test_any_length_streams_to_its_one_shot_bits(
    tiny_server: EmbeddedServer, num_steps: int
) -> None:
    streamed = audio(stream(tiny_server, **of_steps(num_steps)))
    whole = audio(stream(tiny_server, stream=False, **of_steps(num_steps)))
    assert streamed.shape == (num_samples(num_steps),)
    assert streamed.tobytes() == whole.tobytes()


def test_eight_streams_share_calls_of_the_vocoder_and_keep_their_bits(
    demo_server: EmbeddedServer,
) -> None:
    draw = random.Random(1)
    lengths = [draw.randrange(300, 420) for _ in range(8)]
    asked, calls = merged(demo_server)
    with ThreadPoolExecutor(8) as pool:
        streams = list(pool.map(lambda n: stream(demo_server, **of_steps(n)), lengths))
    asked_after, calls_after = merged(demo_server)
    assert (asked_after - asked) / (calls_after - calls) > 1.2  # 1.4 to 2 where others compute too
    for num_steps, responses in zip(lengths, streams, strict=True):
        whole = audio(stream(demo_server, stream=False, **of_steps(num_steps)))
        assert audio(responses).shape == (num_samples(num_steps),)
        assert audio(responses).tobytes() == whole.tobytes()


def low(server: EmbeddedServer, num_steps: int) -> list[Response]:
    return stream(server, latency="low", **of_steps(num_steps))


@pytest.mark.parametrize("num_steps", [1, 12, 13, 20, 21, 100, 500])
def test_low_latency_sends_the_same_number_of_samples_and_the_same_end(
    tiny_server: EmbeddedServer, settings: Settings, num_steps: int
) -> None:
    responses = low(tiny_server, num_steps)
    spoken = audio(responses)
    exact = audio(stream(tiny_server, **of_steps(num_steps)))
    assert spoken.shape == exact.shape == (num_samples(num_steps),)
    end = slice(-P * (settings.low_latency_lookahead_steps - 1), None)
    assert spoken[end].tobytes() == exact[end].tobytes()
    assert [response.is_final for response in responses] == [False] * (len(responses) - 1) + [True]
    assert all(len(response.samples) for response in responses)
    assert responses[-1].metadata["latency"] == "low"
    assert responses[-1].metadata["finish_reasons"] == ["length"]


def test_low_latency_speaks_once_look_ahead_and_first_piece_are_known(
    tiny_server: EmbeddedServer, settings: Settings
) -> None:
    """One step fewer, and nothing comes before the end; so many, and the first piece does."""
    lookahead, first = settings.low_latency_lookahead_steps, settings.low_latency_first_steps
    assert len(low(tiny_server, lookahead + first - 1)) <= 2
    pieces = [len(response.samples) for response in low(tiny_server, 200)]
    # Chunks of the token model that come at once, as a tiny one's may, make one piece.
    assert P * first <= pieces[0] < num_samples(200)
    assert sum(pieces) == num_samples(200)


def test_low_latency_in_one_response_is_exact(tiny_server: EmbeddedServer) -> None:
    (whole,) = stream(tiny_server, stream=False, latency="low", **of_steps(150))
    assert whole.metadata["latency"] == "exact"
    assert whole.samples.tobytes() == audio(stream(tiny_server, **of_steps(150))).tobytes()


def test_low_latency_streams_beside_others_are_complete_and_leave_them_exact(
    tiny_server: EmbeddedServer,
) -> None:
    def speak(number: int) -> Array:
        latency = "exact" if number % 2 else "low"
        return audio(stream(tiny_server, latency=latency, **of_steps(200 + number)))

    with ThreadPoolExecutor(8) as pool:
        spoken = list(pool.map(speak, range(8)))
    for number, samples in enumerate(spoken):
        assert samples.shape == (num_samples(200 + number),)
        if number % 2:
            alone = audio(stream(tiny_server, **of_steps(200 + number)))
            assert samples.tobytes() == alone.tobytes()


def test_a_deadline_ends_a_low_latency_stream_with_what_there_is(
    tiny_server: EmbeddedServer,
) -> None:
    responses = stream(tiny_server, latency="low", deadline_ms=300, **of_steps(2048))
    assert responses[-1].metadata["finish_reasons"] == ["deadline"]
    assert len(audio(responses)) % P == P // 2
    assert [response.is_final for response in responses].count(True) == 1


def test_cancelled_low_latency_streams_free_their_places(tiny_server: EmbeddedServer) -> None:
    for _ in range(8):
        with open_stream(tiny_server, latency="low", **of_steps(2048)) as responses:
            assert not next(responses).is_final
    assert low(tiny_server, 50)[-1].is_final


@pytest.fixture(scope="module")
def small_vocoder(demo_repository_int8: Path) -> LocalVocoder:
    return LocalVocoder.of_repository(demo_repository_int8)


@pytest.mark.parametrize("text", SENTENCES[:4])
def test_low_latency_speech_is_near_exact_speech_and_sounds_the_same(
    demo_server: EmbeddedServer,
    demo_repository_int8: Path,
    small_vocoder: LocalVocoder,
    settings: Settings,
    text: str,
) -> None:
    hidden = hidden_states(demo_server.grpc_url, demo_repository_int8, text, "en", seed=1)
    exact = small_vocoder.exact(hidden)
    low_latency = LowLatency(settings.low_latency_lookahead_steps, settings.low_latency_first_steps)
    spoken = small_vocoder.low(hidden, low_latency)
    assert len(spoken.pieces) > 5
    difference = compare(spoken, exact, SAMPLE_RATE, FADE)
    assert decibels(difference.error) <= ERROR_BOUND_DB
    assert difference.seam_slope <= 3
    ear = demo_ear()
    heard = [ear.hear(samples, SAMPLE_RATE) for samples in (spoken.samples, exact)]
    assert heard[0] == heard[1]
    worse = small_vocoder.low(hidden, LowLatency(4, low_latency.first_steps))
    assert compare(worse, exact, SAMPLE_RATE, FADE).error > 100 * difference.error


def test_low_latency_speech_through_the_server_is_near_exact_speech(
    demo_server: EmbeddedServer,
) -> None:
    request = {"text": SENTENCES[0], "voice": "en", "seed": 1}
    exact = audio(stream(demo_server, **request))
    responses = stream(demo_server, latency="low", **request)
    spoken = SpokenSegment(tuple(response.samples for response in responses), (), 0)
    difference = compare(spoken, exact, SAMPLE_RATE, FADE)
    assert decibels(difference.error) <= ERROR_BOUND_DB
    assert difference.seam_slope <= 3
