"""The command line: results to standard output, the rest to standard error, a status per cause."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
import wave
from collections.abc import Iterator
from pathlib import Path

import chattts_client
import numpy as np
import pytest
from chattts_client.__main__ import EXIT_CODES, main
from chattts_client._exceptions import ChatTTSError
from unit.client.fake_triton import (
    Failure,
    FakeTriton,
    Inputs,
    Outputs,
    Request,
    dry_run_answer,
    fail,
    outputs,
    utterance,
    voices_answer,
)

# A background job of a shell ignores interrupts, and so would its children.
INTERRUPTIBLE = """
import signal, sys
from chattts_client.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))
"""


def frames(path: Path) -> int:
    with wave.open(str(path)) as file:
        return file.getnframes()


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


def test_say_passes_every_option_on(grpc_url: str, fake: FakeTriton, tmp_path: Path) -> None:
    flags = "--voice en --language en --style [speed_3] --refine --seed 3 --priority 1 "
    flags += "--deadline-ms 900 --queue-deadline-ms 300 --latency low --temperature 0.5 "
    flags += "--top-p 0.9 --top-k 5 --repetition-penalty 1.5 --min-new-tokens 1 --max-new-tokens 9"
    flags += " --model-version 2"
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
        "options": '{"split": false}',
    }
    assert fake.requests[0].version == "2"


def test_a_dash_reads_the_text_from_standard_input(
    grpc_url: str, fake: FakeTriton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("你好\n".encode())))
    assert main(["say", "-", "-o", str(tmp_path / "out.wav"), "--url", grpc_url]) == 0
    assert fake.inputs[0]["text"] == "你好\n"


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
    response = outputs(
        np.zeros(0, dtype=np.float32), is_final=True, untrained=True, warnings=[warning]
    )
    fake.script = lambda inputs, request: iter([response])
    command = ["say", "hello", "-o", str(tmp_path / "out.wav"), "--url", grpc_url, "--json"]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert "warning: 'xyzzy' is unknown (unknown_words)" in captured.err
    assert "UNTRAINED" in captured.err
    assert json.loads(captured.out)["real_time_factor"] is None


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


@pytest.mark.parametrize(("is_ready", "status"), [(True, 0), (False, 3)])
def test_health_is_the_status(
    grpc_url: str,
    fake: FakeTriton,
    is_ready: bool,
    status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake.is_ready = is_ready
    assert main(["health", "--url", grpc_url]) == status
    assert capsys.readouterr().out == f"{grpc_url}: {'ready' if is_ready else 'not ready'}\n"
    assert main(["health", "--url", grpc_url, "--json"]) == status
    assert json.loads(capsys.readouterr().out) == {"url": grpc_url, "ready": is_ready}


def test_every_error_has_a_status_of_its_own() -> None:
    kinds = [getattr(chattts_client, name) for name in chattts_client.__all__]
    errors = {kind for kind in kinds if issubclass(kind, ChatTTSError)} - {ChatTTSError}
    assert set(EXIT_CODES) == errors
    assert len(set(EXIT_CODES.values())) == len(errors)


def test_an_error_is_one_line_with_code_and_request(
    grpc_url: str, fake: FakeTriton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.script = fail(Failure("INVALID_ARG", "voice: 'bob' is unknown"))
    path = tmp_path / "out.wav"
    assert main(["say", "hello", "-o", str(path), "--url", grpc_url, "--voice", "bob"]) == 2
    request_id = fake.requests[0].request_id
    expected = f"error: voice: 'bob' is unknown (INVALID_ARGUMENT, request {request_id})\n"
    assert capsys.readouterr().err == expected
    assert not path.exists()


def test_no_server_says_that_trying_again_may_help(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["say", "hello", "-o", str(tmp_path / "out.wav"), "--url", "127.0.0.1:1"]
    assert main(command) == EXIT_CODES[chattts_client.ServerUnavailableError]
    assert "trying again may help" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_an_error(
    grpc_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["say", "hello", "-o", str(tmp_path / "no" / "a.wav"), "--url", grpc_url]) == 1
    assert "No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["say", "hello", "-o", "out.mp3"], "must end in .wav"),
        (["say", "hello", "-o", "out.wav", "--http", "--stream"], "--stream needs gRPC"),
        (["say", "hello"], "required: -o"),
        (["sing"], "invalid choice"),
    ],
)
def test_a_wrong_command_line_is_explained(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err


def test_a_wrong_time_limit_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", "--timeout", "-1"]) == 2
    assert "timeout_s: -1.0 is not above 0" in capsys.readouterr().err


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
