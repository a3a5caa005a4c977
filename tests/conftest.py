"""Fixtures that several folders share: model repositories, built by the real command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
TINY_CHECKPOINT = DATA / "golden" / "tiny"
DEMO_CHECKPOINT = ROOT / "checkpoints" / "demo"
DEMO_VOICES = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))["languages"][0]
    for path in sorted((DEMO_CHECKPOINT / "voices").iterdir())
}
"""The language of each voice that ships, by name."""


class RepositoryFactory(Protocol):
    """Builds a model repository into a fresh folder, once per distinct call."""

    def __call__(self, checkpoint: Path, precision: str = "fp32", runner: str = "onnx") -> Path: ...


@pytest.fixture(scope="session")
def build_repository(tmp_path_factory: pytest.TempPathFactory) -> RepositoryFactory:
    """The command of the README, as a function."""
    built: dict[tuple[Path, str, str], Path] = {}

    def build(checkpoint: Path, precision: str = "fp32", runner: str = "onnx") -> Path:
        key = (checkpoint, precision, runner)
        if key not in built:
            folder = tmp_path_factory.mktemp("repository")
            command = [sys.executable, str(ROOT / "build" / "build_repository.py")]
            command += ["--checkpoint", str(checkpoint), "--output", str(folder)]
            command += ["--precision", precision, "--runner", runner]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            built[key] = folder
        return built[key]

    return build


@pytest.fixture(scope="session")
def tiny_repository(build_repository: RepositoryFactory) -> Path:
    """The tiny golden checkpoint in float32; each sentence is a segment: tests count them."""
    repository = build_repository(TINY_CHECKPOINT)
    config = repository / "chattts" / "config.pbtxt"
    text = config.read_text(encoding="utf-8")
    assert text.count('"auto"') == 1
    config.write_text(text.replace('"auto"', '"0"'), encoding="utf-8")
    return repository


@pytest.fixture(scope="session")
def demo_repository_fp32(build_repository: RepositoryFactory) -> Path:
    """The small speaking voice in float32."""
    return build_repository(DEMO_CHECKPOINT)


@pytest.fixture(scope="session")
def demo_repository_int8(build_repository: RepositoryFactory) -> Path:
    """The small speaking voice in int8."""
    return build_repository(DEMO_CHECKPOINT, "int8")
