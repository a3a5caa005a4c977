"""The figures of a voice: good for one that speaks like its teacher, bad for noise."""

from __future__ import annotations

import base64
import io
import json
import re
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
from train_voice.corpus import TEACHERS, CorpusSizes, bare, domain_text, draw, vocabulary, words_of
from train_voice.evaluation import Samples, evaluate, signal_figures
from train_voice.held_out import HeldOut, first_set, made_of, second_ear, second_set, thinned
from train_voice.package import write_text_files
from train_voice.recognizer import EVALUATION_FOLDER, Ear, edit_distance, score
from train_voice.settings import QUICK
from train_voice.speaking import Said, ServerSpeaker, SpeakerError, TeacherSpeaker
from voice_teachers import needs_teachers


class NoiseSpeaker:
    """Says nothing."""

    voices = ("en", "zh")

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
    ear = Ear(checkpoint / EVALUATION_FOLDER)
    result = evaluate(TeacherSpeaker(), ear, first_set(checkpoint))
    english, mandarin = result["en"], result["zh"]
    assert english["word_accuracy"] >= 0.9
    # the teacher's noise goes on from one utterance to the next
    assert english["word_accuracy"] == pytest.approx(english["teacher_accuracy"], abs=0.05)
    assert english["word_accuracy_by_split"].keys() == english["teacher_accuracy_by_split"].keys()
    assert english["words"] > 60
    assert english["ended"] == mandarin["ended"] == 1
    assert mandarin["nearest_teacher"] == 1
    assert english["duration_ratio"]["mean"] == pytest.approx(1, abs=0.02)
    assert set(english["word_accuracy_by_split"]) == {"held_out", "held_out_template"}
    assert result["voices"] == {"en": 1, "en_male": 1}
    assert english["signal"]["clipped"] == english["signal"]["not_finite"] == 0


@needs_teachers
def test_a_codec_is_judged_by_as_many_recordings_as_asked_for(checkpoint: Path) -> None:
    ear = Ear(checkpoint / EVALUATION_FOLDER)
    given: list[Samples] = []

    def codec(samples: Samples) -> Samples:
        given.append(samples)
        return samples

    items = thinned(first_set(checkpoint), 3)
    english = evaluate(NoiseSpeaker(), ear, items, codec, recordings=2)["en"]
    assert english["recordings"] == 2
    assert english["resynthesis_accuracy"] == english["teacher_accuracy"] > 0.8
    assert len(given) == 6
    assert not np.array_equal(given[0], given[3])


@needs_teachers
def test_noise_gets_bad_marks(checkpoint: Path) -> None:
    ear = Ear(checkpoint / EVALUATION_FOLDER)
    result = evaluate(NoiseSpeaker(), ear, thinned(first_set(checkpoint), 6))
    assert "voices" not in result
    assert result["en"]["word_accuracy"] < 0.3
    assert result["en"]["ended"] == 0
    assert result["zh"]["nearest_teacher"] < 0.7
    assert len(result["en"]["errors"]) >= 5


def test_held_out_sentences_keep_their_shares(checkpoint: Path) -> None:
    chosen = thinned(first_set(checkpoint), 8)
    for language in ("en", "zh"):
        splits = [item.split for item in chosen if item.language == language]
        assert splits.count("held_out") == 6
        assert splits.count("held_out_template") == 2
    assert len(thinned(first_set(checkpoint), 1000)) == 32


def test_no_corpus_has_a_sentence_of_the_second_set() -> None:
    second = second_set()
    assert second == second_set()
    texts = {bare(item.text) for item in second}
    assert len(texts) == len(second) == 200
    for language in TEACHERS:
        assert not texts & set(domain_text(language, 5000, (), 1))
    assert sum(len(words_of(item.text)) for item in second if item.language == "en") >= 600
    for language in TEACHERS:
        words = {word for i in second if i.language == language for word in words_of(i.text)}
        assert words <= set(vocabulary(language))


@needs_teachers
def test_the_second_ear_knows_the_templates_and_not_the_sentences(checkpoint: Path) -> None:
    folder = checkpoint / EVALUATION_FOLDER
    english = [item for item in second_set() if item.language == "en"]
    items = [item for item in english if " speak " in item.text][:3]
    with second_ear(folder) as ear:
        result = evaluate(TeacherSpeaker(), ear, items)
    assert result["en"]["word_accuracy"] >= 0.9


def test_sentences_can_be_kept_to_some_words() -> None:
    items = [
        HeldOut("en", "x", "it's cold, anna"),
        HeldOut("zh", "x", "你好"),
        HeldOut("en", "x", "no"),
    ]
    assert made_of(items, ["it's", "cold", "anna", "你"]) == items[:1]
    assert made_of(items, ["no", "你", "好"]) == items[1:]


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
        if body["voice"] == "nobody":
            self.answer(400, {"error": "no voice nobody"})
            return
        if body["voice"] == "other":
            self.answer(200, {"models": []})
            return
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
        self.answer(200, answer)

    def answer(self, status: int, content: dict[str, Any]) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

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
    said = ServerSpeaker(url, ["en"], seed=4).say(["hello", "cut short"], "en")
    assert [each.has_ended for each in said] == [True, False]
    assert said[0].samples.shape == (1000,)
    assert said[0].samples[0] == pytest.approx(0.5)
    assert {request["text"] for request in Server.requests} == {"hello", "cut short"}
    assert all(
        (r["voice"], r["seed"], r["path"]) == ("en", 4, "/v2/models/chattts_unary/generate")
        for r in Server.requests
    )


@pytest.mark.parametrize(
    ("voice", "message"),
    [("nobody", "400: Bad Request .*no voice nobody"), ("other", "something else than speech")],
)
def test_a_server_that_does_not_speak_says_why(url: str, voice: str, message: str) -> None:
    with pytest.raises(SpeakerError, match=message):
        ServerSpeaker(url, [voice]).say(["hello"], voice)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{tmp}/nothing"], "domain.arpa is missing"),
        (["{tmp}/nothing", "--server", "http://127.0.0.1:9"], "domain.arpa is missing"),
        (["{checkpoint}"], "no checkpoint there"),
        (["{checkpoint}", "--server", "http://127.0.0.1:9"], "127.0.0.1:9: .*refused"),
        (["{checkpoint}", "--server", "localhost:8000"], "'localhost:8000' is no URL"),
        (["{checkpoint}", "--words", "{tmp}"], "domain_words.txt is missing"),
        (["{checkpoint}", "--ear", "{tmp}/nothing", "--set", "second"], "domain.arpa is missing"),
    ],
)
def test_what_cannot_be_evaluated_is_one_line(
    checkpoint: Path,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts = [argument.format(tmp=tmp_path, checkpoint=checkpoint) for argument in arguments]
    assert evaluate_voice.main(texts) == 1
    error = capsys.readouterr().err
    assert re.match(f"evaluate_voice: .*{message}", error)
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--sentences", "0"],
        ["--set", "third"],
        ["--server", "http://x", "--teacher"],
        ["--seed", "a"],
    ],
)
def test_a_wrong_option_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        evaluate_voice.main(["checkpoint", *arguments])
    assert stop.value.code == 2
    assert f"error: argument {arguments[0] if '--teacher' not in arguments else '--teacher'}" in (
        capsys.readouterr().err
    )


@needs_teachers
def test_the_teachers_are_asked_the_second_set(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--teacher", "--set", "second", "--sentences", "3", "--words", str(checkpoint)]
    assert evaluate_voice.main([str(checkpoint), *arguments]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["en"]["sentences"] == result["zh"]["sentences"] == 3
    assert set(result["en"]["word_accuracy_by_split"]) == {"second"}
