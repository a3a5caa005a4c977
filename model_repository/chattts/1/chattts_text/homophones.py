"""Mandarin syllables and the common characters that have them.

A reading is written as a lower-case syllable and its tone, such as "lü4"; the neutral tone is 5.
The readings are pypinyin's, which is loaded when the first one is asked for.
"""

import re
import unicodedata
from collections import Counter
from functools import cache

from .context import Vocabulary

_TONES = {"\u0304": "1", "\u0301": "2", "\u030c": "3", "\u0300": "4"}
_SYLLABLE = re.compile(r"([a-zü]+|ê)([1-5])")
_NEUTRAL = "5"
_VARIANTS = {"𠮷": "吉", "㐂": "喜"}
"""Characters on signboards that the dictionary lacks, and their common form."""
_COMMON_ROWS = range(0xB0, 0xD8)
"""Rows of GB 2312 that hold its 3,755 most common characters."""
_RARE_ROWS = range(0xD8, 0xF8)
"""Those that hold its 3,008 others."""


def syllable(written: str) -> str | None:
    """Read pinyin with a tone mark or a tone digit: háng, hang2, lv4, lu:4; None: it is neither."""
    tone = ""
    letters: list[str] = []
    for character in unicodedata.normalize("NFD", written.strip().lower()):
        if character in _TONES:
            tone = _TONES[character]
        elif character == "\u0308" and letters and letters[-1] == "u":
            letters[-1] = "ü"
        elif character in "12345" and not tone:
            tone = character
        elif character == "0" and not tone:
            tone = _NEUTRAL
        else:
            letters.append(character)
    bare = "".join(letters).replace("u:", "ü").replace("v", "ü")
    match = _SYLLABLE.fullmatch(bare + (tone or _NEUTRAL))
    return match[0] if match else None


def readings(character: str) -> list[str]:
    """Return the readings of a character, the most usual one first; empty if none is known."""
    common = _VARIANTS.get(character, character)
    return _readings(_dictionary().get(ord(common), ""))


def with_reading(reading: str, vocabulary: Vocabulary, with_rare: bool = False) -> str | None:
    """Return a character that the vocabulary has and that is read so, or None.

    Args:
        reading: Such as "lü4".
        vocabulary: What the model knows.
        with_rare: Take a rare one where no common one is read so: 蓼 for liao3.
    """
    for is_rare in (False, True)[: 2 if with_rare else 1]:
        for candidate in _index(is_rare).get(reading, ()):
            if vocabulary.has(candidate):
                return candidate
    return None


def homophone(character: str, vocabulary: Vocabulary) -> str | None:
    """Return a character that sounds the same, or, where there is none, differs in tone only."""
    common = _VARIANTS.get(character)
    if common and vocabulary.has(common):
        return common
    for reading in readings(character)[:1]:
        for tone in dict.fromkeys((reading[-1], *"12345")):
            found = with_reading(reading[:-1] + tone, vocabulary)
            if found:
                return found
    return None


def _readings(entry: str) -> list[str]:
    return [one for written in entry.split(",") if (one := syllable(written))] if entry else []


@cache
def _dictionary() -> dict[int, str]:
    from pypinyin.pinyin_dict import pinyin_dict

    return pinyin_dict


@cache
def _index(is_rare: bool) -> dict[str, list[str]]:
    """Return the common or the rare characters by their most usual reading.

    Those without another reading come first, among equals the one that is in more phrases.
    """
    from pypinyin.phrases_dict import phrases_dict

    num_phrases: Counter[str] = Counter()
    for phrase in phrases_dict:
        num_phrases.update(phrase)
    index: dict[str, list[tuple[int, int, str]]] = {}
    for first in _RARE_ROWS if is_rare else _COMMON_ROWS:
        for second in range(0xA1, 0xFF):
            character = bytes((first, second)).decode("gb2312", errors="ignore")
            known = readings(character) if len(character) == 1 else []
            if known:
                rank = (len(known), -num_phrases[character], character)
                index.setdefault(known[0], []).append(rank)
    return {reading: [rank[-1] for rank in sorted(ranks)] for reading, ranks in index.items()}
