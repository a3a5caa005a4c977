"""Dates, years, times of day and durations, as Mandarin says them."""

import re

from .mandarin_amounts import RANGE
from .mandarin_codes import names_code
from .mandarin_formulas import RATIO_BEFORE, SCORED_AFTER
from .mandarin_numbers import cardinal, digits, number
from .mandarin_place import Place, Rule, rule
from .mandarin_units import COUNTING, MEASURED

_CLOCK = (
    r"(?P<h>2[0-4]|[01]?\d)[:：](?P<m>[0-5]\d)"
    r"(?:[:：](?P<s>[0-5]\d)(?:[.,](?P<f>(?<=\.)\d{1,6}|\d{3}(?!\d)))?)?"
)
_LASTING = re.compile(
    r"(?:用时|时长|耗时|历时|片长|全长|[全半]马|还剩|剩余?|倒计时|"
    r"成绩|跑出|用了)[为是约了的]{0,2}[:： ]?$"
)
_DATING = re.compile(
    r"(?:日期|日子|截至|截止|截止到|生日|出生|有效期|到期|今天|明天|昨天)[为是于到至]{0,2}[:： ]?$|"
    r"(?:(?:周|星期|礼拜)[一二三四五六日天]|[今明昨后][天日])[（(]$"
)
_DATED = re.compile(
    r" ?(?:上午|下午|中午|早上|晚|凌晨|[（(](?:周|星期)|周[一二三四五六日]|星期|开学|放假|"
    r"元旦|情人节|圣诞|平安夜)"
)
_DUE = re.compile(
    r" ?(?:上线|发布|截止|之?前|(?:劳动|国庆|儿童|妇女|教师|青年|建[军党]|植树|愚人|感恩|光棍)节?)"
)
_LONG_AGO = re.compile(r"(?:的?历史|来|间|之久|以上|前的|的时间|里)")
_LASTED = re.compile(r"[约近满达了过有历距已整校国党军庆足经时]$")
_ERA = re.compile(r"公元前?$|(?:^|[（(至到~—-])前$")
_REIGN = re.compile(
    "(?:顺治|康熙|雍正|乾隆|嘉庆|道光|咸丰|同治|光绪|宣统|洪武|永乐|嘉靖|万历|崇祯|贞观|开元|民国|昭和|平成|令和)$"
)
_EVENT = re.compile(
    r" ?(?:(?:国际)?(?:妇女|劳动|青年|儿童|情人|建党|建军|女[神生王]|护士|教师)节|国庆|年中|年货|"
    r"大促|购物|晚会|消费者|节快乐|节活动|狂欢|打假|维权)"
)
_HISTORY = re.compile(r" ?(?:运动|事变|事件|大?地震|惨案|起义|讲话)")
_HISTORIC = frozenset(
    {"1.28", "2.7", "4.12", "5.4", "5.12", "5.30", "7.7", "8.13", "9.11", "9.18", "12.9"}
)
"""Days that name what happened then; any other number before 地震 may be its strength."""

_YEAR_LIKE = re.compile(
    r" ?(?:[款级届版]|财年|赛季|学年|[春夏秋冬]|.{0,3}?奥运|世界杯|新年|亚运|[高中国]考|考研|跨年)"
)
_YEAR_BEFORE = re.compile(r"(?:今年|去年|明年|前年|后年|年份|年度|截至|始于|迄|自)[是为]?[:： ]?$")
_OF_YEARS = re.compile(r" ?(?:赛季|财年|学年)")
_YEAR_WORD = re.compile(" ?年")
_YEAR_PART = re.compile(r"[初底末春夏秋冬]|[上下]半年|国庆|元旦|中秋")
_YEAR_AFTER = re.compile(rf" ?年{RANGE}前?\d{{3,4}} ?年", re.ASCII)
_YEAR_IN_FRONT = re.compile(rf"\d{{3,4}} ?年{RANGE}$", re.ASCII)
_MONTH_FOLLOWS = re.compile(r" ?年 ?\d{1,2} ?月", re.ASCII)
_MONTH_BEFORE = re.compile(rf"(?:19|20)\d\d\.(?:0?[1-9]|1[0-2]){RANGE}$", re.ASCII)
_MONTH_AFTER = re.compile(
    rf"{RANGE}(?:(?:19|20)\d\d\.(?:0?[1-9]|1[0-2])(?![\d.])|至?今|现在)", re.ASCII
)
_HANGS_TOGETHER = re.compile(r"\d|[-/.:]\d")


def _is_date(year: str, month: str, day: str) -> bool:
    return 1 <= int(month) <= 12 and 1 <= int(day) <= 31 and 1000 <= int(year) <= 2999


def _date(year: str, month: str, day: str) -> str:
    return f"{digits(year)}年{cardinal(month)}月{cardinal(day)}日"


def _full_date(place: Place) -> str | None:
    year, month, day = place.match["y"], place.match["mo"], place.match["d"]
    return _date(year, month, day) if _is_date(year, month, day) else None


def _timestamp(place: Place) -> str | None:
    date, clock = _full_date(place), _clock(place)
    if not date or not clock:
        return None
    zone = place.match["z"]
    if not zone:
        return date + clock
    if zone == "Z":
        return f"{date}{clock}世界时"
    hours, minutes = zone[1:3], zone[-2:]
    if minutes == "00":
        return f"{date}{clock}{'东' if zone[0] == '+' else '西'}{cardinal(hours)}区"
    sign = "加" if zone[0] == "+" else "减"
    return f"{date}{clock}世界时{sign}{cardinal(hours)}小时{cardinal(minutes)}分"


def _day_first(place: Place) -> str | None:
    """Month first, as American software writes it, unless only day first is a date."""
    first, second, year = place.match["a"], place.match["b"], place.match["y"]
    if names_code(place.before):
        return None
    if _is_date(year, first, second):
        return _date(year, first, second)
    return _date(year, second, first) if _is_date(year, second, first) else None


def _compact_date(place: Place) -> str | None:
    return _full_date(place) if _DATING.search(place.before) else None


def _year_month(place: Place) -> str | None:
    return f"{digits(place.match['y'])}年{place.part('mo')}月"


def _month_behind_stop(place: Place) -> str | None:
    """Read "2020.5-2021.6", "2020.05-至今" and "2020.05", which is no amount."""
    is_padded = place.match["mo"][0] == "0"
    is_amount = place.follows(COUNTING) or place.follows(MEASURED)
    is_end = _MONTH_BEFORE.search(place.before) or place.follows(_MONTH_AFTER)
    return _year_month(place) if is_end or (is_padded and not is_amount) else None


def _month_day(place: Place) -> str | None:
    """Read "03-09", or "9/1" where something says that it is a date."""
    month, day = place.match["mo"], place.match["d"]
    if not _is_date("2000", month, day) or place.follows(_HANGS_TOGETHER):
        return None
    sep = place.match["sep"]
    is_padded = month[0] == "0" or (len(month) == 2 and day[0] == "0")
    if sep == ".":
        is_padded = month[0] == "0" and len(day) == 2
    is_shown = _DATING.search(place.before) or place.follows(_DATED)
    is_due = sep != "." and place.follows(_DUE)
    if not is_shown and not is_due and not is_padded:
        return None
    return f"{cardinal(month)}月{cardinal(day)}日"


def _event(place: Place) -> str | None:
    """Read a day that is a name: 九一八事变, 六一八大促, 双十一."""
    first, second = place.match["a"], place.match["b"]
    if place.before.endswith("双"):
        return None
    is_historic = f"{first}.{second}" in _HISTORIC or not second
    is_event = place.follows(_EVENT) or (is_historic and place.follows(_HISTORY))
    if place.match["sep"] != "·" and not is_event:
        return None
    if first == second and len(first) == 2:
        return "双" + cardinal(first)
    return "十一" if (first, second) == ("10", "1") else digits(first) + digits(second)


def _years(place: Place) -> str | None:
    """Read "2020-2023" as two years."""
    first, second = place.match["a"], place.match["b"]
    if not 1000 <= int(first) < int(second) <= 2199 or place.follows(_HANGS_TOGETHER):
        return None
    is_century = first[:2] in ("18", "19", "20") and second[:2] in ("18", "19", "20", "21")
    is_amount = place.follows(COUNTING) or place.follows(MEASURED)
    if place.before[-1:] in ("(", "（") and place.after[:1] in (")", "）"):
        return f"{digits(first)}到{digits(second)}"  # 明朝（1368—1644）
    if not place.follows(_YEAR_WORD) and (is_amount or not is_century):
        return None
    sep = place.match["sep"].strip()
    return digits(first) + (sep if sep in ("至", "到") else "到") + digits(second)


def _season(place: Place) -> str | None:
    if not place.follows(_OF_YEARS):
        return None
    return f"{digits(place.match['a'])}到{digits(place.match['b'])}"


def _year(place: Place) -> str | None:
    """Read 2008年 digit by digit, but 1000年 and 2000年的历史 as an amount."""
    written = place.match["y"]
    if _ERA.search(place.before):
        return digits(written)
    if place.follows(_MONTH_FOLLOWS):
        return digits(written)
    if len(written) == 2 and _REIGN.search(place.before):
        return None
    if len(written) == 3:
        is_range = place.follows(_YEAR_AFTER) or _YEAR_IN_FRONT.search(place.before)
        return digits(written) if is_range and written[1:] != "00" else None
    if written[0] == "0":
        return digits(written)
    rest = place.after.strip().removeprefix("年")
    is_long_ago = _LONG_AGO.match(rest) is not None
    if len(written) == 2:
        is_year = written[0] in "56789" and written[1] != "0"
        if _YEAR_PART.match(rest):
            return digits(written)
        return digits(written) if is_year and not _is_lasting(place, rest) else None
    if not 1 <= int(written[0]) <= 2 or written == "1000":
        return None
    is_round = written.endswith("00")
    if is_round and (is_long_ago or _LASTED.search(place.before)):
        return None
    return None if written[1:] != "000" and re.match("的?历史", rest) else digits(written)


def _is_lasting(place: Place, rest: str) -> bool:
    return bool(_LONG_AGO.match(rest) or _LASTED.search(place.before) or rest[:1] in ("后", "前"))


def _decade(place: Place) -> str | None:
    written = place.match["y"]
    return digits(written) if len(written) == 4 or written == "00" else cardinal(written)


def _generation(place: Place) -> str | None:
    """Read 90后, those born in the nineties; not "30后" behind another number."""
    return None if re.search(r"[\d.第满过到超]$", place.before) else digits(place.match["y"])


def _bare_year(place: Place) -> str | None:
    is_announced = _YEAR_BEFORE.search(place.before) and not place.follows(COUNTING)
    return digits(place.match["y"]) if is_announced or place.follows(_YEAR_LIKE) else None


def _clock(place: Place) -> str | None:
    """Read a time of day, or, where the words around say so, a duration; a score is neither."""
    if RATIO_BEFORE.search(place.before) or place.follows(SCORED_AFTER):
        return None
    hour, minute, second = place.match["h"], place.match["m"], place.match["s"]
    fraction = place.match["f"]
    if _LASTING.search(place.before):
        return _duration(hour, minute, second, fraction)
    if int(hour) == 24 and (minute, second or "00") != ("00", "00"):
        return None
    words = number(hour.removeprefix("0") or "0", is_counted=True) + "点"
    if second:
        words += f"{_two_digits(minute)}分{_two_digits(second)}"
        return words + (f"点{digits(fraction)}秒" if fraction else "秒")
    if place.after[:1] == ("点" if minute == "00" else "分"):  # 9:05分
        return (words + _two_digits(minute)) if minute != "00" else words[:-1]
    return words if minute == "00" else f"{words}{_two_digits(minute)}分"


def _duration(first: str, second: str, third: str | None, fraction: str | None) -> str:
    parts = [first, second] if third is None else [first, second, third]
    names = ("小时", "分", "秒")[-len(parts) :]
    words = [
        number(part.lstrip("0") or "0", is_counted=True) + name
        for part, name in zip(parts, names, strict=True)
    ]
    if fraction:
        words[-1] = f"{words[-1][:-1]}点{digits(fraction)}秒"
    return "".join(words)


def _two_digits(written: str) -> str:
    """Say minutes or seconds: 零五, 三十, but 零 for 00."""
    if written == "00":
        return "零"
    return "零" + digits(written[1]) if written[0] == "0" else cardinal(written)


def _lap(place: Place) -> str | None:
    """Read "1:58.32", minutes and seconds."""
    return f"{place.part('m')}分{number(place.match['s'].lstrip('0') or '0')}秒"


def _hours_and_minutes(place: Place) -> str:
    hours, minutes, seconds = place.match.groups()
    words = number(hours, is_counted=True) + "小时" + number(minutes, is_counted=True)
    return f"{words}分{number(seconds, is_counted=True)}秒" if seconds else words + "分钟"


_NOT_MORE = r"(?![\d:：]|\.\d)"

DIGIT_RULES: tuple[Rule, ...] = (
    rule(
        rf"(?P<y>[12]\d{{3}})-(?P<mo>\d\d)-(?P<d>\d\d)T{_CLOCK}"
        r"(?P<z>Z|[-+]\d\d:?\d\d)?(?![\dA-Za-z])",
        _timestamp,
    ),
    rule(r"(?P<y>\d{4})(?P<sep>[-/.])(?P<mo>\d{1,2})(?P=sep)(?P<d>\d{1,2})(?!\d|\.\d)", _full_date),
    rule(r"(?P<a>\d{1,2})(?P<sep>[-/.])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4})(?!\d|\.\d)", _day_first),
    rule(r"(?P<y>[12]\d{3})(?P<mo>\d\d)(?P<d>\d\d)(?!\d)", _compact_date),
    rule(r"(?P<y>[12]\d{3})[-/](?P<mo>0[1-9]|1[0-2])(?!\d|[-/.:]\d)", _year_month),
    rule(r"(?P<y>(?:19|20)\d\d)\.(?P<mo>0?[1-9]|1[0-2])(?!\d|\.\d)", _month_behind_stop),
    rule(r"(?P<mo>0[1-9]|1[0-2])[-/](?P<y>(?:19|20)\d\d)(?!\d|[-/.:]\d)", _year_month),
    rule(rf"(?P<a>\d{{4}})(?P<sep>{RANGE})(?P<b>\d{{4}})(?!\d)", _years),
    rule(r"(?P<a>(?:19|20)\d\d)[-/](?P<b>\d\d)(?!\d)", _season),
    rule(
        rf"(?P<y>(?:19|20)\d\d)[./](?=\d{{1,2}}(?:{RANGE}\d{{1,2}})? ?月)",
        lambda place: digits(place.match["y"]) + "年",
    ),
    rule(r"(?P<mo>\d{1,2})(?P<sep>[-/.])(?P<d>\d{1,2})(?!\d)", _month_day),
    rule(r"(?P<a>\d{1,2})(?P<sep>[.·])(?P<b>\d{1,2})(?!\d)", _event),
    rule(r"(?P<a>315|618|911|918|512|1212)(?P<sep>)(?P<b>)(?!\d)", _event),
    rule(r"(?P<y>(?:1\d|20)?\d0)(?= ?年代)", _decade),
    rule(r"(?P<y>\d[05])(?=后(?!来|的?\d)|[、和/]\d[05]后)", _generation),
    rule(r"(?P<y>\d{2,4})(?= ?年(?!级|薪|龄|多))", _year),
    rule(r"(?P<y>19\d\d|20\d\d)(?!\d)", _bare_year),
    rule(r"(?<=\d[秒米])\d\d(?!\d)", lambda place: digits(place.match[0])),
    rule(r"0(?P<n>[1-9])(?= ?[月日号时点车])", lambda place: place.part("n")),
    rule(r"(?P<m>\d{1,2}):(?P<s>[0-5]\d\.\d{1,3})(?!\d)", _lap),
    rule(rf"{_CLOCK}{_NOT_MORE}", _clock),
    rule(
        r"(\d{1,3}) ?(?:h|hr) ?(\d{1,2}) ?(?:min|m)(?: ?(\d{1,2}) ?(?:sec|s))?(?![A-Za-z])",
        _hours_and_minutes,
    ),
)
"""Rules at the first digit of a number."""
