"""Which words a checkpoint knows, and reading a refine pass."""

from __future__ import annotations

from pathlib import Path

import golden
import pytest
from chattts_pipeline.vocabulary import Vocabulary, outside_vocabulary_warning
from tokenizers import Tokenizer

TOKENIZER = golden.TINY / "asset" / "tokenizer" / "tokenizer.json"


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "domain_words.txt"
    path.write_text("hello Anna don't today\n你好吗\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("Hello ANNA, don't [laugh] today!", []),
        ("你好吗？[uv_break]", []),
        ("hello bob and bob", ["bob", "and"]),
        ("你们好", ["们"]),
        ("hello 42 today", ["42"]),
        ("你bob好", ["bob"]),
        ("hello 😀 anna, 5 % & @", ["5", "😀", "%", "&", "@"]),
        ("“hello” (anna) - today… 你好，吗！", []),
    ],
)
def test_words_that_the_voice_does_not_know_are_listed_once(
    words: Path, text: str, unknown: list[str]
) -> None:
    assert Vocabulary(TOKENIZER, words).unknown_words(text) == unknown


def test_without_a_word_list_the_tokenizer_decides(tmp_path: Path) -> None:
    vocabulary = Vocabulary(TOKENIZER, tmp_path / "none.txt")
    assert vocabulary.unknown_words("hello [laugh] world") == []
    assert vocabulary.unknown_words("hello \U00020bb7 \U00020bb7 好") == ["\U00020bb7"]


def test_the_warning_shows_ten_words() -> None:
    few = outside_vocabulary_warning(["a", "b"])
    assert few["code"] == "outside_vocabulary"
    assert ": a, b;" in few["message"]
    many = outside_vocabulary_warning([f"w{index}" for index in range(13)])
    assert "w9 and 3 more" in many["message"]
    assert "w10" not in many["message"]


def test_style_tokens_are_dropped_from_refined_text(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    names = ["hello", "[uv_break]", "world", "[break_3]", "[speed_5]", "[laugh]"]
    ids = [tokenizer.token_to_id(name) for name in names]
    decoded = Vocabulary(TOKENIZER, tmp_path / "none.txt").decode_refined(ids)
    assert decoded == "hello [uv_break] world [laugh]"
