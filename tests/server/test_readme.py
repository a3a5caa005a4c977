"""The README's snippets do what it says, against a server with the small voice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import wave
from pathlib import Path

import pytest
from conftest import ROOT
from launcher import EmbeddedServer
from snippets import on, snippet

README = ROOT / "README.md"
LIMIT_S = 60


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def seconds(path: Path) -> float:
    with wave.open(str(path)) as file:
        assert file.getframerate() == 24000
        return file.getnframes() / file.getframerate()


def test_the_python_snippet_speaks(demo_server: EmbeddedServer, tmp_path: Path) -> None:
    code = on(demo_server, snippet(README, "python", "ChatTTSClient"))
    run([sys.executable, "-c", code], tmp_path)
    assert seconds(tmp_path / "train.wav") > 1


def test_the_command_line_speaks_and_finds_nothing_wrong(
    demo_server: EmbeddedServer, tmp_path: Path
) -> None:
    for line in snippet(README, "bash", "chattts say").splitlines():
        command = line.replace(".venv/bin/chattts", f"{sys.executable} -m chattts_client")
        printed = run(["bash", "-c", f"{command} --url {demo_server.grpc_url}"], tmp_path)
    checks = dict(line.split(maxsplit=2)[1::-1] for line in printed.splitlines() if line[0] != " ")
    assert checks["speech"] == "ok"
    assert seconds(tmp_path / "hello.wav") > 1


@pytest.mark.skipif(not Path("/usr/bin/curl").exists(), reason="needs curl")
def test_the_curl_snippet_speaks(demo_server: EmbeddedServer, tmp_path: Path) -> None:
    run(["bash", "-c", on(demo_server, snippet(README, "bash", "curl -s"))], tmp_path)
    assert seconds(tmp_path / "http.wav") > 0.5


def test_every_path_that_it_names_exists() -> None:
    text = README.read_text("utf-8")
    named = set(re.findall(r"(?:build|embedded|loadtest|docs)/[\w/.-]+\.(?:py|md)", text))
    assert named
    assert not [name for name in named if not (ROOT / name).exists()]


def test_it_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 250
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
