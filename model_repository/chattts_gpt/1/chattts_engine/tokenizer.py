"""Tokenizer: decorated prompt text to token ids, control tokens by name.

A BERT WordPiece tokenizer read from tokenizer.json, without [CLS] and [SEP]; truncation and
padding, which the published file switches on, are switched off.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray

SPEAKER_TOKEN = "[spk_emb]"
END_OF_TEXT_TOKEN = "[Ebreak]"


class Tokenizer:
    """Text to ids and back."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.speaker_id = self._control_id(SPEAKER_TOKEN)
        self.end_of_text_id = self._control_id(END_OF_TEXT_TOKEN)

    def encode(self, text: str) -> NDArray[np.int64]:
        """Return the (T,) ids of a text; control tokens become one id each."""
        return np.array(self._tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int64)

    def _control_id(self, token: str) -> int:
        token_id: int | None = self._tokenizer.token_to_id(token)
        if token_id is None:
            raise ValueError(f"the checkpoint's tokenizer misses the control token {token}")
        return token_id
