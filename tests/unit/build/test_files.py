"""Atomic writing."""

from __future__ import annotations

from pathlib import Path

import pytest
from files import atomic_path, sha256, write_bytes, write_json


def write_half(target: Path) -> None:
    with atomic_path(target) as temporary:
        temporary.write_bytes(b"half")
        raise KeyboardInterrupt


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_bytes(target, b"old")
    with pytest.raises(KeyboardInterrupt):
        write_half(target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_folders_are_made_and_text_is_utf_8(tmp_path: Path) -> None:
    write_json(tmp_path / "a" / "b.json", {"text": "你好"})
    assert (tmp_path / "a" / "b.json").read_text(encoding="utf-8") == '{\n "text": "你好"\n}\n'


def test_the_hash_is_the_well_known_one(tmp_path: Path) -> None:
    write_bytes(tmp_path / "empty", b"")
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert sha256(tmp_path / "empty") == digest
