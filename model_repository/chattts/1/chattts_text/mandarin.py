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
from . import mandarin_marks as marks
from .aligned import Edit
from .context import Context
from .mandarin_place import CONTEXT_CHARACTERS, Place, Rule

_DIGIT_RULES = (
    codes.DIGIT_RULES
    + amounts.EARLY_DIGIT_RULES
    + dates.DIGIT_RULES
    + codes.LATE_DIGIT_RULES
    + formulas.DIGIT_RULES
    + amounts.DIGIT_RULES
)
_SIGN_RULES = (
    codes.PLUS_RULES + codes.SIGN_RULES + formulas.MINUS_RULES + amounts.FRONT_RULES + marks.RULES
)
_LETTER_RULES = (
    codes.LETTER_RULES + formulas.LETTER_RULES + amounts.LETTER_RULES + marks.LETTER_RULES
)
_STOP = re.compile(
    r"(?P<digit>[0-9])|(?P<letter>[A-Za-zΩμ])|"
    rf"(?P<numeral>[{formulas.VULGAR}{formulas.ROMAN_SIGNS}{formulas.NUMBERED}])|"
    rf"(?P<bracket>[(（]0)|(?P<sign>[-+−–—±~～/.·×$¥￥€£₩₽₹°℃℉{marks.SIGNS}])"
)
_RULES: dict[str, tuple[Rule, ...]] = {
    "digit": _DIGIT_RULES,
    "letter": _LETTER_RULES,
    "numeral": formulas.SIGN_RULES,
    "bracket": codes.BRACKET_RULES,
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
    said, reached = "", start
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
                yield Edit(position, match.end(), words)
                said = words or said
                position = reached = match.end()
                break
        else:
            position += 1
