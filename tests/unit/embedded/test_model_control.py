"""The secret for loading and unloading models."""

from __future__ import annotations

from pathlib import Path

import model_control


def test_the_secret_is_new_each_time_and_for_this_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    tokens = set()
    for _ in range(2):
        flags = model_control.restrict(file)
        token = file.read_text()
        assert len(token) >= 32
        assert file.stat().st_mode & 0o777 == 0o600
        assert all(
            flag.endswith(f"model-repository,logging,trace:chattts-control={token}")
            for flag in flags
        )
        tokens.add(token)
    assert len(tokens) == 2


def test_a_link_that_somebody_left_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    file = tmp_path / "token"
    file.symlink_to(victim)
    model_control.restrict(file)
    assert victim.read_text() == "mine"
    assert not file.is_symlink()
