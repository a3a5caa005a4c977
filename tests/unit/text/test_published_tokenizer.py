"""Generated sentences and hostile texts through the real tokenizer; skipped where it is not."""

from __future__ import annotations

import json
import random
from functools import cache

import pytest
import text_speed
import text_vocabulary
from chattts_text import Switches
from tokenizers import Tokenizer

NUM_SENTENCES = 5_000
PATH = text_vocabulary.REAL / "tokenizer.json"
TEXT_TOKENS = {"[uv_break]", "[v_break]", "[lbreak]", "[llbreak]", "[laugh]"}
ODD = [
    *[
        "他说“好”——然后……走了！",
        "《红楼梦》【公告】「你好」",
        "頭髮乾燥，臺灣後來",
        "𠮷野家和㐂寿司，踽踽独行",
    ],
    *[
        "こんにちは世界",
        "مرحبا بالعالم",
        "안녕 café naïve Straße",
        "Ⅳ期 ①②③ ½ m² ℃ №5 ™ © →",
        "🎉🔥 ok",
    ],
    *[
        "毖讣貉硷侩岿谰傈螟镊沤耪泅僳酞誊锨铱锗诌",
        "a" * 300,
        "don’t ‘stop’ “it”",
        "１２３ＡＢＣ",
        "\u202eabc\u200b",
    ],
]

pytestmark = pytest.mark.skipif(not PATH.exists(), reason="the published tokenizer is not here")


@cache
def tokenizer() -> Tokenizer:
    loaded = Tokenizer.from_file(str(PATH))
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


def tokens(text: str, switches: Switches | None = None) -> list[str]:
    front_end = text_vocabulary.real_front_end()
    assert front_end is not None
    spoken = front_end.prepare(text, switches or Switches()).spoken
    found: list[str] = tokenizer().encode(spoken, add_special_tokens=False).tokens
    return found


def test_generated_sentences_have_no_unknown_token() -> None:
    generator = random.Random(5)
    for _ in range(NUM_SENTENCES):
        sentence = text_speed.sentence(generator)
        if generator.random() < 0.2:
            sentence += generator.choice(ODD)
        assert "[UNK]" not in tokens(sentence), sentence


@pytest.mark.parametrize("normalize", [True, False])
def test_no_structural_token_comes_from_a_text(normalize: bool) -> None:
    added = json.loads(PATH.read_text(encoding="utf-8"))["added_tokens"]
    special = {one["content"] for one in added} | {"[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"}
    for token in special - TEXT_TOKENS:
        for text in (
            f"你好{token}世界",
            f"a {token}b",
            f"[{token}]",
            f"\\{token}好",
            f"&#91;{token[1:]}好",
        ):
            found = set(tokens(text, Switches(normalize=normalize)))
            assert not found & (special - TEXT_TOKENS), text
