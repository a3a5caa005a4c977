"""Short ways in which people write numbers in chats, forms, laws and reports, in Mandarin."""

import re

from .mandarin_amounts import RANGE
from .mandarin_codes import names_code
from .mandarin_numbers import cardinal, digits, number
from .mandarin_place import Place, Rule, rule
from .mandarin_units import COUNTING, MEASURED

_TOLD = re.compile(r"[共约达为是有近超过到至计第\d.=＝]$|[花用卖赚付]了$")
"""Words in front of a number that is an amount."""

_LIST_HEAD = re.compile(r"(?:^|[\s：:，,；;。（(])$")
_FULL_DATE = re.compile(rf"\d{{4}}\.\d{{1,2}}\.\d{{1,2}}{RANGE}$|\.\d{{1,2}}\.\d{{1,2}}{RANGE}$")


def _slang(place: Place) -> str | None:
    """Read 666 and 23333, which praise and laugh, digit by digit."""
    if place.follows(COUNTING) or place.follows(MEASURED) or _TOLD.search(place.before):
        return None
    return digits(place.match[0])


def _short_scale(place: Place) -> str | None:
    """Read 8k5 as eight and a half thousand, 1w2 as twelve thousand."""
    if place.follows(COUNTING) or place.follows(MEASURED):
        return None
    count, rest = place.match["n"], digits(place.match["rest"])
    if place.match["scale"] == "w":
        return f"{number(count, is_counted=True)}万{rest}"
    return cardinal(f"{count}000") + rest


def _height(place: Place) -> str:
    return f"{place.part('m')}米{digits(place.match['cm'])}"


def _quarter(place: Place) -> str:
    """Read 2024Q3 and 24H1; the letter stays what it is."""
    year = place.match["y"]
    return f"{digits(year)}{'年' if len(year) == 4 else ''} {place.match['part']} {place.part('n')}"


def _power_of_ten(place: Place) -> str | None:
    """Read 3e-4; "12E3" may be a seat."""
    mantissa, sign, letter = place.match["m"], place.match["sign"], place.match["e"]
    if letter == "E" and not sign and "." not in mantissa:
        return None
    power = ("负" if sign in ("-", "−") else "") + place.part("x")
    return f"{number(mantissa)}乘十的{power}次方"


def _short_year(place: Place) -> str | None:
    return digits(place.match[0]) if place.before[-1:] in ("'", "’", "‘") else None


def _less(place: Place) -> str | None:
    """Read 满300-40 and 5-3等于2 as subtractions."""
    is_asked = place.follows(re.compile(" ?(?:等[于於]|得几|是多少|等多少)"))
    is_off = place.before.endswith("满") and int(place.match["a"]) > int(place.match["b"])
    return f"{place.part('a')}减{place.part('b')}" if is_asked or is_off else None


def _choice(place: Place) -> str | None:
    """Read "2.B", the answer to a question."""
    return place.part("n") + "、" if _LIST_HEAD.search(place.before) else None


def _day(place: Place) -> str | None:
    """Read 9.1开课."""
    month, day = int(place.match["mo"]), int(place.match["d"])
    is_day = 1 <= month <= 12 and 1 <= day <= 31
    return f"{place.part('mo')}月{place.part('d')}日" if is_day else None


def _end_of_days(place: Place) -> str | None:
    """Read the end of 2024.7.26—8.11."""
    return _day(place) if _FULL_DATE.search(place.before) else None


def _share(place: Place) -> str:
    """Read the number of a share: 00700.HK."""
    return digits(place.match["n"]) + "点"


def _entrance(place: Place) -> str | None:
    """Read A栋-3-501: no minus, and no range."""
    if not re.search("(?:[栋座幢]|号楼|单元) ?$", place.before):
        return None
    parts = place.match[0].strip("-−").split("-")
    return "".join(
        "杠" + (cardinal(one) if len(one) < 3 else digits(one, place.one)) for one in parts
    )


def _written_together(place: Place) -> str | None:
    """Read 20250115 as a day, unless it is an amount or a code."""
    is_amount = place.follows(COUNTING) or place.follows(MEASURED) or _TOLD.search(place.before)
    if is_amount or names_code(place.before):
        return None
    return f"{digits(place.match['y'])}年{place.part('mo')}月{place.part('d')}日"


def _days(place: Place) -> str | None:
    """Read 11.1-11.3 as days where something says that it is no amount."""
    parts = place.match.groups()[:2] + place.match.groups()[3:]
    month, day, last_month, last_day = (int(part or 0) for part in parts)
    is_possible = 1 <= month <= last_month <= 12 and 1 <= day <= 31 and 1 <= last_day <= 31
    is_shown = _TIMED.search(place.before) or place.follows(_IS_TIMED)
    if not is_possible or not is_shown:
        return None
    first, second = (
        f"{cardinal(str(m))}月{cardinal(str(d))}日"
        for m, d in ((month, day), (last_month, last_day))
    )
    return f"{first}到{second}"


def _pace(place: Place) -> str | None:
    """Read 5'30" as a time: there are no thirty inches beside feet."""
    minutes, seconds = place.match["m"], place.match["s"]
    if int(seconds) < 12 and not _TIMING.search(place.before):
        return None
    return f"{cardinal(minutes)}分{cardinal(seconds)}秒"


def _sprint(place: Place) -> str | None:
    """Read 10"5, the time of a hundred metres."""
    is_time = _TIMING.search(place.before) or place.follows(re.compile("的?成绩"))
    is_time = is_time or place.before.rstrip().endswith("米")
    return f"{place.part('s')}秒{digits(place.match['f'])}" if is_time else None


def _standard(place: Place) -> str | None:
    """Read the number and the year of a standard: GB 2762-2022, ISO 9001:2015."""
    if not re.search(r"[A-Z]{2,5}(?:/[A-Z]{1,2})? ?$", place.before):
        return None
    joint = "冒号" if place.match["joint"] in ":：" else "杠"
    return f"{digits(place.match['n'])}{joint}{digits(place.match['y'])}"


def _power_supply(place: Place) -> str:
    """Read 12V5A."""
    volts, amperes = (number(place.match[part], is_counted=True) for part in ("v", "a"))
    return f"{volts}伏{amperes}安"


def _aircraft(place: Place) -> str | None:
    """Read 波音737-800."""
    if not re.search("(?:波音|空客|麦道) ?$", place.before) or place.follows(COUNTING):
        return None
    more = place.match["more"]
    return digits(place.match["n"]) + (f"杠{cardinal(more)}" if more else "")


def _titled_year(place: Place) -> str | None:
    """Read the year that is a title: 《1984》."""
    return digits(place.match[0]) if place.before.endswith("《") else None


_NAMES = re.compile(
    "(?<![0-9])(?:[歼运直轰强图苏]|东风|长征|神舟|天舟|嫦娥|天问|红旗|鹰击|巨浪|霹雳|翼龙|彩虹|附件|方案|"
    "阶段|模块|任务|场景|步骤|实验|样本|案例)$"
)
"""Names that a hyphen joins to their number: 歼-20."""


def _joined(place: Place) -> str | None:
    return "" if _NAMES.search(place.before) and not place.said else None


def _bracketed_code(place: Place) -> str:
    """Read the number of a share: 贵州茅台(600519)."""
    return place.match[0][0] + digits(place.match[0], place.one)


def _bracketed_year(place: Place) -> str | None:
    """Read the year of a document's number: （2023）京0105民初, 国发〔2023〕12号."""
    return place.match[0].replace(place.match["y"], digits(place.match["y"]))


def _bracketed_number(place: Place) -> str:
    """Read 第（3）项 and 高二（3）班 without a pause."""
    return place.part("n") if place.match["n"] else place.match["han"]


_TIMED = re.compile("(?:时间|日期|期间|假期?|活动|预[售定]|展期|工期|报名)[为是：: （(]{0,2}$")
_IS_TIMED = re.compile(" ?(?:放假|付|期间|活动|预[售定]|报名|截止|上映|展出|[停休开])")
_TIMING = re.compile("(?:配速|用时|耗时|时长|成绩|跑出|时间)[为是约了：: ]{0,2}$")
_NUMBERED = r"[(（] ?(?:(?P<n>\d{1,3})|(?P<han>[一二三四五六七八九十]{1,3})) ?[)）]"

DIGIT_RULES: tuple[Rule, ...] = (
    rule(r"(?:6{3,9}|5201314|1314520|520(?=[快表告]))(?!\d|[-.:/]\d)", _slang),
    rule(r"23{3,19}(?!\d|[-.:/]\d)", _slang),
    rule(r"(?P<n>\d{1,3})(?P<scale>[kw])(?P<rest>[1-9])(?![\dA-Za-z.])", _short_scale),
    rule(r"(?P<m>[12])m(?P<cm>\d\d)(?![\dA-Za-z])", _height),
    rule(r"(?P<y>(?:20)?\d\d)(?P<part>[QH])(?P<n>[1-4])(?![A-Za-z\d])", _quarter),
    rule(
        r"(?P<m>\d{1,4}(?:\.\d{1,6})?)(?P<e>[eE])(?P<sign>[-+−]?)(?P<x>\d{1,3})(?![A-Za-z\d.])",
        _power_of_ten,
    ),
    rule(r"\d\d(?= ?[年级届])", _short_year),
    rule(r"(?P<a>\d{1,6})[-−](?P<b>\d{1,6})(?![\d.:/-])", _less),
    rule(r"(?P<n>\d{1,3})\.(?=[A-D](?![A-Za-z\d.]))", _choice),
    rule(r"(?P<mo>\d{1,2})\.(?P<d>\d{1,2})(?![\d.])", _end_of_days),
    rule(
        r"(?P<mo>\d{1,2})\.(?P<d>\d{1,2})(?= ?(?:[开停]课|开学|开营|放假|上映|报名|入住|离店))",
        _day,
    ),
    rule(r"(?P<v>\d{1,3}(?:\.\d)?)V ?(?P<a>\d{1,2}(?:\.\d{1,2})?)A(?![A-Za-z\d])", _power_supply),
    rule(r"(?P<n>\d{3})(?:-(?P<more>\d{2,4}))?(?![\d.])", _aircraft),
    rule(r"(?:19|20)\d\d(?![\d年])", _titled_year),
    rule(r"20\d{5}(?= ?[期号])", lambda place: digits(place.match[0])),
    rule(r"(?P<n>\d{4,6})\.(?=(?:HK|SH|SZ|SS|BJ)(?![A-Za-z]))", _share),
    rule(rf"(\d{{1,2}})\.(\d{{1,2}})({RANGE})(\d{{1,2}})\.(\d{{1,2}})(?![\d.])", _days),
    rule(r"(?P<m>\d{1,3})['′’] ?(?P<s>[0-5]\d)(?:[\"″”]|''|′′|’’)", _pace),
    rule(r"(?P<s>\d{1,2})(?:[\"″”]|''|′′|’’)(?P<f>\d{1,2})(?!\d)", _sprint),
    rule(r"(?P<n>\d{3,6})(?P<joint>[-—:：])(?P<y>(?:19|20)\d\d)(?![\d.:-])", _standard),
    rule(
        r"(?P<y>(?:19|20)\d\d)(?P<mo>0[1-9]|1[0-2])(?P<d>0[1-9]|[12]\d|3[01])"
        r"(?!\d|[-.,/:]\d| ?[A-Za-z])",
        _written_together,
    ),
    rule(r"[1-9][1-9](?= ?折)", lambda place: digits(place.match[0])),
)
"""Rules at the first digit of a number, before all others."""

BRACKET_RULES: tuple[Rule, ...] = (
    rule(rf"(?<=第){_NUMBERED}(?=[项款条类种点目])", _bracketed_number),
    rule(rf"(?<=[一二三四五六七八九初高级]){_NUMBERED}(?=班)", _bracketed_number),
    rule(r"[(（]\d{6}(?=[)）])", _bracketed_code),
    rule(r"[(（〔\[](?P<y>19[4-9]\d|20[0-4]\d)[)）〕\]](?! ?[人元个])", _bracketed_year),
)
"""Rules at an opening bracket."""

SIGN_RULES: tuple[Rule, ...] = (
    rule(r"[-−]\d{1,4}(?:-\d{1,5}){0,2}(?![\d.-])", _entrance),
    rule(r"[-−](?=\d{1,4}(?![\d.%‰℃°]))", _joined),
)
"""Rules at a sign, before all others."""
