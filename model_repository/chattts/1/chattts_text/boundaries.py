"""Where a spoken text may be cut: after a sentence, a clause, a word; and where it must not be.

Words of Han are rjieba's, which is loaded when a text first has to be cut inside a clause.
"""

import re
from collections.abc import Iterator

from .context import PLACEHOLDER
from .language import HAN

_SENTENCE_END = re.compile(
    r"(?P<marks>[。！？；…．.!?;]+)(?P<closing>[\"'”’」』）)》]*)"
    rf"(?P<tail>(?:\s*[{PLACEHOLDER}])*\s*)|\n"
)
_NARROW_MARKS = frozenset(".!?;．")
_NEXT_STARTS = re.compile(rf"[{HAN}]|$")
_WORD_BEFORE = re.compile(r"[A-Za-z](?:[A-Za-z.]*[A-Za-z])?$")
_INITIALS = re.compile(r"(?:[A-HJ-Za-z]|[A-Za-z](?:\.[A-Za-z])+)")
_ABBREVIATIONS = frozenset({"mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "vs", "cf", "fig"})
_SPELLED_BEFORE = re.compile(r"(?<![A-Za-z.])[A-Za-z] $")
"""A letter before another one: an acronym, not initials; its period is a full stop."""
_ITEM_NUMBER = re.compile(r"\s*\d+")
_LONGEST_ABBREVIATION = 16

_CLAUSE_END = re.compile(rf"(?:[，、：—–]|[,:](?=[\s{PLACEHOLDER}{HAN}]|$))\s*")
_SPACE = re.compile(" ")
_WORD_CHARACTER = re.compile(rf"(?![{HAN}])\w")
_NUMERAL = re.compile(r"[零〇一二三四五六七八九十百千万亿两幺点]")
_NUMBER_WORD = (
    "zero|oh|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|"
    "fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|"
    "ninety|hundred|thousand|million|billion|trillion|point"
)
_ENDS_IN_NUMBER = re.compile(rf"\b(?:{_NUMBER_WORD}|and)$", re.IGNORECASE)
_BEGINS_WITH_NUMBER = re.compile(rf"(?:{_NUMBER_WORD}|and)\b", re.IGNORECASE)
_LONGEST_NUMBER_WORD = 10
_HAN = re.compile(rf"[{HAN}]")
_LONGEST_HAN_WORD = 8
_MAX_STEPS_BACK = 24
"""A hard cut looks this far for a place outside a number or a word."""


def sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the sentences of `text[start:end]`; together they cover it."""
    done = start
    for match in _SENTENCE_END.finditer(text, start, end):
        if match[0] == "\n" or _ends_sentence(text, done, match):
            yield done, match.end()
            done = match.end()
    if done < end:
        yield done, end


def limited(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    """Cut a stretch into parts of at most `most` characters; together they cover it.

    A cut comes after the last clause that fits, else after the last space that is not inside a
    number, else after a word; a word longer than that is cut anywhere.
    """
    while end - start > most:
        position = _cut_position(text, start, start + most)
        yield start, position
        start = position
    yield start, end


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    marks = match["marks"]
    if not _NARROW_MARKS.issuperset(marks):
        return True
    if not match["tail"] and not _NEXT_STARTS.match(text, match.end()):
        return False
    return marks != "." or not _is_abbreviation(text, start, match.start())


def _is_abbreviation(text: str, start: int, end: int) -> bool:
    if _ITEM_NUMBER.fullmatch(text, start, end):
        return True
    word = _WORD_BEFORE.search(text, max(start, end - _LONGEST_ABBREVIATION), end)
    if word is None:
        return False
    if word[0].lower() in _ABBREVIATIONS:
        return True
    is_spelled = _SPELLED_BEFORE.search(text, max(start, word.start() - 3), word.start())
    return _INITIALS.fullmatch(word[0]) is not None and not is_spelled


def _cut_position(text: str, start: int, end: int) -> int:
    """Return where to cut at the latest, after `start` and at `end` or before."""
    clauses = [match.end() for match in _CLAUSE_END.finditer(text, start, end + 1)]
    fitting = [position for position in clauses if position <= end]
    if fitting:
        return fitting[-1]
    spaces = [match.end() for match in _SPACE.finditer(text, start + 1, end)]
    for position in reversed(spaces):
        if not _is_inside_number(text, position):
            return position
    return spaces[-1] if spaces else _hard_cut(text, start, end)


def _is_inside_number(text: str, position: int) -> bool:
    """Say whether number words of English are on both sides of the space before `position`."""
    before = text[max(0, position - 1 - _LONGEST_NUMBER_WORD) : position - 1]
    return bool(_ENDS_IN_NUMBER.search(before) and _BEGINS_WITH_NUMBER.match(text, position))


def _hard_cut(text: str, start: int, end: int) -> int:
    """Return a place at `end` or before that is in no Latin word, no number and no Han word."""
    position = end
    while position > start + 1 and _joins(_WORD_CHARACTER, text, position):
        position -= 1
    if position == start + 1:
        return end
    lowest = max(start + 1, position - _MAX_STEPS_BACK)
    outside = position
    while outside > lowest and _joins(_NUMERAL, text, outside):
        outside -= 1
    position = outside if outside > lowest else position
    return _word_start(text, lowest, position) if _joins(_HAN, text, position) else position


def _word_start(text: str, lowest: int, position: int) -> int:
    """Return where the Han word at `position` begins, if it is not before `lowest`."""
    from rjieba import tokenize

    start = max(0, lowest - 1)
    for _, first, end in tokenize(text[start : position + _LONGEST_HAN_WORD], "default"):
        if first < position - start < end:
            return start + first if start + first >= lowest else position
    return position


def _joins(kind: re.Pattern[str], text: str, position: int) -> bool:
    return bool(kind.match(text, position) and kind.match(text, position - 1))
