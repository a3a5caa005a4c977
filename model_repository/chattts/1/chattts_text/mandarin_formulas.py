"""Fractions, scores, ratios and formulas, and numerals that are not decimal, in Mandarin."""

import re

from .mandarin_amounts import NUMBER
from .mandarin_numbers import cardinal, digits, number
from .mandarin_place import Place, Rule, rule
from .mandarin_units import COUNTING, MEASURED, UNIT

_TEAMS = "比分|战胜|击败|战平|负于|不敌|大胜|险胜|完胜|胜|逆转|领先|落后|总分|以"
_LINK = "[为是约成了以]{0,2}[:： ]?$"
_SCORE_BEFORE = re.compile(rf"(?:{_TEAMS}){_LINK}")
RATIO_BEFORE = re.compile(rf"(?:{_TEAMS}|比例|配比|比值|缩放比?|画幅|宽高比?){_LINK}")
"""What stands before a score or a ratio."""

SCORED_AFTER = re.compile(
    r" ?(?:的?比[分例]|战胜|击败|获胜|取胜|险胜|大胜|完胜|胜|负|不敌|战平|领先|落后|逆转|淘汰|"
    r"横扫|稀释|混合|配[比制]|兑|分成|分账)"
)
"""What stands behind one."""

_PLACE = re.compile(r" ?(?:[室号栋幢座楼层门]|单元)")
_NUMBERED_BEFORE = re.compile(r"(?:[图表例题式件第座栋幢楼A-Za-z.\d]|单元) ?$")
_BLOOD_PRESSURE = re.compile(r"(?:血压|高压|低压|收缩压).{0,4}$")
_RESOLUTION = re.compile(r"(?:分辨率|像素|屏幕|画面|尺寸).{0,4}$")
_SCREENS = frozenset(
    map(str, (640, 720, 768, 800, 1024, 1080, 1280, 1366, 1440, 1920, 2160, 2560, 3840))
)
"""Widths and heights of screens, said digit by digit."""

_LISTED = re.compile(" ?(?:月(?!球|亮)|[号日级楼班]|年级)")
"""Behind 6/7 they say that it is two numbers."""

_WHOLE = 100
"""80/20, 50/50: two shares."""

_CHOICE = 5
"""So many parts of a unit are no fraction of it: 50/60Hz, 128/256GB."""

_OPERATORS = {
    "+": "加",
    "-": "减",
    "−": "减",
    "×": "乘",
    "x": "乘",
    "X": "乘",
    "*": "乘",
    "÷": "除以",
    "/": "除以",
    "=": "等于",
    "≈": "约等于",
    "≠": "不等于",
    "<": "小于",
    ">": "大于",
    "≤": "小于等于",
    "≥": "大于等于",
    "<=": "小于等于",
    ">=": "大于等于",
    "!=": "不等于",
    "==": "等于",
}
_WEAK = frozenset("-/")
"""Operators that alone make no formula: a range, a fraction."""

_OPERATOR = "|".join(map(re.escape, sorted(_OPERATORS, key=len, reverse=True)))
_RAISED = {"⁻": "-", **{raised: str(digit) for digit, raised in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}}
_POWER = r"(?:(?:\^|\*\*)-?\d{1,4}|[⁻⁰¹²³⁴-⁹]{1,4})"
_TERM = rf"(?:{NUMBER}){_POWER}?"
_PIECE = re.compile(
    rf"(?P<operator>(?:{_OPERATOR}))? ?(?P<sign>[-−])?(?P<term>{_TERM}) ?", re.ASCII
)
_VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5),
    "⅗": (3, 5), "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8),
    "⅞": (7, 8), "⅐": (1, 7), "⅑": (1, 9), "⅒": (1, 10),
}  # fmt: skip
VULGAR = "".join(_VULGAR)
"""Fractions that are one sign."""

ROMAN_SIGNS = "ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩⅪⅫⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅺⅻ"
_CIRCLED_SETS = (
    "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳",
    "⒈⒉⒊⒋⒌⒍⒎⒏⒐⒑⒒⒓⒔⒕⒖⒗⒘⒙⒚⒛",
    "⑴⑵⑶⑷⑸⑹⑺⑻⑼⑽⑾⑿⒀⒁⒂⒃⒄⒅⒆⒇",
    "❶❷❸❹❺❻❼❽❾❿",
    "㈠㈡㈢㈣㈤㈥㈦㈧㈨㈩",
    "㊀㊁㊂㊃㊄㊅㊆㊇㊈㊉",
)
NUMBERED = "".join(_CIRCLED_SETS)
"""Numbers in circles and brackets that are one sign."""

_NUMBERED = {sign: index for signs in _CIRCLED_SETS for index, sign in enumerate(signs, 1)}
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_ROMAN_CLASS = (
    r"(?:I{1,3}|I?[VX]|VI{1,3}|XI{1,3}|[XVI]{2,6}(?=世纪))[abABc]?"
    r"(?=[期级度型类章世]|[-~～–—][IVX]{1,4}[期级度型类章])"
)
ROMAN = rf"(?:(?<=第)[IVXLC]{{1,6}}|{_ROMAN_CLASS})"
"""Regular expression of a Roman numeral that Mandarin reads."""


def _fraction(place: Place) -> str | None:
    """Read 3/4 and 1 1/2; a quotient of 24/7 or of a blood pressure is none."""
    whole, over, under = place.match["whole"], place.match["over"], place.match["under"]
    if place.before.endswith("第"):
        return f"{cardinal(over)}斜杠{cardinal(under)}"
    if (over, under) == ("24", "7") and not whole:
        return "七天二十四小时"
    if "." in over:
        return f"{cardinal(under)}分之{number(over)}"
    if place.follows(_LISTED) or (int(over) + int(under) == _WHOLE and int(over) >= int(under)):
        return f"{cardinal(over)}、{cardinal(under)}"
    if int(over) >= _CHOICE and not whole and place.follows(MEASURED):
        return f"{cardinal(over)}、{cardinal(under)}"
    if _BLOOD_PRESSURE.search(place.before):
        return f"{cardinal(over)}，{cardinal(under)}"
    if place.after[:1] == "拍":
        return cardinal(under) + cardinal(over)
    words = f"{cardinal(under)}分之{cardinal(over)}"
    return f"{cardinal(whole)}又{words}" if whole else words


def _negative_fraction(place: Place) -> str | None:
    """Read "-1/2"; a hyphen between words is no minus."""
    if place.said or place.before[-1:].isascii() and place.before[-1:].isalnum():
        return None
    return f"负{place.part('under')}分之{place.part('over')}"


def _listed(place: Place) -> str:
    """Read "1/2/3" as a list."""
    return "、".join(number(part) for part in place.match[0].split("/"))


def _vulgar(place: Place) -> str:
    over, under = _VULGAR[place.match["sign"]]
    words = f"{cardinal(str(under))}分之{cardinal(str(over))}"
    whole = place.match["whole"]
    return f"{cardinal(whole)}又{words}" if whole else words


def _score(place: Place) -> str | None:
    """Read "3-2" as a score where teams are near, or where it is no range for it falls."""
    if not place.follows(SCORED_AFTER):
        if place.follows(COUNTING) or place.follows(MEASURED) or place.follows(_PLACE):
            return None
        is_falling = int(place.match["a"]) >= int(place.match["b"])
        is_numbered = _NUMBERED_BEFORE.search(place.before) is not None
        is_rising = not is_falling and not _is_after_score(place.before)
        if not _SCORE_BEFORE.search(place.before) and (is_numbered or is_rising):
            return None
    return f"{place.part('a')}比{place.part('b')}"


def _is_after_score(before: str) -> bool:
    """Say whether a score stands in front, as 6-4 does in the sets "6-4、6-7"."""
    score = re.search(r"(\d{1,3})[-–—−](\d{1,3})[、,，] ?$", before, re.ASCII)
    return score is not None and int(score[1]) > int(score[2])


def _ratio(place: Place) -> str:
    return "比".join(number(part) for part in re.split(" ?[:：∶] ?", place.match[0]))


def _formula(place: Place) -> str | None:
    """Read numbers joined by signs of arithmetic, at least one of them no hyphen and no slash."""
    pieces = list(_PIECE.finditer(place.match[0]))
    operators = [piece["operator"] or "" for piece in pieces[1:]]
    terms = [piece["term"] for piece in pieces]
    is_measured = place.follows(MEASURED) and not _split_power(terms[-1])[1]
    if not set(operators) - _WEAK or is_measured:
        return None
    if len(terms) == 2 and (_SCREENS.issuperset(terms) or _RESOLUTION.search(place.before)):
        return f"{digits(terms[0])}乘{digits(terms[1])}"
    has_fractions = bool(set(operators) & set("+-−×÷"))
    words: list[str] = []
    for piece in pieces:
        term = ("负" if piece["sign"] else "") + _term(piece["term"])
        if piece["operator"] == "/" and has_fractions:
            words[-1] = f"{term}分之{words[-1]}"
        else:
            words += [_OPERATORS[piece["operator"]]] if piece["operator"] else []
            words.append(term)
    return "".join(words)


def _term(written: str) -> str:
    base, power = _split_power(written)
    if not power:
        return number(base)
    if power == "2":
        return f"{number(base)}的平方"
    negative = "负" if power[0] == "-" else ""
    return f"{number(base)}的{negative}{cardinal(power.lstrip('-'))}次方"


def _split_power(written: str) -> tuple[str, str]:
    plain = "".join(_RAISED.get(sign, sign) for sign in written)
    raised = next((i for i, sign in enumerate(written) if sign in _RAISED or sign in "^*"), None)
    if raised is None:
        return written, ""
    return plain[:raised], plain[raised:].lstrip("^*")


def _power(place: Place) -> str | None:
    return _term(place.match[0]) if _split_power(place.match[0])[1] else None


def _roman(place: Place) -> str | None:
    """Read IV in IV期 and 第III章."""
    letters = place.match[0].rstrip("abABc")
    suffix = place.match[0][len(letters) :]
    value = 0
    for letter, following in zip(letters, letters[1:] + "I", strict=True):
        sign = -1 if _ROMAN_VALUES[letter] < _ROMAN_VALUES[following] else 1
        value += sign * _ROMAN_VALUES[letter]
    if value <= 0 or re.search("[A-Za-z]$", place.before):
        return None
    return cardinal(str(value)) + (f" {suffix}" if suffix else "")


def _roman_sign(place: Place) -> str:
    return cardinal(str(ROMAN_SIGNS.index(place.match[0]) % 12 + 1))


_HAN_NUMERAL = re.compile("[一二三四五六七八九十]$")


def _numbered(place: Place) -> str:
    """Read ① as 一; at the head of what it counts a pause follows."""
    words = cardinal(str(_NUMBERED[place.match["sign"]]))
    if _HAN_NUMERAL.search(place.before):
        words = "，" + words  # 步骤一②步骤二
    is_head = place.before[-1:] in (
        "",
        "\n",
        " ",
        "）",
        ")",
        "，",
        "。",
        "；",
        "：",
        "、",
        ",",
        ";",
        ":",
    )
    return words + ("、" if is_head and place.after.lstrip(" ")[:1].isalpha() else "")


DIGIT_RULES: tuple[Rule, ...] = (
    rule(
        rf"{_TERM}(?: ?(?:{_OPERATOR}) ?[-−]?{_TERM}){{1,12}}(?!\d|\.\d)(?: (?={UNIT}))?", _formula
    ),
    rule(rf"(?:{NUMBER}){_POWER}(?!\d)", _power),
    rule(
        r"(?:(?P<whole>\d{1,4})[ 又])?(?P<over>\d{1,4}(?:\.\d{1,2})?) ?[/⁄] ?(?P<under>\d{1,4})"
        r"(?![\d/]|\.\d)",
        _fraction,
    ),
    rule(r"\d{1,4}(?:/\d{1,4}){2,}(?!\d)", _listed),
    rule(rf"(?P<whole>\d{{1,4}}) ?(?P<sign>[{VULGAR}])", _vulgar),
    rule(r"(?P<a>\d{1,3})[-–—−](?P<b>\d{1,3})(?!\d|[-.]\d)", _score),
    rule(
        r"\d{1,7}(?:\.\d{1,4})?(?: ?[:：∶] ?\d{1,7}(?:\.\d{1,4})?){1,5}(?![\d:])",
        _ratio,
    ),
)
"""Rules at the first digit of a number."""

MINUS_RULES: tuple[Rule, ...] = (
    rule(r"[-−](?P<over>\d{1,4})/(?P<under>\d{1,4})(?![\d/]|\.\d)", _negative_fraction),
)
"""Rules at a sign."""

SIGN_RULES: tuple[Rule, ...] = (
    rule(rf"(?P<whole>)(?P<sign>[{VULGAR}])", _vulgar),
    rule(f"[{ROMAN_SIGNS}]", _roman_sign),
    rule(f"(?P<sign>[{NUMBERED}])", _numbered),
)
"""Rules at a numeral that is one sign."""

LETTER_RULES: tuple[Rule, ...] = (rule(ROMAN, _roman),)
"""Rules at a Latin letter."""
