"""The measurement of the front end's speed."""

from __future__ import annotations

import json
import random

import golden
import pytest
import text_speed


def test_the_measurement_prints_one_json_line_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tokenizer = golden.TINY / "asset" / "tokenizer" / "tokenizer.json"
    arguments = ["--tokenizer", str(tokenizer), "--lengths", "100", "300"]
    assert text_speed.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    found = json.loads(lines[-1])["ms_per_100_characters"]
    assert set(found) == {"100", "300"}
    assert all(value > 0 for value in found.values())


def test_the_same_seed_gives_the_same_text_of_the_length_asked_for() -> None:
    one, other = (text_speed.generate(500, random.Random(3)) for _ in range(2))
    assert one == other
    assert len(one) == 500
