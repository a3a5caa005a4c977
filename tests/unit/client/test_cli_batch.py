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
from chattts_client._types import Audio, SpeechOptions
from chattts_client.cli import main
from chattts_client.cli.lines import COLUMNS, Format, read_lines
from chattts_client.cli.manifest import Manifest
from unit.client.cli_calls import INTERRUPTIBLE
from unit.client.fake_answers import WAIT_S, Failure, Inputs, Outputs, Request, outputs, utterance
from unit.client.fake_triton import FakeTriton

DEFAULTS: SpeechOptions = {"voice": "en", "options": {"split": False}}
CSV = """text,name,seed,refine,speed,options
hello,greeting,7,yes,,
"two
lines",,,,1.5,"{""a"": 1}"
"""
JSONL = """{"text": "hello", "seed": 7}

{"text": "bye", "name": "b", "speed": 2, "voice": "zh"}
"""


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


def test_a_text_has_a_line_per_utterance() -> None:
    lines = read_lines("one\n\n  two \n", "text", "in.txt", DEFAULTS)
    assert [(line.number, line.name, line.text) for line in lines] == [
        (1, "00001", "one"),
        (3, "00003", "two"),
    ]
    assert all(line.options == DEFAULTS for line in lines)


def test_a_csv_file_has_options_in_columns() -> None:
    first, second = read_lines(CSV, "csv", "in.csv", DEFAULTS)
    assert (first.text, first.name, second.text) == ("hello", "greeting", "two\nlines")
    assert first.options == {**DEFAULTS, "seed": 7, "refine": True}
    switches = {"split": False, "a": 1, "speed": 1.5}
    assert second.options == {"voice": "en", "options": switches}


def test_jsonl_has_options_in_keys() -> None:
    first, second = read_lines(JSONL, "jsonl", "in.jsonl", DEFAULTS)
    assert (first.number, first.options) == (1, {**DEFAULTS, "seed": 7})
    assert (second.number, second.name) == (3, "b")
    assert second.options == {"voice": "zh", "options": {"split": False, "speed": 2}}


def test_every_option_of_speech_may_be_a_column() -> None:
    assert set(COLUMNS) == {"text", "name", "speed", *SpeechOptions.__annotations__}


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("csv", "text,voicee\nhello,en\n", "column 'voicee' is unknown; known are text, name"),
        ("csv", "voice\nen\n", "no column 'text'"),
        ("csv", "text,seed,seed\nhello,1,2\n", "column 'seed' is there twice"),
        ("csv", "text,seed\nhello,x\n", "line 2: seed: 'x' is no number"),
        ("csv", "text,refine\nhello,x\n", "line 2: refine: 'x' is neither true nor false"),
        ("csv", "text,language\nhello,fr\n", "line 2: language: 'fr' is none of auto, zh, en"),
        ("csv", "text,options\nhello,x\n", "line 2: 'x' is not JSON"),
        ("csv", "text\nhello,en\n", "line 2: more cells than columns"),
        ("csv", 'text\n"hello\n', "line 2: unexpected end"),
        ("csv", "text,name\n,a\n", "line 2: text: there is none"),
        ("jsonl", '{"text": "a"}\n{"text": "b", "tex": 1}', "line 2: key 'tex' is unknown"),
        ("jsonl", "hello", "line 1: not JSON"),
        ("jsonl", "[1]", "line 1: not a JSON object"),
        ("jsonl", "[" * 100_000, "line 1: not JSON"),
        ("jsonl", '{"text": 1}', "line 1: text: there is none"),
        ("jsonl", '{"text": "a", "seed": "x"}', "line 1: seed: 'x' is not a whole number"),
        ("jsonl", '{"text": "a", "options": 1}', "line 1: options: 1 is no JSON object"),
        ("jsonl", '{"text": "a", "name": "../x"}', "line 1: name: '../x' is no stem of a file"),
        ("jsonl", '{"text": "a", "name": "%s"}' % ("é" * 101), "line 1: name: 'éééé"),
        ("jsonl", '{"text": "a", "name": "x"}\n' * 2, "line 2: name: 'x' is that of line 1 too"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(kind: Format, content: str, message: str) -> None:
    with pytest.raises(ValueError, match="^in") as caught:
        read_lines(content, kind, "in", {})
    assert message in str(caught.value)


def test_the_key_is_that_of_the_content() -> None:
    (one,) = read_lines("hello", "text", "in", {"seed": 1})
    (same,) = read_lines("\nhello", "text", "other", {"seed": 1})
    others = [*read_lines("hallo", "text", "in", {"seed": 1}), *read_lines("hello", "text", "", {})]
    assert one.key == same.key
    assert one.key not in {other.key for other in others}


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
