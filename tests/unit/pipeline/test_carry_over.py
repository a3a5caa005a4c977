"""What of a segment later ones continue from."""

from __future__ import annotations

import numpy as np
import pytest
from chattts_pipeline.carry_over import MAX_STEPS, carried_over
from numpy.typing import NDArray


def codes(num_steps: int) -> list[NDArray[np.int32]]:
    whole = np.arange(num_steps * 4, dtype=np.int32).reshape(-1, 4)
    return np.array_split(whole, 3)


@pytest.mark.parametrize("num_steps", [1, 100, MAX_STEPS])
def test_a_short_segment_is_carried_over_whole(num_steps: int) -> None:
    prompt = carried_over(codes(num_steps), "早上好。")
    assert prompt.codes is not None
    assert np.array_equal(prompt.codes, np.concatenate(codes(num_steps)))
    assert prompt.transcript == "早上好。"


@pytest.mark.parametrize(
    ("text", "transcript"),
    [
        ("今天天气真的很好。", "真的很好。"),
        ("several long words here", " words here"),
        ("so it is [uv_break] now", " now"),
        ("incomprehensibilities", ""),
    ],
)
def test_of_a_long_one_the_end_with_its_share_of_the_text(text: str, transcript: str) -> None:
    prompt = carried_over(codes(2 * MAX_STEPS), text)
    assert prompt.codes is not None
    assert np.array_equal(prompt.codes, np.concatenate(codes(2 * MAX_STEPS))[-MAX_STEPS:])
    assert prompt.transcript == transcript
