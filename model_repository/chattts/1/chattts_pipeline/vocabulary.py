"""Which words the checkpoint can speak, and what the ids of a refine pass say."""

import re
from collections.abc import Sequence
from pathlib import Path

from chattts_text.language import HAN
from chattts_text.tokens import without_tokens
from tokenizers import Tokenizer

MAX_WORDS_SHOWN = 10

_FIRST_STYLE_TOKEN = "[break_0]"
_UNKNOWN_TOKEN = "[UNK]"
_WORD = re.compile(rf"[{HAN}]|\d+|(?:(?![{HAN}])[^\W\d_])+(?:'[^\W\d_]+)*")
_SYMBOL = re.compile(r"[^\w\s]|_")
_MARKS = frozenset(",.!?;:'\"()-，。！？；：、…“”‘’（）《》—")
"""Punctuation that is read as a pause or not at all; any other symbol is not spoken as written."""


class Vocabulary:
    """The words of a checkpoint.

    Args:
        tokenizer_path: tokenizer.json.
        words_path: List of the words a limited voice knows. None, or no such file: every word that
            the tokenizer knows counts.

    Raises:
        ValueError: The tokenizer lacks the control tokens of ChatTTS.
    """

    def __init__(self, tokenizer_path: Path, words_path: Path | None = None) -> None:
        self._tokenizer = Tokenizer.from_file(str(tokenizer_path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        first_style_id = self._tokenizer.token_to_id(_FIRST_STYLE_TOKEN)
        if first_style_id is None:
            raise ValueError(f"{tokenizer_path}: {_FIRST_STYLE_TOKEN} is missing")
        self._first_style_id = int(first_style_id)
        self._words = _read_words(words_path) if words_path and words_path.exists() else None

    def has(self, text: str) -> bool:
        """Say whether the tokenizer knows every piece of `text`."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return _UNKNOWN_TOKEN not in encoding.tokens

    def unknown_words(self, text: str) -> list[str]:
        """List the words, then the symbols, that the checkpoint does not know, each once."""
        text = without_tokens(text, " ")
        words = self._unlisted(text, self._words) if self._words else self._untokenized(text)
        return list(dict.fromkeys(words))

    def decode_refined(self, token_ids: Sequence[int]) -> str:
        """Decode the ids of a refine pass; style tokens are dropped, text tokens stay.

        Args:
            token_ids: Ids of mode text.

        Returns:
            Lower-case text with spaces between Han characters and around tokens.
        """
        kept = [int(token) for token in token_ids if token < self._first_style_id]
        return str(self._tokenizer.decode(kept, skip_special_tokens=False))

    @staticmethod
    def _unlisted(text: str, known: frozenset[str]) -> list[str]:
        words = [word.lower() for word in _WORD.findall(text)]
        symbols = [symbol for symbol in _SYMBOL.findall(text) if symbol not in _MARKS]
        return [word for word in words if word.isdecimal() or word not in known] + symbols

    def _untokenized(self, text: str) -> list[str]:
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        pairs = zip(encoding.tokens, encoding.offsets, strict=True)
        return [text[start:end] for token, (start, end) in pairs if token == _UNKNOWN_TOKEN]


def outside_vocabulary_warning(words: Sequence[str]) -> dict[str, str]:
    """Build the warning about words that the checkpoint does not know.

    Args:
        words: At least one word.
    """
    shown = ", ".join(words[:MAX_WORDS_SHOWN])
    more = f" and {len(words) - MAX_WORDS_SHOWN} more" if len(words) > MAX_WORDS_SHOWN else ""
    message = f"not in this checkpoint's vocabulary: {shown}{more}; expect wrong speech there"
    return {"code": "outside_vocabulary", "message": message}


def _read_words(path: Path) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(path.read_text(encoding="utf-8")))
