"""The prompts of the token model, and what a refine pass may change."""

from __future__ import annotations

import pytest
from chattts_pipeline.prompts import code_prompt, has_same_words, refine_prompt
from chattts_pipeline.tokens import split_style


def test_the_code_prompt_has_the_published_order() -> None:
    prompt = code_prompt(" hi ", style="[speed_5]", has_speaker=True, transcript="before")
    assert prompt == "[Stts][spk_emb]before[speed_5]hi[Ptts]"
    assert code_prompt("hi", style="", has_speaker=False) == "[Stts][empty_spk]hi[Ptts]"


def test_the_refine_prompt_takes_the_style_tokens_that_speech_does_not() -> None:
    speech, refine = split_style("[speed_3][oral_2][laugh_0][break_6]")
    assert speech == "[speed_3]"
    assert refine_prompt("hi ", refine) == "[Sbreak]hi[Pbreak][oral_2][laugh_0][break_6]"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Hello, world", "hello , [uv_break] world [laugh]", True),
        ("你好吗", "你 好 [lbreak] 吗", True),
        ("hello world", "hello like world", False),
        ("hello", "hello [Sbreak]", False),
        ("hello", "", False),
    ],
)
def test_refined_text_may_differ_in_tokens_spaces_and_case_only(
    one: str, other: str, same: bool
) -> None:
    assert has_same_words(one, other) is same
