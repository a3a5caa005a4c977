"""Which language each part of a text is in: numbers and symbols follow their neighbors."""

import re
from itertools import groupby
from typing import Literal, NamedTuple

from .context import PLACEHOLDER
from .mandarin_islands import islands
from .switches import Language

HAN = "\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Han characters, for use inside a regular expression's brackets."""

LATIN = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
"""Latin letters, for use inside a regular expression's brackets."""

Spoken = Literal["zh", "en"]

_WORD = re.compile(rf"[^\s{HAN}{PLACEHOLDER}，。！？；：、“”‘’（）《》【】「」『』…—]+")
_LETTER = re.compile(rf"[{LATIN}]")
_HAN = re.compile(rf"[{HAN}]+")
_SENTENCE = re.compile(r"[^。！？!?\n]+")
_ENGLISH_BEFORE = re.compile(
    r"\b(?:at|by|until|till|from|to|before|after|around|about|on|in|of|for|than|is|was|costs?) $",
    re.IGNORECASE,
)
"""What follows such a word is English though its sentence has Han."""
_LONGEST_BEFORE = 10
_COUNTED = frozenset(
    "年月日号点分秒时天周岁个人名位台块元角万亿千百斤米只条张件次倍家种层楼室页章节期届度折成"
)
"""Han characters that say what a number before them counts."""
_PUNCTUATION_DISTANCE = 4
"""A mark between a number and a word keeps them as far apart as so many characters."""


class LanguageSpan(NamedTuple):
    """A part of a text in one language."""

    start: int
    end: int
    language: Spoken


def language_spans(text: str, wanted: Language) -> list[LanguageSpan]:
    """Cut a text into spans of one language; together they cover it.

    Han is Mandarin, Latin letters are English with the digits that touch them. Where a sentence has
    Han, quantities and what else Mandarin reads with Latin letters (see `mandarin_islands`) are
    Mandarin. What shows no language, such as a number, takes that of its nearest neighbor. A text
    without any letter is Mandarin.

    Args:
        text: Any text.
        wanted: What the caller says about the language. It decides for numbers in sentences that
            show both languages or none.
    """
    languages = _shown_languages(text, wanted)
    _fill(languages, text, _default(wanted))
    spans: list[LanguageSpan] = []
    end = 0
    for language, run in groupby(languages):
        start, end = end, end + sum(1 for _ in run)
        spans.append(LanguageSpan(start, end, language or "zh"))
    return spans


def _shown_languages(text: str, wanted: Language) -> list[Spoken | None]:
    """Return the language of each character that shows one, by itself or by its word."""
    languages: list[Spoken | None] = [None] * len(text)
    for match in _HAN.finditer(text):
        languages[match.start() : match.end()] = ["zh"] * len(match[0])
    for sentence in _SENTENCE.finditer(text):
        start, end = sentence.span()
        has_han = _HAN.search(text, start, end) is not None
        has_latin = _LETTER.search(text, start, end) is not None
        found = list(islands(text, start, end)) if has_han or has_latin else []
        found = [one for one in found if not _follows_english(text, *one)]
        if not has_han and has_latin:
            has_latin = not _are_covered(text, start, end, found)
            found = []
        for first, last in found:
            languages[first:last] = ["zh"] * (last - first)
        for word in _WORD.finditer(text, start, end):
            if has_latin and _LETTER.search(word[0]):
                _show_word(languages, text, *word.span(), has_islands=bool(found))
            elif wanted != "auto" and has_han == has_latin and _has_digit(word[0]):
                languages[word.start() : word.end()] = [_default(wanted)] * len(word[0])
    return languages


def _follows_english(text: str, start: int, end: int) -> bool:
    return _ENGLISH_BEFORE.search(text, max(0, start - _LONGEST_BEFORE), start) is not None


def _are_covered(text: str, start: int, end: int, parts: list[tuple[int, int]]) -> bool:
    """Say whether quantities are all that has Latin letters: "5 km" alone shows no language."""
    for first, last in sorted(parts):
        if _LETTER.search(text, start, max(start, first)):
            return False
        start = max(start, last)
    return not _LETTER.search(text, start, end)


def _show_word(
    languages: list[Spoken | None], text: str, start: int, end: int, has_islands: bool
) -> None:
    """A word with letters is English but for its Mandarin part; all of it, if no letters remain."""
    if not has_islands or "zh" not in languages[start:end]:
        languages[start:end] = ["en"] * (end - start)
        return
    rest = [i for i in range(start, end) if not languages[i]]
    language: Spoken = "en" if any(_LETTER.match(text[i]) for i in rest) else "zh"
    for i in rest:
        languages[i] = language


def _has_digit(word: str) -> bool:
    return any(character.isalnum() for character in word)


def _fill(languages: list[Spoken | None], text: str, default: Spoken) -> None:
    """Give every other character its language, in place."""
    index = 0
    while index < len(text):
        if languages[index]:
            index += 1
            continue
        end = index
        while end < len(text) and not languages[end]:
            end += 1
        _fill_gap(languages, text, index, end, default)
        index = end


def _fill_gap(
    languages: list[Spoken | None], text: str, start: int, end: int, default: Spoken
) -> None:
    left = languages[start - 1] if start else None
    right = languages[end] if end < len(text) else None
    costs = [0]
    for character in text[start:end]:
        is_mark = not character.isalnum() and not character.isspace()
        costs.append(costs[-1] + (_PUNCTUATION_DISTANCE if is_mark else 1))
    done, filler = start, left or right or default
    for word in _WORD.finditer(text, start, end):
        if not _has_digit(word[0]):
            continue
        digits = [i for i in range(word.start(), word.end()) if text[i].isalnum()]
        before, after = costs[digits[0] - start], costs[-1] - costs[digits[-1] + 1 - start]
        follows = text[end] if end < len(text) else ""
        is_nearer = after < before or (after == before and follows in _COUNTED)
        language: Spoken = (right if left and right and is_nearer else left) or right or default
        languages[done : word.start()] = [filler] * (word.start() - done)
        languages[word.start() : word.end()] = [language] * len(word[0])
        done, filler = word.end(), language
    languages[done:end] = [filler] * (end - done)


def _default(wanted: Language) -> Spoken:
    return "en" if wanted == "en" else "zh"
