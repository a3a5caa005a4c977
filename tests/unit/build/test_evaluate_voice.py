"""The figures of a voice: good for one that speaks like its teacher, bad for noise."""

from __future__ import annotations

import base64
import io
import json
import threading
import wave
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import evaluate_voice
from train_voice.corpus import CorpusSizes, draw
from train_voice.evaluation import evaluate, read_held_out, signal_figures
from train_voice.package import write_text_files
from train_voice.recognizer import edit_distance, score
from train_voice.settings import QUICK
from train_voice.speakers import VOICES
from train_voice.speaking import Said, ServerSpeaker
from train_voice.synthesis import teacher_speech
from voice_teachers import needs_teachers

TEACHERS = {voice.name: voice.teacher for voice in VOICES}


class TeacherSpeaker:
    """Says everything as the teacher does."""

    def say(self, texts: Sequence[str], voice: str) -> list[Said]:
        return [Said(teacher_speech(TEACHERS[voice], text), True) for text in texts]


class NoiseSpeaker:
    """Says nothing."""

    def say(self, texts: Sequence[str], voice: str) -> list[Said]:
        rng = np.random.default_rng(1)
        return [Said(0.01 * rng.standard_normal(30_000, np.float32), False) for _ in texts]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint's text files; no weights are needed to ask another speaker."""
    root = tmp_path_factory.mktemp("checkpoint")
    sizes = CorpusSizes({"slt": 5, "rms": 5, "cmn": 5}, {"slt": 0, "rms": 0, "cmn": 0}, 12, 4)
    write_text_files(root, draw(sizes, 5), QUICK)
    return root


@needs_teachers
def test_the_teacher_gets_good_marks(checkpoint: Path) -> None:
    result = evaluate(TeacherSpeaker(), checkpoint, 16)
    english, mandarin = result["en"], result["zh"]
    assert english["word_accuracy"] >= 0.9
    assert english["words"] > 60
    assert english["ended"] == mandarin["ended"] == 1
    assert mandarin["nearest_teacher"] == 1
    assert english["duration_ratio"]["mean"] == pytest.approx(1, abs=0.02)
    assert set(english["word_accuracy_by_split"]) == {"held_out", "held_out_template"}
    assert result["voices"] == {"en": 1, "en_male": 1}
    assert english["signal"]["clipped"] == english["signal"]["not_finite"] == 0


@needs_teachers
def test_noise_gets_bad_marks(checkpoint: Path) -> None:
    result = evaluate(NoiseSpeaker(), checkpoint, 6)
    assert result["en"]["word_accuracy"] < 0.3
    assert result["en"]["ended"] == 0
    assert result["zh"]["nearest_teacher"] < 0.7
    assert len(result["en"]["errors"]) >= 5


def test_held_out_sentences_keep_their_shares(checkpoint: Path) -> None:
    chosen = read_held_out(checkpoint, 8)
    for language in ("en", "zh"):
        splits = [item.split for item in chosen if item.language == language]
        assert splits.count("held_out") == 6
        assert splits.count("held_out_template") == 2
    assert len(read_held_out(checkpoint, 1000)) == 32


def test_faults_of_samples_are_counted() -> None:
    bad = np.array([0.5, -1.0, 1.0, 0.5], np.float32)
    figures = signal_figures([bad])
    assert figures["clipped"] == 2
    assert figures["offset"] == pytest.approx(0.25)
    assert signal_figures([np.array([np.nan], np.float32)])["not_finite"] == 1
    assert signal_figures([np.zeros(0, np.float32)])["level_dbfs"] == -90


def test_word_errors_are_counted() -> None:
    assert edit_distance(["a", "b", "c"], ["a", "x", "c", "d"]) == 2
    assert score([("it's ten", "it's ten"), ("go left", "go")]).accuracy == pytest.approx(0.75)


class Server(BaseHTTPRequestHandler):
    """Answers as a server that speaks a tone."""

    requests: list[dict[str, Any]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append({"path": self.path, **body})
        file = io.BytesIO()
        with wave.open(file, "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(24_000)
            sound.writeframes(np.full(1000, 16384, "<i2").tobytes())
        reason = "length" if "cut" in body["text"] else "eos"
        answer = {
            "audio_bytes": base64.b64encode(file.getvalue()).decode(),
            "metadata": json.dumps({"finish_reasons": [reason]}),
        }
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_is_asked_text_by_text(url: str) -> None:
    Server.requests.clear()
    said = ServerSpeaker(url, seed=4).say(["hello", "cut short"], "en")
    assert [each.has_ended for each in said] == [True, False]
    assert said[0].samples.shape == (1000,)
    assert said[0].samples[0] == pytest.approx(0.5)
    assert {request["text"] for request in Server.requests} == {"hello", "cut short"}
    assert all(
        (r["voice"], r["seed"], r["path"]) == ("en", 4, "/v2/models/chattts_unary/generate")
        for r in Server.requests
    )


@pytest.mark.parametrize("arguments", [[], ["--server", "http://127.0.0.1:9"]])
def test_a_missing_checkpoint_is_one_line(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate_voice.main([str(tmp_path / "nothing"), *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("evaluate_voice: ")
    assert len(error.splitlines()) == 1
