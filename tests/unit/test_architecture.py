"""The import arrows: which part may know which other part, read from the source."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from chattts_client import _protocol

ROOT = Path(__file__).parents[2]
REPOSITORY = ROOT / "model_repository"
ENGINE = REPOSITORY / "chattts_gpt" / "1" / "chattts_engine"
PIPELINE = REPOSITORY / "chattts" / "1" / "chattts_pipeline"
VOICES = REPOSITORY / "chattts" / "1" / "chattts_voices"
TEXT = REPOSITORY / "chattts" / "1" / "chattts_text"
CLIENT = ROOT / "client" / "chattts_client"
BUILD = ROOT / "build"
TRAINING = BUILD / "train_voice"
EMBEDDED = ROOT / "embedded"
PACKAGES = [ENGINE, PIPELINE, CLIENT]
PROJECT_PACKAGES = {package.name for package in PACKAGES}
TRITON = "triton_python_backend_utils"
TEXT_LIBRARIES = {"anyascii", "markdown_it", "opencc", "pypinyin", "rjieba"}
TENSOR_LIBRARIES = {"torch", "onnxruntime", "onnx", "safetensors"}
CLOCKS = {"time", "datetime"}
BUILT = re.compile(r"/model_repository/\w+/(?!1/)\d+/")
"""Versions that a build has copied here."""


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def sources(folder: Path) -> list[Path]:
    paths = [path for path in sorted(folder.rglob("*.py")) if not BUILT.search(path.as_posix())]
    assert paths, f"{folder} has no source: these tests would prove nothing"
    return paths


def product_sources() -> list[Path]:
    return [path for folder in (REPOSITORY, CLIENT, BUILD, EMBEDDED) for path in sources(folder)]


def imported_modules(path: Path) -> Iterator[str]:
    """Absolute names of all modules that a file imports, wherever in the file."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = path.parents[node.level - 1].name if node.level else ""
            base = ".".join(part for part in (parent, node.module) if part)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def top_names(path: Path) -> set[str]:
    return {module.split(".")[0] for module in imported_modules(path)}


def siblings(path: Path) -> set[str]:
    """Modules of the same package that a file imports."""
    names = {file.stem for file in sources(path.parent)}
    parts = [module.split(".") for module in imported_modules(path)]
    return {part[1] for part in parts if part[0] == path.parent.name and part[1:2]} & names


def reachable(package: Path, start: str) -> set[str]:
    """Modules of `package` that `start` imports, directly or through others."""
    seen, waiting = set(), [start]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += siblings(package / f"{module}.py")
    return seen


def importers(paths: Iterable[Path], library: str) -> set[str]:
    return {str(path.relative_to(ROOT)) for path in paths if library in top_names(path)}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_engine_pipeline_and_client_know_nothing_of_each_other(package: Path) -> None:
    others = PROJECT_PACKAGES - {package.name}
    for path in sources(package):
        assert not top_names(path) & others, path


def test_only_the_adapters_know_triton() -> None:
    """They lie beside each other in a version folder, or are a backend's model.py."""
    files = {Path(file) for file in importers(product_sources(), TRITON)}
    assert files
    for file in files:
        assert file.parent.name == "1" or file.name == "model.py", file


@pytest.mark.parametrize("module", ["scheduler", "block_manager", "sequence", "sampling_params"])
def test_deciding_never_touches_computing(module: str) -> None:
    runners = {path.stem for path in sources(ENGINE) if top_names(path) & TENSOR_LIBRARIES}
    assert {"onnx_runner", "torch_runner"} <= runners
    assert not reachable(ENGINE, module) & (runners | {"runner", "sampler", "engine"})


@pytest.mark.parametrize("library", ["torch", "triton"])
def test_torch_is_imported_by_its_runner_only(library: str) -> None:
    paths = [path for path in product_sources() if not path.name.startswith("torch_")]
    paths = [path for path in paths if path.parent != TRAINING]
    assert importers(paths, library) <= {"model_repository/chattts_gpt/1/chattts_engine/loading.py"}


def test_the_engine_imports_its_runners_only_when_it_needs_them() -> None:
    for path in sources(ENGINE):
        names = {node.module for node in tree(path).body if isinstance(node, ast.ImportFrom)}
        assert not names & {"torch_runner", "onnx_runner"}, path


def test_asking_for_the_torch_runner_s_options_needs_no_torch() -> None:
    assert not top_names(ENGINE / "torch_options.py") & TENSOR_LIBRARIES


def test_build_scripts_import_no_package_of_the_project_but_the_voices() -> None:
    for path in sources(BUILD):
        assert not top_names(path) & (PROJECT_PACKAGES | {TRITON}), path
    assert importers(sources(BUILD), VOICES.name) == {"build/voice_format.py"}


def test_only_the_evaluation_knows_the_training() -> None:
    paths = [path for path in product_sources() if path.parent != TRAINING]
    assert importers(paths, TRAINING.name) == {"build/evaluate_voice.py"}


def test_the_voices_need_no_other_package_of_the_project() -> None:
    for path in sources(VOICES):
        assert not top_names(path) & (PROJECT_PACKAGES | {TRITON}), path


def test_the_engine_reads_no_environment() -> None:
    for path in sources(ENGINE):
        used = {node.attr for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}
        named = {module.split(".")[-1] for module in imported_modules(path)}
        assert not (used | named) & {"environ", "environb", "getenv", "getenvb"}, path


def clock_calls(path: Path) -> list[int]:
    """Lines that ask a clock; naming one, as the default of an argument, is not asking."""
    calls = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    modules, functions = CLOCKS & top_names(path), set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module in CLOCKS:
            functions |= {alias.asname or alias.name for alias in node.names}
    return [call.lineno for call in calls if root_name(call.func) in modules | functions]


def root_name(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def test_the_engine_asks_no_clock_that_it_was_not_given() -> None:
    for path in sources(ENGINE):
        assert clock_calls(path) == [], path


def test_the_text_front_end_needs_text_libraries_only() -> None:
    """The client uses it without a server; what is not the standard library is loaded late."""
    for path in sources(TEXT):
        top = {node for node in tree(path).body if isinstance(node, ast.Import | ast.ImportFrom)}
        assert top_names(path) <= {*sys.stdlib_module_names, TEXT.name, *TEXT_LIBRARIES}, path
        late = {name for node in top for name in _imported(node)}
        assert not late & TEXT_LIBRARIES, path


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    return {(node.module or "").split(".")[0]} if not node.level else set()


@pytest.mark.parametrize("package", [*PACKAGES, TEXT], ids=lambda package: package.name)
def test_imports_within_a_package_have_no_cycle(package: Path) -> None:
    for path in sources(package):
        folder = path.parent
        ways_back = [name for name in siblings(path) if path.stem in reachable(folder, name)]
        assert ways_back == [], f"{path} <-> {ways_back}"


def library_sources() -> list[Path]:
    """The client without its command line, whose options are named like those of speech."""
    return [path for path in sources(CLIENT) if path.parent == CLIENT]


def test_the_library_needs_no_command_line() -> None:
    for path in library_sources():
        needed = {"typer", "rich", "chattts_client.cli"} & set(imported_modules(path))
        assert needed == ({"chattts_client.cli"} if path.name == "__main__.py" else set()), path


def test_the_clients_wire_format_has_one_home() -> None:
    names = (set(_protocol.INPUTS) | set(_protocol.OUTPUTS)) - {"text", "stream", "options"}
    for path in library_sources():
        if path.name not in {"_protocol.py", "_answers.py", "_types.py"}:
            strings = {
                node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant)
            }
            assert not strings & names, path


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import time\ntime.monotonic()", [2]),
        ("from time import monotonic as now\nnow()", [2]),
        ("import datetime\ndatetime.datetime.now()", [2]),
        ("import time\ndef f(clock=time.monotonic): return clock()", []),
    ],
)
def test_the_clock_finder_finds_calls_only(source: str, lines: list[int], tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert clock_calls(path) == lines
