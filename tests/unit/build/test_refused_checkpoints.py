"""The build command refuses what it cannot build, in one sentence that names it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import layout
import pytest
from build_runs import read_json, run
from conftest import DEMO_CHECKPOINT, TINY_CHECKPOINT
from make_checkpoint import make_sizes, write_checkpoint


def test_int8_is_refused_for_torch(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(tmp_path, TINY_CHECKPOINT, "--runner", "torch", "--precision", "int8")


def test_a_folder_without_a_checkpoint_is_named_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "repository", tmp_path / "nowhere") == 1
    assert "no checkpoint there, asset/gpt/config.json" in capsys.readouterr().err
    assert not (tmp_path / "repository").exists()


def test_a_head_size_that_the_runtime_refuses_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = make_sizes(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], 48, 64, 1, 2, (16, 8, 1),
                       (16, 16, 8, 1), (16, 32, 1))  # fmt: skip
    write_checkpoint(tmp_path / "odd", sizes, seed=0)
    assert run(tmp_path / "repository", tmp_path / "odd") == 1
    assert "head_dim: 24 is no multiple of 16" in capsys.readouterr().err


DEMO_VOICE = (DEMO_CHECKPOINT / "voices/en.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("voices.json", "{}", "voices.json: each voice is a file of its own now"),
        ("voices/en.json", "[", "voices/en.json: not UTF-8 JSON"),
        ("voices/en.json", "{}", "voices/en.json: format: is missing"),
        ("voices/bo.json", DEMO_VOICE, "voices/bo.json: name: 'en'"),
        ("voices/en.json", DEMO_VOICE, "which are 256 values; allowed: a speaker string of 64"),
    ],
)
def test_voices_that_do_not_fit_are_refused(
    file: str, content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = Path(shutil.copytree(TINY_CHECKPOINT, tmp_path / "tiny"))
    (checkpoint / "voices").mkdir()
    (checkpoint / file).write_text(content, encoding="utf-8")
    assert run(tmp_path / "repository", checkpoint) == 1
    assert message in capsys.readouterr().err


def drop_control_token(tokenizer: dict[str, Any]) -> None:
    tokenizer["added_tokens"] = [
        token for token in tokenizer["added_tokens"] if token["content"] != "[Ptts]"
    ]


def add_token(tokenizer: dict[str, Any]) -> None:
    tokenizer["model"]["vocab"]["zzz"] = 223


def drop_model(tokenizer: dict[str, Any]) -> None:
    del tokenizer["model"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_control_token, "control tokens missing: [Ptts]"),
        (add_token, "id 223, but only 223 text embeddings"),
        (drop_model, "not a WordPiece tokenizer file"),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_refused(
    change: Callable[[dict[str, Any]], None],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    checkpoint = Path(shutil.copytree(TINY_CHECKPOINT, tmp_path / "tiny"))
    path = checkpoint / layout.TOKENIZER_FILE
    tokenizer = read_json(path)
    change(tokenizer)
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    assert run(tmp_path / "repository", checkpoint) == 1
    assert message in capsys.readouterr().err
