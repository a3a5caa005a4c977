"""Amounts in Mandarin: numbers with a sign, a unit, a currency or a percent sign, and ranges."""

import re
from decimal import Decimal

from .mandarin_numbers import MAX_CARDINAL_DIGITS, cardinal, digits, number
from .mandarin_place import Place, Rule, rule
from .mandarin_units import (
    CURRENCIES,
    CURRENCY,
    PERCENT,
    PERCENTS,
    TEMPERATURES,
    UNIT,
    UNITS,
    unit_name,
)

NUMBER = (
    rf"(?:\d{{1,3}}(?:,\d{{3}}){{1,5}}(?!\d|,\d)|\d{{1,{MAX_CARDINAL_DIGITS}}}(?!\d))"
    r"(?:\.\d{1,30}(?!\d|\.\d))?"
)
"""Regular expression of a number that is not too long to be said as one."""

_SCALE = r"(?:万亿|百万|千万|[百千万亿]|(?:[kwKMB]|[mb]illion|thousand)(?![A-Za-z0-9]))"
_LOW_SCALE = rf"(?P<low_scale>{_SCALE})?"
_TAIL = rf"(?P<scale> ?{_SCALE})?(?: ?(?P<unit>{PERCENT}|{UNIT}))?"
_FRONT = rf"(?:(?P<currency>{CURRENCY}) ?)"
_MINUS = r"[-−–]"
_SIGN = r"(?P<sign>\+/-|[-−–+±])"
DASH = "(?:-{1,2}|—{1,2}|[~–−～])"
RANGE = rf" ?(?:{DASH}|至|到) ?"
"""Regular expression of what stands between the ends of a range."""

_RANGE = rf"(?P<range>{RANGE})"
_LETTER_SCALES = {
    "k": 3, "K": 3, "w": 4, "M": 6, "B": 9, "thousand": 3, "million": 6, "billion": 9
}  # fmt: skip
_LATITUDES = {"N": "北纬", "S": "南纬", "E": "东经", "W": "西经"}
_SCREEN = re.compile(r" ?(?:视频|电视|屏|显示|分辨率|高清|超清|画质|影[像院]|摄)")
_COLD = re.compile(r"(?:最[低高]|温|冷|天气)[^\d，。；]{0,6}$")
_AFTER_NUMBER = re.compile(r"[\dA-Za-z)）%‰℃°]$|\d ?[年月日号时点分秒元度级周天]$|左右$|点[半整]$")
"""A hyphen behind this is no minus."""

_ELECTRIC = re.compile(
    r"(?:电流|电源|电池|充|额定|输[入出]|插座|保险|熔断|空开|断路器)[^，。；]{0,5}$"
    r"|[0-9] ?V\W{0,2}$"
)
_IS_ELECTRIC = re.compile(" ?(?:的?电流|充电|快充|插[座头]|保险|空开|断路)")
_QUANTITY_BEFORE = re.compile(r"\d ?(?:[A-Za-z]{1,4}|%)[^\d，。；、]{0,4}$", re.ASCII)
"""What a plus adds to: 67W有线+50W无线."""

_CROWD = re.compile(
    r"(?:粉丝?|播放量?|阅读量?|销[量售]?额?|点赞数?|浏览量?|用户数?|下载量?|观看|薪|资|收入|存款|身[家价]|"
    r"票房|赚|花|卖|成交|跑分|奖[金励])[^，。；\d]{0,4}$"
)
_IS_CROWD = re.compile(r"\+? ?(?:粉|人|播放|阅读|用户|元|块|次|点赞|浏览|下载|观看)")
_FIGURE = re.compile(r"[图表例题式件] ?$")
_MONEY = re.compile(" ?(?:[美欧日港韩加澳]?元|英镑|人民币|块)")
_PAY = re.compile(r"(?:薪|资|价|预算|收入)[^，。；]{0,8}$")
_DEGREES = re.compile(" ?度(?!假|过|角)")


def _say(place: Place, written: str, scale: str, unit: str | None, is_counted: bool) -> str:
    """Say a number with its scale and unit, without sign and currency."""
    words = _scaled(place, written, scale, is_counted or bool(unit))
    if not unit:
        return words
    if unit in PERCENTS:
        prefix = PERCENTS[unit]
        if words == "一百" and prefix == "百分之":
            return "百分之百"
        return prefix + ("二" if words == "两" else words)
    return words + unit_name(unit)


def _scaled(place: Place, written: str, scale: str, is_counted: bool) -> str:
    """Say a number with its scale; 2千 behind another part of the number is 二千."""
    if not scale:
        return number(written, is_counted)
    power = _LETTER_SCALES.get(scale)
    if power is None:
        return number(written, is_counted=scale[0] in "百千万亿" and not _is_rest(place)) + scale
    value = Decimal(written.replace(",", "")).scaleb(power)
    return number(f"{value.normalize():f}", is_counted)


def _is_rest(place: Place) -> bool:
    return place.said[-1:] in ("亿", "万", "千")


def _signed(place: Place, sign: str, words: str, unit: str | None) -> str:
    if sign in ("±", "+/-"):
        return "正负" + words
    if sign == "+":
        if unit and _QUANTITY_BEFORE.search(place.before):
            return "加" + words
        return ("正" if unit or "点" in words else "加") + words
    if place.before.rstrip().endswith(("零下", "负")):
        return words
    name = unit_name(unit) if unit and unit not in PERCENTS else ""
    is_degrees = name in ("", "度") and (name or place.follows(_DEGREES))
    if name in TEMPERATURES or (is_degrees and _COLD.search(place.before)):
        return "零下" + words
    return "负" + words


def _amount(place: Place) -> str | None:
    match = place.match
    sign, currency, unit = match["sign"], match["currency"], match["unit"]
    scale, written = _scale(place), match["low"]
    if currency and unit == "m":
        unit, scale = None, "M"
    if unit == "A" and not _is_ampere(place):
        return None
    if unit == "W" and (_CROWD.search(place.before) or place.follows(_IS_CROWD)):
        unit, scale = None, "万"
    if sign and (_AFTER_NUMBER.search(place.before) or place.said not in ("", "到", "约")):
        return None
    if scale in _LETTER_SCALES and not currency and not _is_letter_scale(place):
        return None
    if _is_money(place):
        written = _without_empty_cents(written)
    words = _say(place, written, scale, unit, place.is_counted or bool(currency))
    if currency and not (unit and unit not in PERCENTS):
        words += _currency_name(place, currency)
    return _signed(place, sign, words, unit) if sign else words


def _is_ampere(place: Place) -> bool:
    """Say whether A is a unit: 28A is a seat, a gate or a grade."""
    is_electric = _ELECTRIC.search(place.before) or place.follows(_IS_ELECTRIC)
    return bool(is_electric or "." in place.match["low"])


def _scale(place: Place) -> str:
    return (place.match["scale"] or "").strip()


def _is_letter_scale(place: Place) -> bool:
    """Read k as thousand and w as ten thousand, but 4k is a screen; K, M and B are letters."""
    scale, written = _scale(place), place.match["low"]
    if scale == "w" or (scale in ("k", "K") and _PAY.search(place.before)):
        return True
    return scale == "k" and not place.follows(_SCREEN) and written not in ("4", "8")


def _currency_name(place: Place, currency: str) -> str:
    name = CURRENCIES[currency]
    following = place.after.lstrip()
    if following.startswith("元"):
        return name.removesuffix("元") if name.endswith("元") else ""
    return "" if following.startswith((name, "块")) else name


def _is_money(place: Place) -> bool:
    match = place.match
    unit_is_money = UNITS.get(match["unit"]) in CURRENCIES.values()
    return bool(match["currency"]) or unit_is_money or place.follows(_MONEY)


def _without_empty_cents(written: str) -> str:
    return re.sub(r"\.0{1,2}$|(?<=\.\d)0$", "", written)


def _range(place: Place) -> str | None:
    """Read "3-5天", "-5~3℃", "10-20%", "$5-6": one unit for both ends."""
    match = place.match
    low, high, scale, unit = match["low"], match["high"], _scale(place), match["unit"]
    sign, high_sign, joint = match["sign"], match["high_sign"], match["range"].strip()
    if (sign and _AFTER_NUMBER.search(place.before)) or _FIGURE.search(place.before):
        return None
    if scale in _LETTER_SCALES and not match["currency"] and not _is_letter_scale(place):
        return None
    if unit == "A" and not _is_ampere(place):
        return None
    low_value, high_value = (Decimal(one.replace(",", "")) for one in (low, high))
    is_rising = (-low_value if sign else low_value) < (-high_value if high_sign else high_value)
    low_scale = match["low_scale"]
    if not is_rising and not low_scale and joint not in ("至", "到", "~") and not unit:
        return None
    if _is_money(place):
        low, high = _without_empty_cents(low), _without_empty_cents(high)
    is_counted = place.is_counted or bool(match["currency"])
    shared = low_scale or (scale if scale in _LETTER_SCALES else "")
    words = _scaled(place, low, shared, _two(place, scale, unit))
    if unit in PERCENTS:
        words = PERCENTS[unit] + ("二" if words == "两" else words)
        last = _scaled(place, high, scale, False)
    else:
        last = _say(place, high, scale, unit, is_counted)
    if sign:
        words = _signed(place, sign, words, unit)
    if high_sign:
        last = _signed(place, high_sign, last, unit)
    words += (joint if joint in ("至", "到") else "到") + last
    return words + _currency_name(place, match["currency"]) if match["currency"] else words


def _two(place: Place, scale: str, unit: str | None) -> bool:
    is_large = scale[:1] in ("百", "千", "万", "亿")
    is_money = bool(place.match["currency"])
    return place.is_counted or is_large or is_money or (unit is not None and unit not in PERCENTS)


def _grouped(place: Place) -> str:
    """Read "1 234 567", grouped by spaces."""
    return number(place.match[0].replace(" ", ""))


def _angle(place: Place) -> str:
    """Read 39°54′20″."""
    minutes, seconds = place.match["minutes"], place.match["seconds"]
    words = f"{place.part('degrees')}度{cardinal(minutes)}分"
    return f"{words}{number(seconds)}秒" if seconds else words


def _latitude(place: Place) -> str:
    """Read 39.9°N as 北纬三十九点九度."""
    return f"{_LATITUDES[place.match['side']]}{number(place.match['degrees'])}度"


def _feet(place: Place) -> str:
    return f"{place.part('feet')}英尺{place.part('inches')}英寸"


def _inches(place: Place) -> str | None:
    return None if '"' in place.before else number(place.match["n"]) + "英寸"


def _version(place: Place) -> str:
    """Read "2.10.3" part by part."""
    return "点".join(number(part) for part in place.match[0].split("."))


def _section(place: Place) -> str | None:
    """Read 第4.10节 part by part: 四点十."""
    return _version(place) if place.before.rstrip().endswith("第") else None


def _discount(place: Place) -> str:
    return digits(place.match[0])


def _item(place: Place) -> str | None:
    """Read the stop of "1. " at the head of a line or of an item as a pause."""
    is_head = place.before[-1:] in ("", "\n", *"：；。:;")
    is_head = is_head or (place.before[-1:] == " " and place.after[:1] != " ")
    return cardinal(place.match["n"]) + "、" if is_head else None


EARLY_DIGIT_RULES: tuple[Rule, ...] = (
    rule(r"\d{1,3}(?:\.\d{1,3}){1,4}(?= ?[节章条款图表小])", _section),
)
"""Rules at the first digit of a number, before those of dates."""

DIGIT_RULES: tuple[Rule, ...] = (
    rule(r"(?P<n>\d{1,2})\.(?= |[^\d\s.A-Za-z])", _item),
    rule(r"\d(?:\.\d{1,2})(?=折)", _discount),
    rule(r"\d{1,3}(?: \d{3}){2,4}(?![\d.]| \d)", _grouped),
    rule(
        r"(?P<degrees>\d{1,3})° ?(?P<minutes>\d{1,2}) ?['′’](?: ?(?P<seconds>\d{1,2}(?:\.\d{1,4})?)"
        r"(?:[\"″”]|''|′′))?",
        _angle,
    ),
    rule(r"(?P<degrees>\d{1,3}(?:\.\d{1,8})?)° ?(?P<side>[NSEW])(?![A-Za-z])", _latitude),
    rule(r"(?P<feet>\d)['′’] ?(?P<inches>\d{1,2})(?:[\"″”]|''|′′)", _feet),
    rule(r"(?P<n>\d{1,3}(?:\.\d)?)(?:[\"″]|′′)(?=[^\d\"″]|$)", _inches),
    rule(r"\d{1,6}(?:\.\d{1,6}){2,}", _version),
    rule(
        rf"(?P<currency>)(?P<sign>)(?P<low>{NUMBER}){_LOW_SCALE}{_RANGE}(?P<high_sign>{_MINUS})?"
        rf"(?P<high>{NUMBER}){_TAIL}",
        _range,
    ),
    rule(rf"(?P<currency>)(?P<sign>)(?P<low>{NUMBER}){_TAIL}", _amount),
    rule(rf"(?P<currency>)(?P<sign>)(?P<low>{NUMBER})(?P<scale>)(?P<unit>)", _amount),
    rule(r"\d+", lambda place: digits(place.match[0])),
)
"""Rules at the first digit of a number, after all others."""

FRONT_RULES: tuple[Rule, ...] = (
    rule(
        rf"{_SIGN}? ?{_FRONT}?(?P<low>{NUMBER}){_LOW_SCALE}{_RANGE}"
        rf"{_FRONT.replace('currency', 'again')}?"
        rf"(?P<high_sign>{_MINUS})?(?P<high>{NUMBER}){_TAIL}",
        _range,
    ),
    rule(rf"{_SIGN}?{_FRONT}?(?P<low>{NUMBER}|\.\d{{1,30}}){_TAIL}", _amount),
    rule(rf"{_FRONT}{_SIGN}(?P<low>{NUMBER}){_TAIL}", _amount),
)
"""Rules at a sign or a currency."""

LETTER_RULES: tuple[Rule, ...] = (rule(rf"(?P<sign>){_FRONT}(?P<low>{NUMBER}){_TAIL}", _amount),)
"""Rules at a Latin letter."""
