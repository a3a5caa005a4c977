"""Marks that Mandarin reads by what is around them: ＃, ＊, ＆, 〇 and the like."""

import re

from .language import HAN
from .mandarin_place import Place, Rule, rule

SIGNS = "○〇#*&~～="
"""Where these rules begin."""

_SOFT = re.compile("[啊呀哦呢吧嘛啦哈嗯嗨好的了哟喔噢]$")
_NUMERAL = re.compile("[零〇○一二三四五六七八九十百千万年0-9]")


def _zero(place: Place) -> str | None:
    """Read 〇, and a circle in its place between numerals."""
    is_zero = place.match[0] == "〇" or place.said or _NUMERAL.search(place.before[-1:])
    return "零" if is_zero or place.follows(_NUMERAL) else None


def _tilde(place: Place) -> str | None:
    """Read 周一~周五 as a range; behind 好的 the mark draws the voice out and is a pause."""
    return "，" if _SOFT.search(place.before) else "到"


RULES: tuple[Rule, ...] = (
    rule("[〇○]", _zero),
    rule("#(?=[楼栋幢座机炉井线])", lambda place: "号" if place.said else None),
    rule("[×*] ?(?=\\d)", lambda place: "乘" if place.said else None),
    rule("[#＃]号?(?=键)", lambda place: "井号"),
    rule(r"#(?P<n>\d{1,6})(?![\d.])", lambda place: place.part("n") + "号"),
    rule("[*＊]号?(?=键)", lambda place: "星号"),
    rule(rf"(?<=[{HAN}])[~～](?=[{HAN}])", _tilde),
    rule(rf"(?<=[周月日号年时点][一二三四五六日天])-(?=[{HAN}])", lambda place: "到"),
)
"""Rules at a sign."""
