"""What a user gets: the wheel alone, in a new environment, typed, speaking, and without a model."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from conftest import DATA, ROOT
from launcher import EmbeddedServer
from snippets import on, snippet

OLDEST_PYTHON = "python3.10"
LIMIT_S = 240
SERVER_ONLY = {"torch", "onnxruntime", "onnx", "safetensors", "tokenizers", "nvidia-pytriton"}
EXTRAS_ONLY = {"typer", "rich", "soundfile", "sounddevice", "aiohttp", "pypinyin"}
WRONG = """
from chattts_client import ChatTTSClient
audio = ChatTTSClient(timeout="soon").synthesize("hello", seed="seven", pitch=2)
audio.seed = 8
"""


def run(*command: object, folder: Path) -> str:
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python_for_users() -> str:
    """The oldest Python that we promise, if it is on the path or beside ours, otherwise ours."""
    beside = sorted(Path(sys.base_prefix).parent.glob(f"*/bin/{OLDEST_PYTHON}"))
    for candidate in (shutil.which(OLDEST_PYTHON), *beside):
        if (
            candidate
            and not subprocess.run(
                [candidate, "--version"], capture_output=True, check=False
            ).returncode
        ):
            return str(candidate)
    return sys.executable


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT, folder=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def user_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that holds the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("user")
    run(python_for_users(), "-m", "venv", folder / "environment", folder=folder)
    python = folder / "environment" / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    run(python, "-m", "pip", "install", "-q", "-c", constraints, wheel, folder=folder)
    return python


def check_types(python: Path, *files: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run strict mypy as a user of this environment would, without our settings."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-executable"]
    return subprocess.run(
        [*command, str(python), *map(str, files)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def test_it_holds_the_client_and_the_text_front_end_only(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        fields = HeaderParser().parsestr(archive.read(metadata).decode())
    packages = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert packages == {"chattts_client", "chattts_text"}
    assert "chattts_client/py.typed" in names
    assert fields["Requires-Python"] == ">=3.10"
    required = [line for line in fields.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert not [line for line in required if line.startswith(tuple(SERVER_ONLY | EXTRAS_ONLY))]


def test_its_environment_has_no_model_and_no_extra(user_python: Path, tmp_path: Path) -> None:
    listed = run(user_python, "-m", "pip", "list", "--format=freeze", folder=tmp_path)
    installed = {line.split("==")[0].lower() for line in listed.splitlines()}
    assert "chattts-client" in installed
    assert not installed & (SERVER_ONLY | EXTRAS_ONLY)


def test_a_users_program_is_strictly_typed(user_python: Path, tmp_path: Path) -> None:
    checked = check_types(user_python, DATA / "client" / "user.py", folder=tmp_path)
    assert checked.returncode == 0, checked.stdout
    examples = sorted((ROOT / "client" / "examples").glob("*.py"))
    checked = check_types(user_python, *examples, folder=tmp_path)
    assert checked.returncode == 0, checked.stdout


def test_a_users_mistakes_are_found(user_python: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    found = check_types(user_python, tmp_path / "wrong.py", folder=tmp_path).stdout
    for name in ("timeout", "seed", "pitch"):
        assert f'"{name}"' in found
    assert 'Property "seed"' in found


def test_the_readme_speaks_from_it(
    user_python: Path, demo_server: EmbeddedServer, tmp_path: Path
) -> None:
    code = on(demo_server, snippet(ROOT / "README.md", "python", "ChatTTSClient"))
    run(user_python, "-c", code, folder=tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".wav"]


def test_the_asynchronous_twin_speaks_from_it(
    user_python: Path, demo_server: EmbeddedServer, tmp_path: Path
) -> None:
    example = ROOT / "client" / "examples" / "fan_out.py"
    to = ["--url", demo_server.grpc_url, "--voice", "en", "--folder", tmp_path]
    printed = run(user_python, example, "--count", 4, "--concurrency", 2, *to, folder=tmp_path)
    assert printed.startswith("4 files")
    assert len(list(tmp_path.glob("*.wav"))) == 4


@pytest.mark.parametrize("command", [["chattts"], ["python", "-m", "chattts_client"]])
def test_without_its_extra_the_command_line_says_so(
    user_python: Path, command: list[str], tmp_path: Path
) -> None:
    program = user_python.parent / command[0]
    done = subprocess.run(
        [program, *command[1:], "health"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "pip install '.[cli]'" in done.stderr
