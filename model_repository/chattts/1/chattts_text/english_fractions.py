"""What a slash or a fraction sign makes of two numbers: fractions, shares, ratings, pages."""

import re

from .aligned import Edit
from .english_numbers import cardinal, fraction, number, year
from .english_rules import ends_sentence, is_measure, whole, word_before, word_set
from .english_units import unit_after

_RATED = word_set("rated score scored scores rating rate got gets")
_PARTS = word_set("page part step day slide question lesson")
VULGAR = {
    "½": ("1", "2"), "⅓": ("1", "3"), "⅔": ("2", "3"), "¼": ("1", "4"), "¾": ("3", "4"),
    "⅕": ("1", "5"), "⅖": ("2", "5"), "⅗": ("3", "5"), "⅘": ("4", "5"), "⅙": ("1", "6"),
    "⅚": ("5", "6"), "⅛": ("1", "8"), "⅜": ("3", "8"), "⅝": ("5", "8"), "⅞": ("7", "8"),
}  # fmt: skip


_SEASON = re.compile(r"(?:19|20)[0-9]{2}[/⁄][0-9]{2}")


def read_fraction(match: re.Match[str]) -> list[Edit] | None:
    """Read 3/4, 2 1/2, page 3/10, 24/7, 4.5/5."""
    above, below, count = match["above"], match["below"], match["whole"]
    if count and "." in above:
        return None
    if count:
        return _counted(match, f"{cardinal(count)} and {fraction(above, below)}")
    word = word_before(match.string, match.start()).lower()
    if word in _PARTS:
        return whole(match, f"{cardinal(above)} of {cardinal(below)}")
    is_rating = word in _RATED
    if is_rating or "." in above or match.string.startswith(" stars", match.end()):
        return whole(match, f"{number(above)} out of {cardinal(below)}")
    if _SEASON.fullmatch(match[0]):
        return whole(match, f"{year(above)} {cardinal(below)}")
    if match[0] in ("24/7", "9/11") or (10 <= int(below) <= int(above) < 100):
        return whole(match, f"{cardinal(above)} {cardinal(below)}")
    is_score = int(above) >= 10 and int(below) >= 20 and below not in ("32", "64")
    if is_score and not unit_after(match.string, match.end(), match.endpos, is_one=True):
        return whole(match, f"{cardinal(above)} out of {cardinal(below)}")
    return _counted(match, fraction(above, below))


def read_share(match: re.Match[str]) -> list[Edit]:
    """Read 3.85/4.0 and 1,520/1,600."""
    return whole(match, f"{number(match['a'])} out of {number(match['b'])}")


def read_vulgar(match: re.Match[str]) -> list[Edit]:
    """Read ½ and 2½."""
    words = fraction(*VULGAR[match["sign"]])
    count = match["whole"]
    return _counted(match, f"{cardinal(count)} and {words}" if count else words)


def _counted(match: re.Match[str], words: str) -> list[Edit]:
    """Read a fraction with the unit behind it."""
    text, end = match.string, match.end()
    is_part = match["whole"] is None
    unit = unit_after(text, end, match.endpos, is_one=is_part)
    if unit and is_measure(text, match.start(), unit[0]):
        unit = unit_after(text, end, match.endpos, is_one=True)
    elif unit is None and text.startswith((" in.", " in,"), end):
        unit = end + 3 + (not ends_sentence(text, end + 4)), " inch" if is_part else " inches"
    elif text.startswith('"', end) and is_inch_mark(text, match.start()):
        unit = end + 1, "inch" if is_part else "inches"
    edits = [Edit(*match.span(), words)]
    return [*edits, Edit(end, *unit)] if unit else edits


_LONGEST_QUOTATION = 200
_QUOTE = re.compile(r"(?<![0-9])\"")


def is_inch_mark(text: str, position: int) -> bool:
    """Say whether a double quote behind a number means inches; else it ends a quotation."""
    return len(_QUOTE.findall(text, max(0, position - _LONGEST_QUOTATION), position)) % 2 == 0
