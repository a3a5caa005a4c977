"""Make the tokenizer files of an untrained checkpoint: BERT WordPiece with our own vocabulary.

The vocabulary of the published checkpoint is not ours to ship; these have the same form, the
control tokens in the same order at the end, and for the published size the same ids for them.
"""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

from files import write_json
from layout import SPECIAL_TOKENS

PREFIX = "##"
"""Marks a piece that continues a word."""
BERT_TOKENS = ("[UNK]", "[CLS]", "[SEP]", "[MASK]")
NUM_UNUSED = 99
"""Placeholder entries between [PAD] and [UNK] in a vocabulary of the published form."""
CJK_PUNCTUATION = "，。、；：？！“”‘’（）《》【】…—"
FIRST_HANZI, LAST_HANZI = 0x4E00, 0x9FFF
MAX_LENGTH = 256
"""Truncation and padding that the published file carries, and that a reader must switch off."""

COMMON_HANZI = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子"
    "说产种面而方后多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加量都两体制机当"
    "使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形相全表间样与关各重新线内数正心反你"
    "明看原又么利比或但质气第向道命此变条只没结解问意建月公无系军很情者最立代想已通并提直题党程展五果"
    "料象员革位入常文总次品式活设及管特件长求老头基资边流路级少图山统接知较将组见计别她手角期根论运农"
    "指几九区强放决西被干做必战先回则任取据处队南给色光门即保治北造百规热领七海口东导器压志世金增争济"
    "阶油思术极交受联什认六共权收证改清己美再采转更单风切打白教速花带安场身车例真务具万每目至达走积示"
    "议声报斗完类八离华名确才科张信马节话米整空元况今集温传土许步群广石记需段研界拉林律叫且究观越织装"
    "您好谢请对欢迎使服语音早晚吗呢吧见朋友喜晴雨雪饭茶店票站钱买卖房左右号错零"
)


def ascii_pieces() -> list[str]:
    """Return the ASCII marks, digits and letters, and those that continue a word."""
    alphabet = string.digits + string.ascii_lowercase
    return [*string.punctuation, *alphabet, *(PREFIX + letter for letter in alphabet)]


def small_vocabulary() -> list[str]:
    """Return a base vocabulary of some hundred entries: ASCII and common Chinese characters."""
    pieces = ["[PAD]", *BERT_TOKENS, *ascii_pieces(), *CJK_PUNCTUATION, *COMMON_HANZI]
    return list(dict.fromkeys(pieces))


def published_form_vocabulary(size: int) -> list[str]:
    """Return a base vocabulary of `size` entries with [PAD] 0 and [UNK] 100 as published.

    After the placeholders come ASCII and Chinese punctuation, then the CJK block in code order.
    """
    unused = [f"[unused{i}]" for i in range(1, NUM_UNUSED + 1)]
    pieces = ["[PAD]", *unused, *BERT_TOKENS, *ascii_pieces(), *CJK_PUNCTUATION]
    pieces += [chr(code) for code in range(FIRST_HANZI, LAST_HANZI + 1)]
    if len(pieces) < size:
        pieces += [f"[filler{i}]" for i in range(size - len(pieces))]
    return pieces[:size]


def _added_token(content: str, token_id: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token_id, "content": content, **flags, "special": True}


def tokenizer_json(vocabulary: list[str]) -> dict[str, Any]:
    """Return the content of tokenizer.json for a base vocabulary and the control tokens."""
    ids = {piece: index for index, piece in enumerate(vocabulary)}
    added = [_added_token(token, ids[token]) for token in ("[PAD]", *BERT_TOKENS)]
    added += [_added_token(token, len(ids) + i) for i, token in enumerate(SPECIAL_TOKENS)]
    return {
        "version": "1.0",
        "truncation": {
            "direction": "Right",
            "max_length": MAX_LENGTH,
            "strategy": "LongestFirst",
            "stride": 0,
        },
        "padding": {
            "strategy": {"Fixed": MAX_LENGTH},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": ids["[PAD]"],
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
        "added_tokens": added,
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": PREFIX, "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": PREFIX,
            "max_input_chars_per_word": 100,
            "vocab": ids,
        },
    }


def write_tokenizer(folder: Path, vocabulary: list[str]) -> None:
    """Write the three tokenizer files of the published layout into `folder`."""
    content = tokenizer_json(vocabulary)
    names = {f"{token[1:-1].lower()}_token": token for token in ("[PAD]", *BERT_TOKENS)}
    special = {**names, "additional_special_tokens": list(SPECIAL_TOKENS)}
    decoder = {
        str(token["id"]): {key: value for key, value in token.items() if key != "id"}
        for token in content["added_tokens"]
    }
    config = {
        **special,
        "added_tokens_decoder": decoder,
        "do_lower_case": True,
        "clean_up_tokenization_spaces": True,
        "tokenizer_class": "BertTokenizer",
    }
    write_json(folder / "tokenizer.json", content)
    write_json(folder / "tokenizer_config.json", config)
    write_json(folder / "special_tokens_map.json", special)
