"""Which voices a version of a repository gets from a build, and what a rebuild does to them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import repository as layout
import stamp
from build_runs import read_json, run
from checkpoint import CheckpointError
from conftest import DEMO_CHECKPOINT, TINY_CHECKPOINT
from release_steps import check_complete
from voice_copies import SHIPPED, find_voices, plan_voices
from voice_samples import voice, write

VOICES = layout.front_voices(1)
SIX = {path.name for path in SHIPPED.glob("*.json")}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version with a voice of its caller's, which is the default."""
    folder = tmp_path_factory.mktemp("voices")
    write(folder, voice("anna", aliases=["alloy"]))
    repository = folder / "repository"
    options = ("--voices", str(folder), "--default-voice", "anna")
    assert run(repository, TINY_CHECKPOINT, *options) == 0
    return repository


@pytest.fixture
def repository(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "repository"))


def in_version(repository: Path) -> set[str]:
    return {path.name for path in (repository / VOICES).iterdir()}


def own(folder: Path, *voices: dict[str, Any]) -> Path:
    folder.mkdir()
    for fields in voices:
        write(folder, fields)
    return folder


def test_own_voices_and_the_default_are_built_in(built: Path) -> None:
    assert in_version(built) == {"anna.json"}
    facts = read_json(built / layout.front_weights(1) / "checkpoint.json")
    assert facts["default_voice"] == "anna"


def test_a_checkpoint_of_published_size_gets_the_six_that_ship(tmp_path: Path) -> None:
    plan = plan_voices(find_voices(tmp_path, [], ""), tmp_path, 1, {}, hidden_size=768)
    assert set(plan.write) == SIX
    assert plan.default == "amber"
    plan = plan_voices(find_voices(tmp_path, [], "none"), tmp_path, 1, {}, hidden_size=768)
    assert plan.default == ""
    assert len(SIX) == 6


def test_the_demo_gets_its_own(tmp_path: Path) -> None:
    own = {path.name for path in (DEMO_CHECKPOINT / "voices").iterdir()}
    assert {"en.json", "zh.json"} <= own
    plan = plan_voices(find_voices(DEMO_CHECKPOINT, [], "en"), tmp_path, 1, {}, hidden_size=256)
    assert (set(plan.write), plan.default) == (own, "en")


def test_a_version_without_voices_still_has_their_folder(tmp_path: Path) -> None:
    assert run(tmp_path) == 0
    assert in_version(tmp_path) == set()


def test_own_voices_replace_others_of_the_same_name(tmp_path: Path) -> None:
    folder = own(tmp_path / "own", voice("amber", description="mine"))
    sources = find_voices(tmp_path, [folder], "")
    assert sources.files["amber.json"] == folder / "amber.json"


@pytest.mark.parametrize(
    ("voices", "default", "message"),
    [
        ([voice("a", aliases=["x"]), voice("b", aliases=["x"])], "", "b.json: 'x' already names"),
        ([voice("a", aliases=["b"]), voice("b")], "", "b.json: 'b' already names"),
        ([voice("a", gender="?")], "", "a.json: gender: '?'; allowed"),
        ([voice("a")], "c", "default voice: 'c'; allowed: a"),
    ],
)
def test_voices_that_a_server_would_refuse_are_refused(
    tmp_path: Path, voices: list[dict[str, Any]], default: str, message: str
) -> None:
    sources = find_voices(tmp_path, [own(tmp_path / "own", *voices)], default)
    with pytest.raises(CheckpointError) as refused:
        plan_voices(sources, tmp_path, 1, {}, hidden_size=64)
    assert message in str(refused.value)


def test_a_folder_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "models", TINY_CHECKPOINT, "--voices", str(tmp_path / "none")) == 1
    assert "none: no such folder of voices" in capsys.readouterr().err


def test_voices_may_change_without_making_the_version_incomplete(
    repository: Path, built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository / VOICES, voice("bo"))
    write(repository / VOICES, voice("anna", description="changed"))
    check_complete(repository, 1)
    options = ("--voices", str(built.parent), "--default-voice", "anna")
    assert run(repository, TINY_CHECKPOINT, *options) == 0
    assert "is up to date" in capsys.readouterr().out
    assert in_version(repository) == {"anna.json", "bo.json"}


def test_a_rebuild_removes_what_it_built_before_and_leaves_what_came_since(
    repository: Path,
) -> None:
    write(repository / VOICES, voice("bo"))
    assert run(repository) == 0
    assert in_version(repository) == {"bo.json"}
    assert stamp.damage(repository, stamp.read_stamp(repository, 1)) == ""


def test_a_rebuild_leaves_a_voice_that_somebody_changed(repository: Path) -> None:
    write(repository / VOICES, voice("anna", description="changed"))
    assert run(repository) == 0
    assert in_version(repository) == {"anna.json"}


def test_a_voice_with_which_no_server_would_start_is_named_before_anything_is_written(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository / VOICES, voice("bo", kind="x"))
    before = (repository / layout.stamp_file(1)).read_bytes()
    assert run(repository) == 1
    assert "bo.json: kind: 'x'; allowed: speaker, audio_prompt; move it" in capsys.readouterr().err
    assert (repository / layout.stamp_file(1)).read_bytes() == before
