"""Signs that Mandarin reads by what is around them: a dash, a slash, a plus, #, *, 〇."""

import re

from .mandarin_amounts import DASH
from .mandarin_codes import names_code
from .mandarin_formulas import ROMAN_SIGNS
from .mandarin_numbers import cardinal, digits
from .mandarin_place import Place, Rule, rule
from .mandarin_units import COUNTER, PERCENT, UNIT, unit_name

SIGNS = "○〇#*№↑↓⬆⬇"
"""Where these rules begin."""

_HAN = "\u3400-\u9fff"
_NUMERALS = "零一二三四五六七八九十百千万亿两几半"
_COUNTS_UNIT = re.compile(r"[零一二三四五六七八九十百千万亿两几半数每多/] ?$|单位[为是：: ]{0,3}$")
_DATE_WORD = re.compile(r"[年月日号时点分秒度元天岁周级半整刻晚]$|左右$")
_DAYS = "一二三四五六日天年月号点"
_WEEKDAY = re.compile(r"(?:周|星期|礼拜)[一二三四五六日天] ?$|[年月日号点] ?$")
_TIMES = "年月日号时点"
_ANY_UNIT = rf"(?:{PERCENT}|{UNIT}|[年月日号时点分秒度元天岁周级人个次倍])"
_MEASURE_END = re.compile(r"[\d%‰℃℉°A-Za-z)）年月日号时点分秒度元天岁周级半整刻]$")
_ENDS_PART = re.compile(r"[^零一二三四五六七八九十百千幺两]$|分之.*$")
_COUNTED = re.compile(
    rf"(?<![美欧日港韩澳加])[元块角]$|[\d零一二三四五六七八九十百千万亿两几半数多][{_HAN}]{{1,3}}$"
)
_PRICE = re.compile(rf"[\d{_NUMERALS}](?:[美欧日港]?[元金]|块|角|分|英镑)$")
_TELEPHONE = 7
"""Words as long as this, said digit by digit, are parted by a pause."""

_PER_WHAT = (
    "小时|时(?!间)|分|秒|天|[日月年周季人次个斤吨升米件位间晚盒瓶袋张台辆亩平只股份套吨度本期节场集课顿]|"
    "千[克米]|公[斤里升]|平方|立方|学期|户"
)
_SOFT = re.compile("[啊呀哦呢吧嘛啦哈嗯嗨好的了哟喔噢]$")
_NUMERAL = re.compile("[零〇○一二三四五六七八九十百千万年0-9]")


def _zero(place: Place) -> str | None:
    """Read 〇, and a circle in its place between numerals."""
    is_zero = place.match[0] == "〇" or place.said or _NUMERAL.search(place.before[-1:])
    return "零" if is_zero or place.follows(_NUMERAL) else None


def _tilde(place: Place) -> str | None:
    """Read 周一~周五 as a range; behind 好的 the mark draws the voice out and is a pause."""
    return "，" if _SOFT.search(place.before) else "到"


def _joint(place: Place) -> str | None:
    """Read a dash between what has been said and another number."""
    is_hyphen = place.match[0].strip() in ("-", "−", "–")
    if not place.said:
        if _DATE_WORD.search(place.before):
            return "到"
        return "杠" if is_hyphen and place.before[-1:].isalpha() else None
    is_bare = not _ENDS_PART.search(place.said) and not place.before[-1:].isalpha()
    return "杠" if is_hyphen and is_bare else "到"


def _spaced(place: Place) -> str | None:
    """Read the dash in "5°C - 8°C" and "9:00 - 17:00": the same is counted on both sides."""
    before, unit = place.before.rstrip(), (place.match["unit"] or "").strip()
    is_time = before[-1:] in _TIMES and unit[:1] in tuple(_TIMES)
    is_same = before.endswith(unit) if unit else before[-1:].isdigit()
    return "到 " if is_time or (is_same and _MEASURE_END.search(before)) else None


def _less(place: Place) -> str | None:
    """Read (-3)-5."""
    return "减" if re.search(r"[(（][-−]\d{1,9}[)）]$", place.before) else None


def _plus_more(place: Place) -> str | None:
    """Read 500+ as more than 500."""
    if not place.said and not re.search(r"[万亿千百]$", place.before):
        return None
    return "多" if place.follows(COUNTER) or place.follows(re.compile("[款元岁]")) else "加"


def _about(place: Place) -> str | None:
    is_spaced = place.before[-1:] == " " and place.after[:1] == " "
    if is_spaced and _MEASURE_END.search(place.before.rstrip()):
        return "到"
    if place.before[-1:].isalpha() and not place.before[-1:].isascii():
        return "，" if _SOFT.search(place.before) else "到"
    return None if place.said or place.before[-1:].isalnum() else "约"


def _per(place: Place) -> str | None:
    """Read the slash in 5元/斤, 120次/分 and 50mg/天."""
    if place.said or _COUNTED.search(place.before):
        unit = place.match["unit"]
        return "每" + (unit_name(unit) if unit else "")
    return None


def _numbered(place: Place) -> str | None:
    """Read #3 as number three, and the digits of 订单号#2057 one by one."""
    written = place.match["n"]
    if names_code(place.before) and len(written) > 2:
        return digits(written, place.one)
    return cardinal(written) + "号" if len(written) <= _TELEPHONE else digits(written) + "号"


def _bare_unit(place: Place) -> str | None:
    unit = place.match["unit"]
    if unit == "A":  # 三A is a grade; where there are amperes the amount has taken them
        return None
    is_counted = place.said or _COUNTS_UNIT.search(place.before)
    return unit_name(unit) if is_counted else None


RULES: tuple[Rule, ...] = (
    rule("[〇○]", _zero),
    rule("[×*] ?(?=\\d)", lambda place: "乘" if place.said else None),
    rule(r"×{2,4}(?!\d)", lambda place: None if place.said else "某" * len(place.match[0])),
    rule("[#＃]号?(?=键)", lambda place: "井号"),
    rule(r"#(?P<n>\d{1,12})(?![\d.])", _numbered),
    rule(rf"[-~～–—](?=[IVX{ROMAN_SIGNS}])", lambda place: "到" if place.said else None),
    rule(r"-{1,2}>", lambda place: "到"),
    rule("[*＊]号?(?=键)", lambda place: "星号"),
    rule(rf"(?<=[{_HAN}])[~～](?=[{_HAN}])", _tilde),
    rule(
        rf"(?:(?<=[{_DAYS}])|(?<=[{_DAYS}] ))[~～](?= ?[{_HAN}])",
        lambda place: "到" if _WEEKDAY.search(place.before) else None,
    ),
    rule(
        rf"(?<= ){DASH}(?P<gap> )(?=[-−]?[¥￥$]?[\d.:,]{{1,12}}(?P<unit> ?{_ANY_UNIT})?)", _spaced
    ),
    rule(r"[-−](?=\d)", _less),
    rule(rf"(?<=[周月日号年时点][一二三四五六日天])-(?=[{_HAN}])", lambda place: "到"),
    rule(rf"{DASH} ?(?=[-−]?[\d¥￥$€£.])", _joint),
    rule(r"[-−] ?(?=[(（][-−]?\d)", lambda place: "减" if place.said else None),
    rule("[-−](?=百分之)", lambda place: "负"),
    rule(r"\+(?!\d)", _plus_more),
    rule(r"[~～](?= ?[-−]?[\d¥￥$])", _about),
    rule(r"/ ?(?=\d)", lambda place: "、" if len(place.said) >= _TELEPHONE else None),
    rule(rf"/ ?(?:(?P<unit>{UNIT})|(?={_PER_WHAT}))", _per),
    rule(
        rf"/ ?(?=[{_HAN}])",
        lambda place: "每" if _PRICE.search(place.said or place.before) else None,
    ),
    rule(r"[↑⬆](?= ?[\d.])", lambda place: "上升"),
    rule(r"[↓⬇](?= ?[\d.])", lambda place: "下降"),
    rule(r"№ ?(?P<n>\d{1,6})(?![\d.])", lambda place: place.part("n") + "号"),
    rule(r"#(?![A-Za-z\d])", lambda place: "号" if place.said else None),
)
"""Rules at a sign."""

LETTER_RULES: tuple[Rule, ...] = (
    rule(r"[xX](?= ?\d)", lambda place: "乘" if place.said else None),
    rule(rf"(?P<unit>{UNIT})", _bare_unit),
)
"""Rules at a Latin letter."""
