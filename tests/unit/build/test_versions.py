"""Versions of a repository: side by side, each a copy of code and weights; one line serves them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import repository as layout
import stamp
from build_runs import run
from conftest import TINY_CHECKPOINT
from repository import MODELS, OWN_REPOSITORY, PYTHON_MODELS, RepositoryError

SECOND = ("--version", "2", "--precision", "int8")
CONFIG = b'name: "m"\n# why\nversion_policy { specific { versions: [ 1, 2 ] } }\ninput [ ]\n'


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in files
    }


def state_of(repository: Path, version: int) -> dict[str, dict[str, tuple[int, bytes]]]:
    return {model: state(repository / model / str(version)) for model in MODELS}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Version 1 in float32, version 2 in int8."""
    repository = tmp_path_factory.mktemp("versions") / "repository"
    assert run(repository) == 0
    assert run(repository, TINY_CHECKPOINT, *SECOND) == 0
    return repository


@pytest.fixture
def repository(built: Path, tmp_path: Path) -> Path:
    """A repository to change."""
    return Path(shutil.copytree(built, tmp_path / "repository"))


def names(folder: Path) -> set[str]:
    return {name for name in state(folder) if "weights" not in name and "__pycache__" not in name}


def test_a_later_version_leaves_the_first_and_what_is_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = tmp_path / "repository"
    assert run(repository) == 0
    first, configs = state_of(repository, 1), [layout.served(repository, m) for m in MODELS]
    assert run(repository, TINY_CHECKPOINT, *SECOND) == 0
    assert "version 2 built from tiny (int8, onnx)" in capsys.readouterr().out
    assert state_of(repository, 1) == first
    assert [layout.served(repository, m) for m in MODELS] == configs == [[1]] * len(MODELS)
    assert layout.built_versions(repository) == [1, 2]


def test_a_version_has_the_code_of_the_checkout_and_its_own_weights(built: Path) -> None:
    for model in PYTHON_MODELS:
        assert names(built / model / "2") == names(OWN_REPOSITORY / model / "1")
    checkpoints = [
        json.loads((built / layout.front_weights(version) / "checkpoint.json").read_text())
        for version in (1, 2)
    ]
    assert [checkpoint["precision"] for checkpoint in checkpoints] == ["fp32", "int8"]
    graphs = [(built / layout.gpt_weights(n) / "gpt.onnx").read_bytes() for n in (1, 2)]
    assert graphs[0] != graphs[1]


def test_a_server_start_would_write_no_byte_code(built: Path) -> None:
    for model in PYTHON_MODELS:
        for source in (built / model).rglob("*.py"):
            assert list((source.parent / "__pycache__").glob(f"{source.stem}.*.pyc")), source


def test_each_version_is_up_to_date_by_itself(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(repository)
    assert run(repository, TINY_CHECKPOINT, *SECOND) == 0
    assert run(repository) == 0
    assert capsys.readouterr().out.count("is up to date") == 2
    assert state(repository) == before


def test_code_that_is_gone_is_removed_from_the_built_version_alone(repository: Path) -> None:
    stale = [repository / f"chattts_gpt/{n}/chattts_engine/removed_module.py" for n in (1, 2)]
    for path in stale:
        path.write_text("old = 1\n")
    assert run(repository, TINY_CHECKPOINT, "--version", "2") == 0
    assert [path.exists() for path in stale] == [True, False]


def test_a_later_version_that_is_up_to_date_keeps_its_code(repository: Path) -> None:
    code = repository / "chattts" / "2" / "model.py"
    code.write_text("as_built = 1\n")
    assert run(repository, TINY_CHECKPOINT, *SECOND) == 0
    assert code.read_text() == "as_built = 1\n"
    assert run(repository, TINY_CHECKPOINT, "--version", "2") == 0
    assert code.read_bytes() == (OWN_REPOSITORY / "chattts" / "1" / "model.py").read_bytes()


def test_code_that_a_version_lost_comes_back(repository: Path) -> None:
    code = repository / "chattts_unary" / "2" / "model.py"
    code.unlink()
    assert run(repository, TINY_CHECKPOINT, *SECOND) == 0
    assert code.is_file()


def test_rebuilding_a_served_version_is_warned_of(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warning = "keeps the old one until its next start, also after a crash"
    for options in ((), SECOND, ("--version", "2"), ("--version", "3")):
        assert run(repository, TINY_CHECKPOINT, *options) == 0
        assert warning not in capsys.readouterr().err
    assert run(repository, TINY_CHECKPOINT, "--precision", "int8") == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert "warning: version 1 is served" in line
    assert warning in line


def test_building_the_first_version_again_changes_no_served_version(repository: Path) -> None:
    layout.serve(repository, "chattts", [2])
    assert run(repository, TINY_CHECKPOINT, "--precision", "int8") == 0
    assert layout.served(repository, "chattts") == [2]


def test_a_later_version_keeps_the_configuration(repository: Path) -> None:
    path = repository / "chattts" / "config.pbtxt"
    path.write_text(path.read_text().replace('"64"', '"32"'))
    edited = path.read_bytes()
    assert run(repository, TINY_CHECKPOINT, "--version", "3") == 0
    assert path.read_bytes() == edited


@pytest.mark.parametrize("version", ["0", "-1", "two"])
def test_a_version_is_a_number_from_1(version: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        run(tmp_path, TINY_CHECKPOINT, "--version", version)


def test_the_served_versions_are_one_line_of_the_configuration() -> None:
    assert layout.served_in(CONFIG) == [1, 2]
    changed = layout.with_served(CONFIG, {3})
    assert changed == CONFIG.replace(b"[ 1, 2 ]", b"[ 3 ]")
    assert layout.served_in(layout.with_served(changed, {10, 9})) == [9, 10]


@pytest.mark.parametrize("model", MODELS)
def test_the_configurations_of_this_checkout_serve_a_version(model: str) -> None:
    assert layout.served(OWN_REPOSITORY, model)


def test_another_policy_is_not_guessed_at(repository: Path) -> None:
    path = repository / "chattts" / "config.pbtxt"
    path.write_bytes(layout.with_served(path.read_bytes(), [1]).replace(b"version_policy", b"#"))
    with pytest.raises(RepositoryError, match="needs a line such as version_policy"):
        layout.served(repository, "chattts")


def test_writing_what_is_served_already_touches_nothing(repository: Path) -> None:
    path = repository / "chattts" / "config.pbtxt"
    before = path.stat().st_mtime_ns
    layout.serve(repository, "chattts", [1])
    assert path.stat().st_mtime_ns == before


def test_damage_is_named(repository: Path) -> None:
    def damage() -> str:
        return stamp.damage(repository, stamp.read_stamp(repository, 2))

    assert damage() == ""
    graph = repository / layout.vocoder_file(2)
    content = graph.read_bytes()
    graph.write_bytes(content[: len(content) // 2])
    assert damage() == f"{layout.vocoder_file(2)} is not as it was built"
    graph.unlink()
    assert damage() == f"{layout.vocoder_file(2)} is missing"
    (repository / layout.stamp_file(2)).unlink()
    assert damage() == "it was never built, or not to its end"
