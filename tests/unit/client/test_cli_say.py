"""`chattts say`: results to standard output, the rest to standard error."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chattts_client.cli import main
from unit.client.cli_calls import frames
from unit.client.fake_answers import (
    outputs,
    utterance,
)
from unit.client.fake_triton import FakeTriton

NOTHING = np.zeros(0, dtype=np.float32)


def feed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Put something on standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("flags", [[], ["--stream"]])
def test_say_writes_a_wav_and_one_line(
    flags: list[str], grpc_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.wav"
    assert main(["say", "hello", "-o", str(path), "--url", grpc_url, *flags]) == 0
    assert frames(path) == 768
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{path}: 0.03 s, voice en, seed 7, ended by eos, real-time")
    assert captured.err.startswith("first audio after") == bool(flags)


def test_the_address_may_be_in_the_environment(
    grpc_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHATTTS_URL", grpc_url)
    assert main(["say", "hello", "-o", str(tmp_path / "out.wav")]) == 0


def test_say_passes_every_option_on(grpc_url: str, fake: FakeTriton, tmp_path: Path) -> None:
    flags = "--voice en --language en --style [speed_3] --refine --seed 3 --priority 1 "
    flags += "--deadline-ms 900 --queue-deadline-ms 300 --latency low --temperature 0.5 "
    flags += "--top-p 0.9 --top-k 5 --repetition-penalty 1.5 --min-new-tokens 1 --max-new-tokens 9"
    flags += " --model-version 2 --speed 1.5 --header x-tenant:a"
    path = str(tmp_path / "out.wav")
    options = ["--options", '{"split": false}']
    assert main(["say", "hello", "-o", path, "--url", grpc_url, *flags.split(), *options]) == 0
    (inputs,) = fake.inputs
    assert inputs == {
        "text": "hello",
        "stream": False,
        "voice": "en",
        "language": "en",
        "style": "[speed_3]",
        "refine": True,
        "seed": 3,
        "priority": 1,
        "deadline_ms": 900,
        "queue_deadline_ms": 300,
        "latency": "low",
        "temperature": 0.5,
        "top_p": pytest.approx(0.9),
        "top_k": 5,
        "repetition_penalty": 1.5,
        "min_new_tokens": 1,
        "max_new_tokens": 9,
        "options": '{"split": false, "speed": 1.5}',
    }
    (request,) = fake.requests
    assert (request.version, request.headers["x-tenant"]) == ("2", "a")


def test_a_text_comes_from_standard_input_or_a_file(
    grpc_url: str, fake: FakeTriton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = ["-o", str(tmp_path / "out.wav"), "--url", grpc_url]
    feed(monkeypatch, "你好\n".encode())
    assert main(["say", "-", *common]) == 0
    path = tmp_path / "text.txt"
    path.write_text("\ufeff再见", encoding="utf-8")
    assert main(["say", "--file", str(path), *common]) == 0
    assert [inputs["text"] for inputs in fake.inputs] == ["你好\n", "再见"]


@pytest.mark.parametrize("flags", [[], ["--stream"]])
def test_a_dash_as_output_is_raw_samples(
    flags: list[str], grpc_url: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["say", "hello", "-o", "-", "--url", grpc_url, *flags]) == 0
    captured = capsysbinary.readouterr()
    samples = np.frombuffer(captured.out, dtype="<i2")
    assert (len(samples), samples[0], samples[-1]) == (768, -32767, 32767)
    assert b"-: 0.03 s, voice en" in captured.err


@pytest.fixture
def loudspeaker(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What reaches a sound library that writes down what it is told."""
    played: list[Any] = []

    class OutputStream:
        def __init__(self, samplerate: int, channels: int, dtype: str) -> None:
            played.append((samplerate, channels, dtype))

        def start(self) -> None: ...

        def write(self, samples: np.ndarray[Any, Any]) -> None:
            played.append(samples.shape)

        def stop(self) -> None:
            played.append("stop")

        def close(self) -> None:
            played.append("close")

    library = SimpleNamespace(OutputStream=OutputStream, PortAudioError=OSError)
    monkeypatch.setitem(sys.modules, "sounddevice", library)
    return played


def test_a_stream_is_played_as_it_comes(
    grpc_url: str, loudspeaker: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["say", "hello", "--play", "--stream", "--url", grpc_url]) == 0
    assert loudspeaker == [(24_000, 1, "float32"), *[(256, 1)] * 3, "stop", "close"]
    assert capsys.readouterr().out.startswith("played: 0.03 s")


@pytest.mark.parametrize(
    ("flags", "extra"),
    [(["--play"], "play"), (["--play", "-o", "a.wav"], "play"), (["-o", "a.mp3"], "audio")],
)
def test_a_missing_extra_is_named_before_anything_is_sent(
    flags: list[str],
    extra: str,
    grpc_url: str,
    fake: FakeTriton,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    monkeypatch.setattr("chattts_client.cli.sinks.find_spec", lambda name: None)
    assert main(["say", "hello", "--url", grpc_url, *flags]) == 2
    assert f"pip install '.[{extra}]' in a checkout" in capsys.readouterr().err
    assert not fake.requests


def test_json_is_one_line_with_everything(
    grpc_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "out.wav")
    assert main(["say", "hello", "-o", path, "--url", grpc_url, "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    report = json.loads(line)
    assert (report["path"], report["seed"], report["finish_reasons"]) == (path, 7, ["eos"])
    assert report["timings"]["total_ms"] == 40
    assert report["duration_s"] == 768 / 24_000
    assert {"time_to_first_audio_s", "real_time_factor", "request_id"} <= set(report)


def test_warnings_and_untrained_weights_are_said(
    grpc_url: str, fake: FakeTriton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warning = {"code": "unknown_words", "message": "'xyzzy' is unknown"}
    response = outputs(NOTHING, is_final=True, untrained=True, warnings=[warning])
    fake.script = lambda inputs, request: iter([response])
    command = ["say", "hello", "-o", str(tmp_path / "out.wav"), "--url", grpc_url, "--json"]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert "warning: 'xyzzy' is unknown (unknown_words)" in captured.err
    assert "UNTRAINED" in captured.err
    assert json.loads(captured.out)["real_time_factor"] is None


def test_silence_reads_well(
    grpc_url: str, fake: FakeTriton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.script = lambda *_: iter([outputs(NOTHING, is_final=True, finish_reasons=[])])
    command = ["say", "…", "--stream", "-o", str(tmp_path / "out.wav"), "--url", grpc_url]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert captured.out.endswith("out.wav: no audio, voice en, seed 7\n")
    assert captured.err == ""


@pytest.mark.parametrize("flags", [[], ["--stream"]])
def test_a_deadline_before_the_first_audio_leaves_the_old_file(
    flags: list[str],
    grpc_url: str,
    fake: FakeTriton,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake.script = lambda *_: iter([outputs(NOTHING, is_final=True, finish_reasons=["deadline"])])
    path = tmp_path / "out.wav"
    path.write_bytes(b"good")
    assert main(["say", "hello", "-o", str(path), "--url", grpc_url, *flags]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: the deadline came before the first audio (DEADLINE_EXCEEDED")
    assert line.endswith("Allow more time with --deadline-ms or --queue-deadline-ms.")
    assert path.read_bytes() == b"good"


def test_say_works_over_http(http_url: str, fake: FakeTriton, tmp_path: Path) -> None:
    fake.script = lambda inputs, request: iter(utterance(1))
    path = tmp_path / "out.wav"
    assert main(["say", "hello", "-o", str(path), "--url", http_url, "--http"]) == 0
    assert frames(path) == 256
