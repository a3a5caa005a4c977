"""The command line: results to standard output, the rest to standard error, a status per cause."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import wave
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import chattts_client
import numpy as np
import pytest
from chattts_client import ChatTTSClient, ModelInfo
from chattts_client._exceptions import ChatTTSError
from chattts_client.cli import main
from chattts_client.cli.output import EXIT_CODES
from unit.client.fake_triton import (
    Failure,
    FakeTriton,
    Inputs,
    Outputs,
    Request,
    dry_run_answer,
    fail,
    outputs,
    serve_grpc,
    utterance,
    voices_answer,
)

# A background job of a shell ignores interrupts, and so would its children.
INTERRUPTIBLE = """
import signal, sys
from chattts_client.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))
"""
NOTHING = np.zeros(0, dtype=np.float32)


def frames(path: Path) -> int:
    with wave.open(str(path)) as file:
        return file.getnframes()


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
    assert "first audio after" in captured.err


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


def test_say_works_over_http(http_url: str, fake: FakeTriton, tmp_path: Path) -> None:
    fake.script = lambda inputs, request: iter(utterance(1))
    path = tmp_path / "out.wav"
    assert main(["say", "hello", "-o", str(path), "--url", http_url, "--http"]) == 0
    assert frames(path) == 256


def test_voices_are_printed(
    grpc_url: str, fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.script = lambda inputs, request: iter([voices_answer()])
    assert main(["voices", "--url", grpc_url]) == 0
    assert capsys.readouterr().out == "en\ten\tfemale\tspeaker\tnot auditioned\tEnglish, calm\n"
    assert main(["voices", "--url", grpc_url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "en"


def test_health_says_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["health", "--url", "127.0.0.1:1", "--retries", "0"]
    assert main(command) == 3
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("127.0.0.1:1: not ready: ")
    assert main([*command, "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["live"], found["ready"]) == (False, False)
    assert line.endswith(found["reason"])


@pytest.mark.parametrize("untrained", [True, False])
def test_models_are_a_line_each(
    untrained: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models = (
        ModelInfo(
            name="chattts",
            version="2",
            ready=True,
            checkpoint="demo",
            precision="int8",
            untrained=untrained,
        ),
        ModelInfo(name="chattts_gpt", version="1", ready=False),
    )
    monkeypatch.setattr(ChatTTSClient, "models", lambda client: models)
    assert main(["models"]) == 0
    weights = "demo (UNTRAINED)" if untrained else "demo"
    expected = f"chattts\t2\tready\t{weights}\tint8\nchattts_gpt\t1\tnot ready\t\t\n"
    assert capsys.readouterr().out == expected


SAID = "at three\t(0.4 s, then 500 ms of silence)\n"
DROPPED = "warning: characters 4 to 5, '☃': a symbol that has no reading was left out"


def test_a_normalized_text_is_printed(
    grpc_url: str, fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.script = lambda inputs, request: iter([dry_run_answer()])
    assert main(["normalize", "at 3☃", "--url", grpc_url]) == 0
    captured = capsys.readouterr()
    assert captured.out == SAID
    assert captured.err == f"{DROPPED} (dropped_symbol)\n"


def test_a_text_is_normalized_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["normalize", "at 3☃", "--url", "localhost:1", "--offline"]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [segment["text"].strip() for segment in found["segments"]] == ["at three"]
    assert "".join(span["text"] for span in found["alignment"]) == "at 3☃"
    assert main([*command, "--options", '{"speed": 2}']) == 2
    assert "options: speed is none of the text front end" in capsys.readouterr().err


def test_every_error_has_a_status_of_its_own() -> None:
    kinds = [getattr(chattts_client, name) for name in chattts_client.__all__]
    classes = [kind for kind in kinds if isinstance(kind, type)]
    errors = {kind for kind in classes if issubclass(kind, ChatTTSError)} - {ChatTTSError}
    assert set(EXIT_CODES) == errors
    assert len(set(EXIT_CODES.values())) == len(errors)


def test_an_error_is_one_line_with_code_and_request(
    grpc_url: str, fake: FakeTriton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.script = fail(Failure("INVALID_ARG", "voice: 'bob' is\nunknown"))
    path = tmp_path / "out.wav"
    assert main(["say", "hello", "-o", str(path), "--url", grpc_url, "--voice", "bob"]) == 2
    request_id = fake.requests[0].request_id
    (line,) = capsys.readouterr().err.splitlines()
    expected = f"error: voice: 'bob' is unknown (INVALID_ARGUMENT, request {request_id}). "
    assert line.startswith(expected)
    assert len(line) > len(expected)  # what to do
    assert not path.exists()


def test_no_server_has_its_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["say", "hello", "-o", str(tmp_path / "out.wav"), "--url", "127.0.0.1:1"]
    assert main([*command, "--retries", "0"]) == EXIT_CODES[chattts_client.ServerUnavailableError]
    (line,) = capsys.readouterr().err.splitlines()
    assert "(UNAVAILABLE, request " in line
    assert "Check --url" in line


def test_a_file_that_cannot_be_written_is_found_before_anything_is_sent(
    grpc_url: str, fake: FakeTriton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["say", "hello", "-o", str(tmp_path / "no" / "a.wav"), "--url", grpc_url]) == 1
    assert "error: no folder" in capsys.readouterr().err
    assert not fake.requests


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["say", "hello", "-o", "out.aiff"], "'out.aiff' does not end in .wav, .flac"),
        (["say", "hello", "-o", "out.mp3", "--stream"], "--stream: writes .wav or -, not .mp3"),
        (["say", "hello", "-o", "out.wav", "--http", "--stream"], "leave --http out"),
        (["say", "hello"], "say where to: -o FILE, -o - or --play"),
        (["say", "-o", "out.wav"], "give a text, - for standard input, or --file"),
        (["say", "a", "--file", "b", "-o", "out.wav"], "give a text or --file, not both"),
        (["say", "a", "-o", "out.wav", "--options", "{trim}"], "--options: '{trim}' is not JSON"),
        (["say", "a", "-o", "out.wav", "--options", "[1]"], "--options: '[1]' is no JSON object"),
        (["say", "a", "-o", "out.wav", "--seed", "x"], "'--seed'"),
        (["say", "a", "-o", "out.wav", "--header", "x"], "--header: 'x' is not NAME:VALUE"),
        (["health", "--header", "a:1", "--header", "a: 2"], "--header: 'a' is there twice"),
        (["say", "a", "-o", "out.wav", "--url", "nowhere"], "url: 'nowhere' has no port"),
        (["health", "--timeout", "-1"], "--timeout: -1 is no number of seconds from 0"),
        (["health", "--timeout", "nan"], "--timeout: nan is no number of seconds from 0"),
        (["health", "--retries", "-1"], "--retries: -1 is below 0"),
        (["bench", "-n", "0"], "'-n': must be greater than or equal to 1"),
        (["say", "a", "-o", "out.wav", "--latency", "x"], "'--latency': 'x' is not one of"),
        (["normalize", "--offline", ""], "text: there is none"),
        (["sing"], "No such command 'sing'"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line


def test_a_file_that_is_no_text_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"a\xff")
    assert main(["say", "--file", str(path), "-o", str(tmp_path / "a.wav")]) == 2
    assert capsys.readouterr().err == f"error: {path} is not UTF-8: byte 1 is wrong\n"


def test_an_interrupt_cancels_on_the_server_and_leaves_a_playable_file(
    grpc_url: str, fake: FakeTriton, tmp_path: Path
) -> None:
    def has_first_chunk() -> bool:
        return path.exists() and path.stat().st_size > 256 * 2

    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        yield utterance()[0]
        deadline_s = time.monotonic() + 10
        while not has_first_chunk() and time.monotonic() < deadline_s:
            request.cancelled.wait(0.01)
        process.send_signal(signal.SIGINT)
        request.cancelled.wait(10)

    fake.script = script
    path = tmp_path / "out.wav"
    command = [sys.executable, "-c", INTERRUPTIBLE, "say", "hello", "-o", str(path)]
    environment = {"PYTHONPATH": str(Path(chattts_client.__file__).parents[1])}
    process = subprocess.Popen(
        [*command, "--url", grpc_url, "--stream"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "interrupted\n")
    assert fake.requests[0].cancelled.wait(10)
    assert frames(path) == 256


def test_a_server_that_goes_away_is_one_line(fake: FakeTriton, tmp_path: Path) -> None:
    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        server.stop(None)  # gRPC would write a line about this to standard error
        request.cancelled.wait(10)
        yield from ()

    fake.script = script
    server, url = serve_grpc(fake)
    done = subprocess.run(
        [sys.executable, "-m", "chattts_client", "say", "hello", "-o", "-", "--url", url],
        env={**os.environ, "PYTHONPATH": str(Path(chattts_client.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    server.stop(None).wait()
    assert done.returncode != 0
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [["say", "hello", "-o", "out.wav"], ["bench", "-j", "2", "-n", "4"]]
)
def test_an_interrupt_cancels_what_gives_nothing_before_its_end(
    arguments: list[str], grpc_url: str, fake: FakeTriton, tmp_path: Path
) -> None:
    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        if arguments[0] == "say" or len(fake.requests) > 2:
            process.send_signal(signal.SIGINT)
            request.cancelled.wait(10)
        yield from utterance()

    fake.script = script
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *arguments, "--url", grpc_url],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(chattts_client.__file__).parents[1])},
        stderr=subprocess.PIPE,
        text=True,
    )
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "interrupted\n")
    assert fake.requests[-1].cancelled.wait(10)
    assert not list(tmp_path.iterdir())


def test_a_reader_that_leaves_is_no_traceback(grpc_url: str, fake: FakeTriton) -> None:
    def endless(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        while not request.cancelled.wait(0.001):
            yield outputs(np.zeros(24_000, dtype=np.float32), is_final=False)

    fake.script = endless
    command = [sys.executable, "-c", INTERRUPTIBLE, "say", "hello", "-o", "-", "--stream"]
    environment = {"PYTHONPATH": str(Path(chattts_client.__file__).parents[1])}
    process = subprocess.Popen(
        [*command, "--url", grpc_url],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert len(process.stdout.read(100)) == 100
    process.stdout.close()
    assert process.wait(30) == 1
    with process.stderr:
        assert process.stderr.read() == b""
    assert fake.requests[0].cancelled.wait(10)


@pytest.mark.parametrize("output", ["out.wav", "-"])
def test_a_failure_is_an_object_of_json_where_the_result_would_be(
    output: str, grpc_url: str, fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.script = fail(Failure("INVALID_ARG", "voice: 'bob' is unknown"))
    assert main(["say", "hello", "-o", output, "--url", grpc_url, "--json"]) == 2
    captured = capsys.readouterr()
    prose, *others = captured.err.splitlines()
    assert prose.startswith("error: voice: ")
    (line,) = others if output == "-" else captured.out.splitlines()
    assert json.loads(line)["error"] == {
        "code": "INVALID_ARGUMENT",
        "message": "voice: 'bob' is unknown",
        "field": "voice",
        "request_id": fake.requests[0].request_id,
        "retryable": False,
        "exit": 2,
    }


@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [
        (["say", "--file", "/nonexistent", "-o", "a.wav", "--json"], "FILE", 1),
        (["health", "--timeout", "-1", "--json"], "USAGE", 2),
        (["bench", "-n", "x", "--json"], "USAGE", 2),
    ],
)
def test_a_failure_on_this_side_is_json_too(
    arguments: list[str], code: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["exit"]) == (code, status)


def test_samples_are_not_for_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(["say", "hello", "-o", "-", "--url", "127.0.0.1:1"]) == 2
    assert "--output: samples are nothing for a terminal" in capsys.readouterr().err
