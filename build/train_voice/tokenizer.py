"""The tokenizer of the voice: every word that it learns is one piece.

Contractions and hyphens are cut at their marks, as BERT's pre-tokenizer does. Other words fall
apart into letters, which have not been learnt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from checkpoint import CheckpointError
from tokenizer_file import BERT_TOKENS, CJK_PUNCTUATION, ascii_pieces
from tokenizers import Tokenizer

from train_voice.corpus import vocabulary, word_places

SPEAKER, NO_SPEAKER = "[spk_emb]", "[empty_spk]"
_PREFIX = ("[Stts]", SPEAKER, "[speed_5]")


def word_pieces() -> list[str]:
    """Return the pieces of the words of both languages."""
    pieces = [piece for word in vocabulary("en") for piece in re.findall("[a-z]+", word)]
    return list(dict.fromkeys([*pieces, *vocabulary("zh")]))


def base_vocabulary() -> list[str]:
    """Return all pieces without the control tokens."""
    marks = ["[PAD]", *BERT_TOKENS, *ascii_pieces(), *CJK_PUNCTUATION]
    return list(dict.fromkeys([*marks, *word_pieces()]))


@dataclass(frozen=True, slots=True)
class Prompt:
    """The text ids of one request, and where its words stand."""

    ids: Sequence[int]
    word_positions: Sequence[int]
    """Position of the last piece of each word: it has seen the word's other pieces."""


class VoiceTokenizer:
    """Reads a tokenizer.json.

    Raises:
        CheckpointError: that is none.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise CheckpointError(f"{path}: {error}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._suffix = [self.id("[Ptts]")]

    @property
    def size(self) -> int:
        """Number of ids."""
        return int(self._tokenizer.get_vocab_size(with_added_tokens=True))

    def vocabulary(self) -> dict[str, int]:
        """Return the id of every token."""
        return dict(self._tokenizer.get_vocab(with_added_tokens=True))

    def id(self, token: str) -> int:
        """Return the id of a token.

        Raises:
            KeyError: there is no such token.
        """
        found = self._tokenizer.token_to_id(token)
        if found is None:
            raise KeyError(token)
        return int(found)

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def prompt(self, text: str, has_speaker: bool) -> Prompt:
        """Return the prompt that has a text said, with or without a speaker in the slot."""
        prefix = [self.id(token) for token in _PREFIX]
        if not has_speaker:
            prefix[1] = self.id(NO_SPEAKER)
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        ends = {end: index for index, (_, end) in enumerate(encoding.offsets)}
        positions = [len(prefix) + ends[end] for _, end in word_places(text)]
        return Prompt([*prefix, *encoding.ids, *self._suffix], positions)
