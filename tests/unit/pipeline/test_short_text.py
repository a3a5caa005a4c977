"""How long the speech of a text of a few letters must be at least."""

from __future__ import annotations

import pytest
from chattts_pipeline.short_text import STEPS_PER_SYLLABLE, min_steps


@pytest.mark.parametrize(
    ("text", "num_syllables"),
    [
        ("嗯。", 1),
        ("好的！", 2),
        ("𠮷野家", 3),
        ("yes", 1),
        ("OK", 1),
        ("Ida", 2),
        ("hm", 1),
        ("A B C", 3),
        ("嗯[laugh]", 1),
        ("[uv_break] 是 no", 2),
        ("好的好的", 0),
        ("hello", 0),
        ("...", 0),
        ("[laugh]", 0),
        ("", 0),
    ],
)
def test_each_syllable_of_one_to_three_letters_takes_some_steps(
    text: str, num_syllables: int
) -> None:
    assert min_steps(text) == STEPS_PER_SYLLABLE * num_syllables
