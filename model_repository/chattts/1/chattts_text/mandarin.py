"""Mandarin: what is read for everything that is written and is no word.

One walk through the text stops at each character that may begin something, and tries the rules of
that character in order. Signs that no rule reads are left to `symbols`.
"""

import re
from collections.abc import Iterator

from . import mandarin_amounts as amounts
from . import mandarin_codes as codes
from . import mandarin_dates as dates
from . import mandarin_formulas as formulas
from . import mandarin_habits as habits
from . import mandarin_marks as marks
from .aligned import Edit
from .context import Context
from .mandarin_place import CONTEXT_CHARACTERS, Place, Rule

_DIGIT_RULES = (
    habits.DIGIT_RULES
    + codes.DIGIT_RULES
    + amounts.EARLY_DIGIT_RULES
    + dates.DIGIT_RULES
    + codes.LATE_DIGIT_RULES
    + formulas.DIGIT_RULES
    + amounts.DIGIT_RULES
)
_SIGN_RULES = (
    habits.SIGN_RULES
    + codes.PLUS_RULES
    + codes.SIGN_RULES
    + formulas.MINUS_RULES
    + amounts.FRONT_RULES
    + marks.RULES
)
_LETTER_RULES = (
    codes.LETTER_RULES + formulas.LETTER_RULES + amounts.LETTER_RULES + marks.LETTER_RULES
)
_STOP = re.compile(
    r"(?P<digit>[0-9])|(?P<letter>[A-Za-zΩμ])|"
    rf"(?P<numeral>[{formulas.VULGAR}{formulas.ROMAN_SIGNS}{formulas.NUMBERED}])|"
    rf"(?P<bracket>[(（〔\[](?=[0-9一二三四五六七八九十]))|(?P<sign>[-+−–—±~～/.·×$¥￥€£₩₽₹°℃℉{marks.SIGNS}])"
)
_RULES: dict[str, tuple[Rule, ...]] = {
    "digit": _DIGIT_RULES,
    "letter": _LETTER_RULES,
    "numeral": formulas.SIGN_RULES,
    "bracket": codes.BRACKET_RULES + habits.BRACKET_RULES,
    "sign": _SIGN_RULES,
}


def edits(text: str, start: int, end: int, context: Context) -> Iterator[Edit]:
    """Read one Mandarin part of a text.

    Args:
        text: The whole text; what is around the part helps to read it.
        start: Where the part begins.
        end: Where it ends; no edit goes beyond.
        context: Its switches say how 1 is read in codes.
    """
    one = context.switches.telephone_one
    said, last, reached = "", "", start
    position = start
    while stop := _STOP.search(text, position, end):
        position = stop.start()
        if position > reached:
            said = ""
        before = text[max(0, position - CONTEXT_CHARACTERS) : position]
        for pattern, say in _RULES[stop.lastgroup or ""]:
            match = pattern.match(text, position)
            if match is None or match.end() > end:
                continue
            words = say(Place(match, before, said, one))
            if words is not None:
                heard = last + text[reached:position] if last else before
                if len(match[0]) == 1 and _SPELLED.search(before):
                    heard = ""
                parted = _parted(words, heard, text[match.end() : match.end() + 3])
                yield Edit(position, match.end(), parted)
                last = parted[-1:]
                said = words or said
                position = reached = match.end()
                break
        else:
            position += 1


_NUMERAL = "零一二三四五六七八九两幺"
_NUMERAL_BEFORE = re.compile(rf"[{_NUMERAL}十百千万亿半][ 《》〈〉「」『』]+$")
_SPELLED = re.compile(r"(?<!\d)\d $", re.ASCII)
"""One digit, and perhaps another, as in a number that is spelled."""

_NUMERAL_AFTER = re.compile(rf" +[{_NUMERAL}]")


def _parted(words: str, before: str, after: str) -> str:
    """Put a pause where only a space parts two numbers: 周三 15:00, 3 三号会议室.

    Args:
        words: What is said for a number.
        before: What is said or written in front of it.
        after: What is written behind it.
    """
    is_number = words[:1] in (*_NUMERAL, "十")
    start = "，" if is_number and _NUMERAL_BEFORE.search(before) else ""
    is_open = words[-1:] in (*_NUMERAL, "十", "百", "千", "万", "亿")
    return f"{start}{words}{'，' if is_open and _NUMERAL_AFTER.match(after) else ''}"
