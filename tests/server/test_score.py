"""The estimator of `make score` tells the small voice from noise and from silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import score
from chattts_client import ChatTTSClient
from ear import SENTENCES
from launcher import EmbeddedServer
from sounds import noise, silence, write_wave

SECONDS = 4


def test_speech_is_rated_above_silence_and_noise(
    demo_server: EmbeddedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sentences = SENTENCES[:3]
    with ChatTTSClient(demo_server.grpc_url) as client:
        for index, sentence in enumerate(sentences):
            client.synthesize(sentence, voice="en", seed=1).save(tmp_path / f"voice{index}.wav")
    write_wave(tmp_path / "noise.wav", noise(SECONDS, 0.1))
    write_wave(tmp_path / "silence.wav", silence(SECONDS))
    assert score.main([str(tmp_path)]) == 0
    rated = {one["file"]: one for one in json.loads(capsys.readouterr().out)["files"]}
    noise_scores, silence_scores = rated.pop("noise.wav"), rated.pop("silence.wav")
    assert len(rated) == len(sentences)
    for voice in rated.values():
        assert voice["overall"] > silence_scores["overall"] > noise_scores["overall"]
        assert voice["background"] > noise_scores["background"]
