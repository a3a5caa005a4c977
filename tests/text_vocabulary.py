"""What the token model can read, for tests of the text front end: a stand-in, and the real one."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from chattts_pipeline.vocabulary import Vocabulary
from chattts_text import Switches
from chattts_text.front_end import FrontEnd
from chattts_text.segments import SegmentLimits

ROOT = Path(__file__).resolve().parent.parent
REAL = Path(os.environ.get("CHATTTS_TOKENIZER", ROOT.parent / "shared" / "chattts-tokenizer"))
"""Folder with the published tokenizer.json; it is not ours to ship."""

LIMITS = SegmentLimits(max_characters=400, joined_s=20.0)

_MARKS = "，。、；：？！（）《》【】「」『』〈〉·～〇"
_MISSING_HAN = "踽犇毖讣貉硷侩岿谰傈螟镊沤耪泅僳酞誊锨铱锗诌"
"""Han of the character sets below that the published vocabulary lacks."""
_MAX_WORD = 100


class StandInVocabulary:
    """Knows about what the published vocabulary knows: ASCII, common marks, the Han of two sets."""

    def __init__(self) -> None:
        ascii_marks = "".join(map(chr, range(0x20, 0x7F)))
        known = {*ascii_marks, *_MARKS, *_han("gb2312", 0xB0, 0xF8), *_han("big5", 0xA4, 0xC7)}
        self._known = frozenset(known - set(_MISSING_HAN))

    def has(self, text: str) -> bool:
        """See chattts_text.Vocabulary."""
        words = re.findall(r"[A-Za-z]+", text)
        return self._known.issuperset(text) and all(len(word) <= _MAX_WORD for word in words)


@cache
def stand_in_front_end() -> FrontEnd:
    """Return a front end that runs everywhere."""
    return FrontEnd(StandInVocabulary(), {}, LIMITS)


@cache
def real_front_end() -> FrontEnd | None:
    """Return a front end for the published vocabulary; None: it is not here."""
    path = REAL / "tokenizer.json"
    return FrontEnd(Vocabulary(path), {}, LIMITS) if path.exists() else None


def spoken(text: str, switches: Switches | None = None) -> str:
    """Return what the stand-in front end says."""
    return stand_in_front_end().prepare(text, switches or Switches()).spoken


def _han(charset: str, first: int, last: int) -> set[str]:
    pairs = [bytes((a, b)) for a in range(first, last) for b in range(0x40, 0xFF)]
    decoded = {pair.decode(charset, errors="ignore") for pair in pairs}
    return {
        character
        for character in decoded
        if len(character) == 1 and "\u4e00" <= character <= "\u9fff"
    }
