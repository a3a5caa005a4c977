"""`batch`: lines in, files and a manifest out, nothing twice."""

from __future__ import annotations

import errno
import io
import json
import resource
import signal
import subprocess
import sys
import time
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chattts_client
import numpy as np
import pytest
from chattts_client._types import Audio
from chattts_client.cli import main
from chattts_client.cli.lines import read_lines
from chattts_client.cli.manifest import Manifest
from unit.client.cli_calls import CSV, INTERRUPTIBLE, JSONL
from unit.client.fake_answers import WAIT_S, Failure, Inputs, Outputs, Request, outputs, utterance
from unit.client.fake_triton import FakeTriton


def entries(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def wait_for_lines(path: Path, count: int) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while path.read_bytes().count(b"\n") < count and time.monotonic() < deadline_s:
        time.sleep(0.01)


def spoken(fake: FakeTriton) -> list[str]:
    return sorted(inputs["text"] for inputs in fake.inputs)


@pytest.fixture
def batch(grpc_url: str, tmp_path: Path) -> Any:
    """Run a batch over lines of text, or over a file."""

    def run(content: str, *flags: str, name: str = "in.txt") -> int:
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return main(["batch", str(path), "-o", str(tmp_path / "out"), "--url", grpc_url, *flags])

    return run


def test_a_batch_writes_files_and_a_manifest(
    batch: Any, fake: FakeTriton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert batch(CSV, "--json", name="in.csv") == 0
    assert spoken(fake) == ["hello", "two\nlines"]
    first, second = entries(tmp_path / "out")
    assert (first["name"], first["file"], first["text"]) == ("greeting", "greeting.wav", "hello")
    assert (second["line"], second["file"], second["seed"]) == (3, "00003.wav", 7)
    for entry in (first, second):
        path = tmp_path / "out" / entry["file"]
        assert path.stat().st_size == entry["bytes"]
        with wave.open(str(path)) as file:
            assert file.getnframes() == 768
    report = json.loads(capsys.readouterr().out)
    assert (report["spoken"], report["kept"], report["failed"]) == (2, 0, 0)


def test_what_is_done_is_not_done_again(batch: Any, fake: FakeTriton, tmp_path: Path) -> None:
    assert batch("one\ntwo\nthree\nfour") == 0
    out = tmp_path / "out"
    (out / "00002.wav").unlink()
    (out / "00003.wav").write_bytes(b"torn")
    with (out / "manifest.jsonl").open("a") as file:
        file.write('{"name": "00001", "ke')
    fake.inputs.clear()
    assert batch("one\ntwo\nthree\nvier") == 0
    assert spoken(fake) == ["three", "two", "vier"]
    fake.inputs.clear()
    assert batch("one\ntwo\nthree\nvier") == 0
    assert batch("one\ntwo\nthree\nvier", "--seed", "3") == 0
    assert spoken(fake) == ["one", "three", "two", "vier"]
    fake.inputs.clear()
    assert batch("one\ntwo\nthree\nvier", "--seed", "3", "--format", "flac") == 0
    assert len(spoken(fake)) == 4
    assert [entry["text"] for entry in entries(out)] == ["one", "two", "three", "vier"]


def test_failures_are_listed_and_tried_again(
    batch: Any, fake: FakeTriton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        if inputs["text"] == "bad":
            raise Failure("INVALID_ARG", "text: nothing to say")
        yield from utterance()

    fake.script = script
    assert batch("good\nbad\nfine") == 2
    captured = capsys.readouterr()
    assert captured.out.endswith("3 lines, 2 spoken, 0 kept, 1 failed, 0.1 s of new audio\n")
    assert "line 2 (00002): text: nothing to say (INVALID_ARGUMENT" in captured.err
    failed = entries(tmp_path / "out")[1]
    assert (failed["error"], failed["code"]) == ("text: nothing to say", "INVALID_ARGUMENT")
    fake.script = lambda inputs, request: iter(utterance())
    fake.inputs.clear()
    assert batch("good\nbad\nfine") == 0
    assert spoken(fake) == ["bad"]


def test_warnings_are_counted_and_in_the_manifest(
    batch: Any, fake: FakeTriton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        found = [{"code": "dropped_symbol", "message": "left out"}] * ("☃" in inputs["text"])
        samples = np.ones(256, dtype=np.float32)
        yield outputs(samples, is_final=True, warnings=found, untrained=True)

    fake.script = script
    assert batch("snow ☃\nrain") == 0
    first, notice = capsys.readouterr().err.splitlines()
    assert first == "warning: 1 of the spoken lines have warnings; the manifest has them"
    assert "UNTRAINED" in notice
    assert [len(entry["warnings"]) for entry in entries(tmp_path / "out")] == [1, 0]


def test_a_line_without_audio_by_its_deadline_is_spoken_again(
    batch: Any, fake: FakeTriton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = outputs(np.zeros(0, dtype=np.float32), is_final=True, finish_reasons=["deadline"])
    fake.script = lambda inputs, request: iter([nothing])
    assert batch("one") == 4
    assert "line 1 (00001): the deadline came before the first audio" in capsys.readouterr().err
    assert not list((tmp_path / "out").glob("*.wav"))
    fake.script = lambda inputs, request: iter(utterance())
    assert batch("one") == 0
    assert spoken(fake) == ["one", "one"]


def test_an_input_without_lines_is_said(batch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert batch("\n \n") == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("in.txt: there is no line to speak")


def test_a_dead_server_is_not_asked_for_every_line(
    batch: Any, fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        raise Failure("INTERNAL", "broken")

    fake.script = script
    lines = "\n".join(f"line {number}" for number in range(60))
    assert batch(lines, "--give-up-after", "3", "-j", "2") == 6
    assert "given up after 3 failed lines in a row; 57 were not tried" in capsys.readouterr().err
    assert len(fake.inputs) < 30


def test_lines_come_from_standard_input(
    grpc_url: str, fake: FakeTriton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["batch", "-", "-o", str(tmp_path / "out"), "--url", grpc_url]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(JSONL.encode())))
    assert main(command) == 2
    assert main([*command, "--input-format", "jsonl"]) == 0
    assert spoken(fake) == ["bye", "hello"]


def test_an_interrupt_parts_no_file_from_its_line(
    batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(audio: Audio, path: Path) -> None:
        path.write_bytes(b"RIFF")
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Audio, "save", save)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert batch("one\ntwo\nthree", "-j", "1") == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert [entry["file"] for entry in entries(tmp_path / "out")] == ["00001.wav"]
    assert [path.name for path in (tmp_path / "out").glob("*.wav")] == ["00001.wav"]


def test_an_interrupted_batch_goes_on(
    batch: Any, grpc_url: str, fake: FakeTriton, tmp_path: Path
) -> None:
    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        if inputs["text"] == "three":
            wait_for_lines(tmp_path / "out" / "manifest.jsonl", 2)
            process.send_signal(signal.SIGINT)
            request.cancelled.wait(WAIT_S)
        yield from utterance()

    fake.script = script
    path = tmp_path / "in.txt"
    path.write_text("one\ntwo\nthree\nfour", encoding="utf-8")
    command = [sys.executable, "-c", INTERRUPTIBLE, "batch", str(path), "--url", grpc_url]
    process = subprocess.Popen(
        [*command, "-o", str(tmp_path / "out"), "-j", "1"],
        env={"PYTHONPATH": str(Path(chattts_client.__file__).parents[1])},
        stderr=subprocess.PIPE,
        text=True,
    )
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == "interrupted: 2 of 4 lines are done; run it again to go on\n"
    fake.script = lambda inputs, request: iter(utterance())
    fake.inputs.clear()
    assert batch("one\ntwo\nthree\nfour") == 0
    assert spoken(fake) == ["four", "three"]


def test_another_input_does_not_take_the_files_of_the_first(
    batch: Any, fake: FakeTriton, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert batch("one\ntwo", name="first.txt") == 0
    before = sorted(entries(tmp_path / "out"), key=lambda one: str(one["name"]))
    fake.inputs.clear()
    assert batch("\none\nother", name="second.txt") == 2
    (line,) = capsys.readouterr().err.splitlines()
    taken = f"{tmp_path / 'second.txt'}, line 2: {tmp_path / 'out' / '00002.wav'} is that of line 2"
    assert line.startswith(f"error: {taken} of {tmp_path / 'first.txt'}; ")
    assert not fake.inputs
    assert sorted(entries(tmp_path / "out"), key=lambda one: str(one["name"])) == before
    assert batch("\n\nthree", name="second.txt") == 0
    assert batch("", name="empty.txt") == 0
    assert {entry["text"] for entry in entries(tmp_path / "out")} == {"one", "two", "three"}
    assert batch("eins", "--overwrite", name="second.txt") == 0
    assert {entry["text"] for entry in entries(tmp_path / "out")} == {"eins", "two", "three"}


def test_a_full_disk_is_the_failure_of_a_line(
    batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save = Audio.save

    def full(audio: Audio, path: Path) -> None:
        if path.stem == "00002":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        save(audio, path)

    monkeypatch.setattr(Audio, "save", full)
    assert batch("one\ntwo\nthree") == 1
    captured = capsys.readouterr()
    assert "3 lines, 2 spoken, 0 kept, 1 failed" in captured.out
    assert "line 2 (00002): [Errno 28] No space left" in captured.err
    assert ["error" in entry for entry in entries(tmp_path / "out")] == [False, True, False]


def test_a_manifest_on_a_full_disk_stays_whole(batch: Any, tmp_path: Path) -> None:
    assert batch("one") == 0
    out = tmp_path / "out"
    size = (out / "manifest.jsonl").stat().st_size
    manifest = Manifest(out, "more.txt")
    line = read_lines("\ntwo", "text", "in", {})[0]
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limit[1]))
    try:
        with pytest.raises(OSError, match="No space|too large"):
            manifest.add(line, {"file": "00002.wav", "bytes": 1})
        manifest.close([line])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert [entry["text"] for entry in entries(out)] == ["one"]
    assert {path.name for path in out.iterdir()} == {"00001.wav", "manifest.jsonl"}
