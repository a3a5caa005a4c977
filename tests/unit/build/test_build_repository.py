"""The build command: complete or untouched, current or rebuilt, and the same for any sizes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import build_repository
import gpt_graph
import layout
import numpy as np
import pytest
import selfcheck
import stamp
from build_repository import STAGING
from build_runs import read_json, run
from checkpoint import Checkpoint
from conftest import DEMO_CHECKPOINT, ROOT, TINY_CHECKPOINT
from golden import TINY_ARRAYS, assert_close
from make_checkpoint import make_sizes, write_checkpoint
from repository import OWN_REPOSITORY, stamp_file
from safetensors.numpy import load_file
from tokenizer_file import published_form_vocabulary

GPT = "chattts_gpt/1/weights"
FRONT = "chattts/1/weights"
MODELS = ["chattts", "chattts_gpt", "chattts_unary", "chattts_vocoder"]


def state(repository: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in repository.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(repository)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in files
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("built") / "repository"
    assert run(repository) == 0
    return repository


@pytest.fixture
def repository(built: Path, tmp_path: Path) -> Path:
    """A built repository to change."""
    return Path(shutil.copytree(built, tmp_path / "repository"))


def test_a_new_folder_becomes_a_complete_repository(built: Path) -> None:
    assert sorted(path.name for path in built.iterdir()) == MODELS
    for model in MODELS:
        source = OWN_REPOSITORY / model / "config.pbtxt"
        assert (built / model / "config.pbtxt").read_bytes() == source.read_bytes()
    assert not list(built.rglob("*.tmp"))
    assert not (built / FRONT / STAGING).exists()


def test_files_can_be_read_by_another_user(built: Path) -> None:
    modes = {path.stat().st_mode & 0o777 for path in built.rglob("*") if path.is_file()}
    plain = os.umask(0)
    os.umask(plain)
    assert all(mode | plain == 0o666 | plain for mode in modes)


def test_the_configurations_tell_the_sizes(built: Path) -> None:
    gpt = read_json(built / GPT / "gpt_config.json")
    assert gpt == {
        "format": 1,
        "checkpoint": "tiny",
        "untrained": False,
        "precision": "fp32",
        "runner": "onnx",
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_layers": 3,
        "num_heads": 4,
        "head_dim": 16,
        "num_codebooks": 4,
        "num_audio_tokens": 626,
        "num_text_tokens": 223,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
    }
    front = read_json(built / FRONT / "checkpoint.json")
    assert front.pop("special_tokens") == list(layout.SPECIAL_TOKENS)
    vocoder = selfcheck.open_session(built / "chattts_vocoder/1/model.onnx")
    facts = vocoder.get_modelmeta().custom_metadata_map
    assert facts["state_size"] == str(front.pop("vocoder_state_size"))
    assert facts["context_steps"] == str(front["context_steps"])
    assert front == {
        "format": 1,
        "checkpoint": "tiny",
        "untrained": False,
        "precision": "fp32",
        "sample_rate": 24000,
        "hidden_size": 64,
        "samples_per_step": 512,
        "context_steps": 13,
        "segment_seconds": 20.0,
        "default_voice": "",
    }


def test_embeddings_are_those_of_the_checkpoint(built: Path) -> None:
    tables = load_file(built / GPT / "embeddings.safetensors")
    embed = Checkpoint.open(TINY_CHECKPOINT).load("Embed")
    np.testing.assert_array_equal(tables["emb_text"], embed["emb_text.weight"])
    for codebook in range(layout.NUM_CODEBOOKS):
        wanted = embed[f"emb_code.{codebook}.weight"]
        np.testing.assert_array_equal(tables["emb_code"][codebook], wanted)


def test_the_demo_brings_its_voices_and_words(tmp_path: Path) -> None:
    assert run(tmp_path, DEMO_CHECKPOINT, "--precision", "int8") == 0
    voices = sorted((DEMO_CHECKPOINT / "voices").iterdir())
    assert len(voices) >= 2
    copied = sorted((tmp_path / FRONT / "voices").iterdir())
    assert [path.name for path in copied] == [path.name for path in voices]
    assert [path.read_bytes() for path in copied] == [path.read_bytes() for path in voices]
    words = (tmp_path / FRONT / "domain_words.txt").read_bytes()
    assert words == (DEMO_CHECKPOINT / "domain_words.txt").read_bytes()
    assert read_json(tmp_path / GPT / "gpt_config.json")["precision"] == "int8"


def test_the_torch_runner_gets_plain_weights_and_no_graphs(repository: Path) -> None:
    assert run(repository, TINY_CHECKPOINT, "--runner", "torch") == 0
    names = {path.name for path in (repository / GPT).iterdir()}
    assert names == {
        "embeddings.safetensors",
        "gpt.safetensors",
        "gpt_config.json",
        "tokenizer.json",
    }
    weights = load_file(repository / GPT / "gpt.safetensors")
    hidden = TINY_ARRAYS["prefill_hidden_0"][-1]
    logits = [hidden @ weights[f"head_code.{i}.weight"].T for i in range(4)]
    assert_close(np.stack(logits), TINY_ARRAYS["prefill_logits_0"])
    assert weights["head_text.weight"].shape == (223, 64)
    shapes = layout.gpt_tensors(Checkpoint.open(TINY_CHECKPOINT).gpt)
    assert {name: weights[name].shape for name in shapes} == shapes


def test_a_second_run_changes_nothing(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state(repository)
    assert run(repository) == 0
    assert "up to date" in capsys.readouterr().out
    assert state(repository) == before


def test_a_touched_checkpoint_is_recognised_by_its_content(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = Path(shutil.copytree(TINY_CHECKPOINT, tmp_path / "tiny"))
    os.utime(checkpoint / layout.CONFIG_FILE, (1, 1))
    assert run(repository, checkpoint) == 0
    assert "up to date" in capsys.readouterr().out


def remove_output(repository: Path, _: Path) -> None:
    (repository / "chattts_vocoder/1/model.onnx").unlink()


def damage_output(repository: Path, _: Path) -> None:
    with (repository / GPT / "gpt.onnx").open("r+b") as file:
        file.write(b"\0\0\0\0")


def change_checkpoint(_: Path, checkpoint: Path) -> None:
    (checkpoint / "domain_words.txt").write_text("a b c", encoding="utf-8")


def mark_untrained(_: Path, checkpoint: Path) -> None:
    (checkpoint / layout.UNTRAINED_FILE).touch()


def break_stamp(repository: Path, _: Path) -> None:
    (repository / stamp_file(1)).write_text("{", encoding="utf-8")


@pytest.mark.parametrize(
    "change", [remove_output, damage_output, change_checkpoint, mark_untrained, break_stamp]
)
def test_any_change_causes_a_rebuild(
    change: Callable[[Path, Path], None],
    repository: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    checkpoint = Path(shutil.copytree(TINY_CHECKPOINT, tmp_path / "tiny"))
    change(repository, checkpoint)
    assert run(repository, checkpoint) == 0
    assert "built from tiny" in capsys.readouterr().out
    assert run(repository, checkpoint) == 0
    assert "up to date" in capsys.readouterr().out


def test_new_build_code_causes_a_rebuild(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stamp, "code_version", lambda: "another")
    assert run(repository) == 0
    assert "built from tiny" in capsys.readouterr().out


def test_a_graph_that_computes_something_else_changes_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_gpt = gpt_graph.write_gpt

    def wrong(sizes: Any, tensors: Any, *options: Any) -> bytes:
        return write_gpt(sizes, {name: value * 1.001 for name, value in tensors.items()}, *options)

    monkeypatch.setattr(gpt_graph, "write_gpt", wrong)
    monkeypatch.setattr(stamp, "code_version", lambda: "another")
    before = state(repository)
    assert run(repository) == 1
    assert "gpt.onnx: differs from the reference by" in capsys.readouterr().err
    assert state(repository) == before


def test_saturating_int8_would_be_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    quantize = gpt_graph.quantize_blocks

    def saturating(weight: Any) -> Any:
        levels, scale = quantize(weight)
        return np.clip(levels, 128 - 40, 128 + 40).astype(np.uint8), scale

    monkeypatch.setattr(gpt_graph, "quantize_blocks", saturating)
    assert run(tmp_path / "repository", TINY_CHECKPOINT, "--precision", "int8") == 1


def test_ctrl_c_while_writing_changes_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(selfcheck, "check_vocoder", interrupt)
    before = state(repository)
    assert run(repository, TINY_CHECKPOINT, "--precision", "int8") == 130
    assert "interrupted" in capsys.readouterr().err
    assert state(repository) == before


@pytest.mark.parametrize("moment", ["artifacts.RepositoryWriter._head_files", "stamp.write_stamp"])
def test_a_killed_build_is_never_taken_for_complete(moment: str, repository: Path) -> None:
    module, _, name = moment.partition(".")
    program = (
        "import os, signal, sys, artifacts, stamp, build_repository\n"
        f"sys.modules[{module!r}].{name} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "build_repository.main(sys.argv[1:])"
    )
    arguments = ["--checkpoint", str(TINY_CHECKPOINT), "--output", str(repository)]
    killed = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--precision", "int8"],
        cwd=ROOT / "build",
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert sorted(path.name for path in repository.iterdir()) == MODELS
    inputs = stamp.read_stamp(repository, 1).get("inputs", {})
    assert inputs.get("precision") != "int8"
    assert run(repository, TINY_CHECKPOINT, "--precision", "int8") == 0
    assert stamp.read_stamp(repository, 1)["inputs"]["precision"] == "int8"
    assert not (repository / FRONT / STAGING).exists()
    assert not list(repository.rglob("*.tmp"))


def test_two_builds_of_one_repository_do_not_mix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with build_repository.staging(tmp_path, 1):
        assert run(tmp_path) == 1
    assert "another build is writing version 1" in capsys.readouterr().err
    assert run(tmp_path) == 0


def test_source_follows_the_checkout(repository: Path) -> None:
    stale = repository / "chattts_gpt/1/chattts_engine/removed_module.py"
    stale.write_text("old", encoding="utf-8")
    changed = repository / "chattts/config.pbtxt"
    changed.write_text("edited", encoding="utf-8")
    assert run(repository) == 0
    assert not stale.exists()
    assert changed.read_bytes() == (OWN_REPOSITORY / "chattts/config.pbtxt").read_bytes()


def test_a_folder_that_would_stop_the_server_is_named(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "__pycache__").mkdir()
    assert run(repository) == 1
    assert "__pycache__: not a model" in capsys.readouterr().err


def test_a_checkpoint_of_other_sizes_takes_the_same_path(tmp_path: Path) -> None:
    checkpoint, repository = tmp_path / "odd", tmp_path / "repository"
    sizes = make_sizes(
        published_form_vocabulary(21_128), 96, 200, 4, 6, decoder=(40, 24, 3),
        dvae=(24, 36, 20, 2), vocos=(56, 104, 3),
    )  # fmt: skip
    write_checkpoint(checkpoint, sizes, seed=11)
    assert run(repository, checkpoint) == 0
    config = read_json(repository / GPT / "gpt_config.json")
    assert (config["hidden_size"], config["num_heads"], config["num_layers"]) == (96, 6, 4)
    assert (config["num_text_tokens"], config["untrained"]) == (21_178, True)
    front = read_json(repository / FRONT / "checkpoint.json")
    assert front["untrained"]
    # 3 edge convolutions, 3 blocks of reach 6, 4 Vocos convolutions of reach 3: 33 frames
    assert front["context_steps"] == 18
    assert run(repository, checkpoint, "--precision", "int8") == 0
    assert run(repository, checkpoint, "--runner", "torch") == 0
