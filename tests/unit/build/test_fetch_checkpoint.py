"""Fetching the published checkpoint, with the hub played by the test."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import fetch_checkpoint
import pytest
from checkpoint import required_files
from fetch_checkpoint import SHA256, main

Download = Callable[[str, Path], None]
CONTENT = {name: f"content of {name}".encode() for name in SHA256}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A hub that holds small files under the published names; the names it was asked for."""
    asked: list[str] = []

    def download(name: str, output: Path) -> None:
        asked.append(name)
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_bytes(CONTENT[name])

    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in CONTENT.items()}
    monkeypatch.setattr(fetch_checkpoint, "SHA256", hashes)
    monkeypatch.setattr(fetch_checkpoint, "probe", lambda name: None)
    monkeypatch.setattr(fetch_checkpoint, "download", download)
    return asked


def fail(error: Exception) -> Callable[..., None]:
    def raise_error(*_: object) -> None:
        raise error

    return raise_error


def one_sentence(capsys: pytest.CaptureFixture[str]) -> str:
    error = capsys.readouterr().err
    assert error.startswith("fetch_checkpoint: ")
    assert len(error.splitlines()) == 1
    return error


def test_the_nine_published_files_cover_what_a_checkpoint_needs() -> None:
    assert len(SHA256) == 9
    assert set(required_files()) <= set(SHA256)
    assert all(len(digest) == 64 for digest in SHA256.values())


def test_all_files_are_fetched_and_verified(hub: list[str], tmp_path: Path) -> None:
    assert main(["--output", str(tmp_path)]) == 0
    assert hub == list(SHA256)
    assert {name: (tmp_path / name).read_bytes() for name in SHA256} == CONTENT


def test_what_is_there_is_not_fetched_again(
    hub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--output", str(tmp_path)]) == 0
    (tmp_path / "asset/Vocos.safetensors").write_bytes(b"half a fi")
    hub.clear()
    assert main(["--output", str(tmp_path)]) == 0
    assert hub == ["asset/Vocos.safetensors"]
    monkeypatch.setattr(fetch_checkpoint, "probe", fail(OSError("offline")))
    assert main(["--output", str(tmp_path)]) == 0


@pytest.mark.parametrize("step", ["probe", "download"])
def test_an_unreachable_hub_is_one_sentence(
    step: str,
    hub: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = OSError("Name or service not known\nand a page of details")
    monkeypatch.setattr(fetch_checkpoint, step, fail(error))
    assert main(["--output", str(tmp_path)]) == 1
    sentence = one_sentence(capsys)
    assert "cannot download 2Noise/ChatTTS" in sentence
    assert "(Name or service not known)" in sentence


def test_a_file_that_is_not_the_published_one_is_named_and_removed(
    hub: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(CONTENT, "asset/gpt/config.json", b"another")
    assert main(["--output", str(tmp_path)]) == 1
    sentence = one_sentence(capsys)
    assert "asset/gpt/config.json has SHA-256" in sentence
    assert fetch_checkpoint.SHA256["asset/gpt/config.json"] in sentence
    assert not (tmp_path / "asset/gpt/config.json").exists()
    assert (tmp_path / "asset/Vocos.safetensors").exists()


def test_the_real_client_asks_once_and_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "http://127.0.0.1:9/file"  # the discard port: nobody listens
    monkeypatch.setattr(fetch_checkpoint, "hf_hub_url", lambda repository, name: url)
    assert main(["--output", str(tmp_path)]) == 1
    assert "Connection refused" in one_sentence(capsys)
    assert not (tmp_path / "asset").exists()
