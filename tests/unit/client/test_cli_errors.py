"""Errors and interrupts on the command line: one line, and a status per cause."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import chattts_client
import numpy as np
import pytest
from chattts_client._exceptions import ChatTTSError
from chattts_client.cli import main
from chattts_client.cli.output import EXIT_CODES
from unit.client.cli_calls import INTERRUPTIBLE, frames
from unit.client.fake_answers import (
    Failure,
    Inputs,
    Outputs,
    Request,
    fail,
    outputs,
)
from unit.client.fake_triton import FakeTriton, serve_grpc


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
        (["say", "a", "-o", "out.wav", "--options", '{"a": 1, "a": 2}'], "has the key 'a' twice"),
        (["say", "a", "-o", "out.wav", "--speed", "nan"], "--speed: nan is no number in 0.5 ... 2"),
        (["say", "a", "-o", "out.wav", "--speed", "5"], "--speed: 5.0 is no number in 0.5 ... 2"),
        (["voices", "--model-version", "x"], "'--model-version': 'x' is not a whole number"),
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


def test_a_stream_that_breaks_off_says_what_the_file_holds(
    grpc_url: str, fake: FakeTriton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.script = fail(Failure("INTERNAL", "broken"), after=2)
    path = tmp_path / "out.wav"
    assert main(["say", "hello", "-o", str(path), "--stream", "--url", grpc_url]) == 6
    held, error = capsys.readouterr().err.splitlines()
    assert held == f"{path} holds what came before: 0.02 s"
    assert error.startswith("error: broken")
    assert frames(path) == 512


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
