"""A recognizer understands what the server says: the ear that every later change is held against.

Over all held-out sentences and three seeds the small voice reaches what README.md says.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from chattts_client import Audio, ChatTTSClient
from ear import SENTENCES, demo_ear
from launcher import EmbeddedServer
from train_voice.recognizer import WordScore

MIN_WORD_ACCURACY = 0.85
MAX_LOSS_BY_INT8 = 0.03
MIN_WORDS = 150
CONCURRENCY = 4


def listen(repository: Path) -> WordScore:
    """Stream all sentences from a server of this repository and recognize them."""
    server = EmbeddedServer(repository)
    server.start()
    try:
        with ChatTTSClient(server.grpc_url) as client:

            def speak(sentence: str) -> Audio:
                with client.stream(sentence, voice="en", seed=1) as stream:
                    audio = stream.result()
                assert audio.finish_reasons == ("eos",)
                assert audio.warnings == ()
                return audio

            with ThreadPoolExecutor(CONCURRENCY) as pool:
                spoken = list(pool.map(speak, SENTENCES))
    finally:
        server.kill()
    ear = demo_ear()
    heard = [ear.hear(audio.samples, audio.sample_rate) for audio in spoken]
    return ear.score(zip(SENTENCES, heard, strict=True))


@pytest.fixture(scope="module")
def fp32(demo_repository_fp32: Path) -> WordScore:
    return listen(demo_repository_fp32)


@pytest.fixture(scope="module")
def int8(demo_repository_int8: Path) -> WordScore:
    return listen(demo_repository_int8)


def test_float32_speech_is_understood(fp32: WordScore) -> None:
    assert fp32.num_words >= MIN_WORDS
    assert fp32.accuracy >= MIN_WORD_ACCURACY, fp32


def test_int8_speech_is_understood_as_well_as_float32(fp32: WordScore, int8: WordScore) -> None:
    assert int8.accuracy >= MIN_WORD_ACCURACY, int8
    assert int8.accuracy >= fp32.accuracy - MAX_LOSS_BY_INT8, (fp32, int8)
