"""score.py without a voice: windows, errors, and what it prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import score
from sounds import RATE, noise, write_wave


def test_short_samples_are_repeated_and_long_ones_heard_in_steps_of_a_second() -> None:
    (short,) = score.windows(np.arange(1000, dtype=np.float32))
    assert short.shape == (score.WINDOW,)
    assert (short[1000:2000] == short[:1000]).all()
    long = score.windows(np.arange(score.WINDOW + 2 * score.HOP, dtype=np.float32))
    assert [window[0] for window in long] == [0, score.HOP, 2 * score.HOP]
    assert {len(window) for window in long} == {score.WINDOW}


def test_any_rate_comes_out_at_that_of_the_network(tmp_path: Path) -> None:
    for rate in (8000, 24_000, 48_000):
        write_wave(tmp_path / "noise.wav", noise(rate / RATE, 0.1), rate)
        assert len(score.read(tmp_path / "noise.wav")) == pytest.approx(score.RATE, abs=2)


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").mkdir()
    write_wave(tmp_path / "a" / "noise.WAV", noise(1, 0.1))
    write_wave(tmp_path / "empty.wav", noise(0, 0.1))
    (tmp_path / "text.wav").write_text("no audio")
    (tmp_path / "readme.txt").write_text("not looked at")
    assert score.main([str(tmp_path)]) == 1
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    (file,) = found["files"]
    assert (file.pop("file"), file.pop("seconds")) == ("a/noise.WAV", 1.0)
    assert found["mean"] == file
    assert [
        str(tmp_path / name) in error
        for name, error in zip(("empty.wav", "text.wav"), found["errors"], strict=True)
    ] == [True, True]
    assert all(error in printed.err for error in found["errors"])
    assert "a/noise.WAV" in printed.err


def test_a_folder_without_files_and_a_missing_extra_are_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert score.main([str(tmp_path)]) == 1
    assert f"no WAV file in {tmp_path}" in capsys.readouterr().err
    write_wave(tmp_path / "noise.wav", noise(1, 0.1))
    monkeypatch.setitem(sys.modules, "speechmos", None)
    assert score.main([str(tmp_path)]) == 1
    assert "pip install '.[score]' in the checkout" in capsys.readouterr().err
