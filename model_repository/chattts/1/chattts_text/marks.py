"""Punctuation: how strongly each mark parts what is around it, and its two widths."""

from typing import NamedTuple

from .context import Vocabulary


class Mark(NamedTuple):
    """A mark that the model hears."""

    wide: str
    """As written in Chinese."""
    narrow: str
    """As written in English, without the space after it."""


QUESTION = Mark("？", "?")
EXCLAMATION = Mark("！", "!")
STOP = Mark("。", ".")
SEMICOLON = Mark("；", ";")
COLON = Mark("：", ":")
COMMA = Mark("，", ",")
LISTING = Mark("、", ",")

BY_STRENGTH = (QUESTION, EXCLAMATION, STOP, SEMICOLON, COLON, COMMA, LISTING)
"""Where several marks meet, the first of these is said."""
SENTENCE_ENDS = frozenset({QUESTION, EXCLAMATION, STOP})

WRITTEN = {
    **{mark.wide: mark for mark in BY_STRENGTH},
    **{mark.narrow: mark for mark in BY_STRENGTH if mark != LISTING},
    "．": STOP,
    "…": COMMA,
    "—": COMMA,
    "–": COMMA,
    "（": COMMA,
    "）": COMMA,
    "(": COMMA,
    ")": COMMA,
    "【": COMMA,
    "】": COMMA,
    "〔": COMMA,
    "〕": COMMA,
    "〖": COMMA,
    "〗": COMMA,
    "|": COMMA,
    "｜": COMMA,
    "~": COMMA,
    "‼": EXCLAMATION,
    "⁇": QUESTION,
    "⁈": QUESTION,
    "⁉": EXCLAMATION,
    "؟": QUESTION,
    "،": COMMA,
    "؛": SEMICOLON,
    "¿": COMMA,
    "¡": COMMA,
}
"""Each written mark: how it is heard."""

UNHEARD = frozenset("\"'`“”‘’„‟‚‹›«»「」『』《》〈〉﹁﹂[]{}〘〙〚〛⟨⟩〝〞〟·•‧・-")
"""Quotes, brackets around words, bullets, hyphens: they part words, but are no pause."""

_ENDS = ("。", ".", "，", ",")
_CLAUSES = ("，", ",", "。", ".")


def known(mark: Mark, is_wide: bool, vocabulary: Vocabulary) -> str:
    """Return a mark as the vocabulary has it, or the nearest that it has; else a space."""
    written = (mark.wide, mark.narrow) if is_wide else (mark.narrow, mark.wide)
    for one in (*written, *(_ENDS if mark in SENTENCE_ENDS else _CLAUSES)):
        if vocabulary.has(one):
            return one
    return " "
