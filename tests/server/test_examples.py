"""The examples do what they say, against a server with the small voice."""

from __future__ import annotations

import io
import runpy
import shutil
import subprocess
import sys
import wave
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest
import repository as layout
from conftest import DEMO_CHECKPOINT, ROOT
from launcher import EmbeddedServer

EXAMPLES = ROOT / "client" / "examples"
SENTENCE = "The cat reads a book."
ARTICLE = "The cat reads a book.\nThe dog sleeps.\n\n\nHello anna, how are you today?\n"
RATE_HZ = 24_000


def run(name: str, arguments: Sequence[str], server: EmbeddedServer) -> None:
    main = runpy.run_path(str(EXAMPLES / name))["main"]
    assert main([*arguments, "--url", server.grpc_url, "--voice", "en"]) == 0


def seconds_of(path: Path) -> float:
    with wave.open(str(path)) as file:
        assert file.getframerate() == RATE_HZ
        return file.getnframes() / RATE_HZ


@pytest.mark.parametrize("name", ["say.py", "stream.py"])
def test_one_sentence_is_saved(
    demo_server: EmbeddedServer, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.wav"
    run(name, [SENTENCE, "--output", str(path)], demo_server)
    assert seconds_of(path) > 0.5
    printed = capsys.readouterr().out
    assert "first audio after" in printed if name == "stream.py" else "eos" in printed


def test_fifty_texts_are_saved_in_their_order(
    demo_server: EmbeddedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("fan_out.py", ["--count", "50", "--folder", str(tmp_path / "spoken")], demo_server)
    files = sorted((tmp_path / "spoken").iterdir())
    assert [file.name for file in files] == [f"{index:03d}.wav" for index in range(50)]
    assert all(seconds_of(file) > 0.5 for file in files)
    # The texts repeat after 25, and so must what is said: nothing was swapped.
    assert [file.read_bytes() for file in files[:25]] == [file.read_bytes() for file in files[25:]]
    assert "50 files" in capsys.readouterr().out


def test_an_article_is_one_file_with_a_pause_after_each_paragraph(
    demo_server: EmbeddedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "article.txt").write_text(ARTICLE, encoding="utf-8")
    output = tmp_path / "article.wav"
    run("article.py", [str(tmp_path / "article.txt"), "--output", str(output)], demo_server)
    printed = capsys.readouterr()
    assert "2 of 2 paragraphs" in printed.err
    said = float(printed.out.split("paragraphs, ")[1].split(" s of speech")[0])
    assert seconds_of(output) == pytest.approx(said + 2 * 0.5, abs=0.1)


def test_a_growing_text_is_spoken_sentence_by_sentence(
    demo_server: EmbeddedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("The cat reads. Hello anna! How are you"))
    output = tmp_path / "out.wav"
    run("growing_text.py", ["--output", str(output)], demo_server)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" s of ")[1] for line in lines] == [
        "'The cat reads.'",
        "'Hello anna!'",
        "'How are you'",
    ]
    said = sum(float(line.split(": ")[1].split(" s of ")[0]) for line in lines)
    assert seconds_of(output) == pytest.approx(said, abs=0.1)


def test_a_sentence_does_not_wait_for_the_next_one() -> None:
    example = runpy.run_path(str(EXAMPLES / "growing_text.py"))
    sentences: Callable[[Iterable[str]], Iterator[str]] = example["sentences"]
    seen: list[str] = []

    def pieces() -> Iterator[str]:
        for piece in ("One", ". Tw", "o? 三。四", "！ 3.5 is", " a number.\nEnd"):
            yield piece
            seen.append(piece)

    found = [(sentence, len(seen)) for sentence in sentences(pieces())]
    assert [sentence.strip() for sentence, _ in found] == [
        "One.",
        "Two?",
        "三。",
        "四！",
        "3.5 is a number.",
        "End",
    ]
    assert [number for _, number in found] == [1, 2, 2, 3, 4, 5]


def test_two_versions_are_compared(
    demo_repository_int8: Path,
    server_factory: Callable[[Path], EmbeddedServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    repository = Path(shutil.copytree(demo_repository_int8, tmp_path / "repository"))
    command = [sys.executable, str(ROOT / "build" / "build_repository.py"), "--version", "2"]
    command += ["--checkpoint", str(DEMO_CHECKPOINT), "--output", str(repository)]
    subprocess.run(command, check=True, capture_output=True)
    for model in layout.MODELS:
        layout.serve(repository, model, [1, 2])
    server = server_factory(repository)
    monkeypatch.chdir(tmp_path)
    run("compare_versions.py", [SENTENCE], server)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("version 1: demo in int8, ")
    assert lines[1].startswith("version 2: demo in fp32, ")
    assert "differ" in lines[2]
    assert seconds_of(tmp_path / "version-2.wav") > 0.5
