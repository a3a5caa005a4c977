"""What Mandarin reads although it has Latin letters: 5 km, T3航站楼, IV期, 1920x1080.

Language spans ask here, in sentences that have Han characters.
"""

import re
from collections.abc import Iterator

from .mandarin_codes import CODE_WORDS, PROVINCES, WEAK_CODE_WORDS
from .mandarin_formulas import ROMAN
from .mandarin_units import CURRENCY, PERCENT, UNIT, UNITS

_NUMBER = r"\d[\d.,]{0,30}"
_DASH = "[-~–—−～]"
_SPACED = "|".join(
    re.escape(unit)
    for unit in sorted(UNITS, key=len, reverse=True)
    if len(unit) > 1 or unit in "mgshLWV℃℉°"
)
"""Units that may stand apart from their number: "A" and "t" are seldom units there."""

_LONG = "|".join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True) if len(unit) > 1)
"""Units that no spelled letter can be taken for."""

_NUMERALS = "零一二三四五六七八九十百千万亿两几半数多"
_BEFORE = r"(?<![A-Za-z\d.])"
_NAMED_BY_NUMBER = (
    "层|座|栋|幢|出口|口(?!罩)|区|航站楼|次|号|航班|班|路|线|级|型|楼|单元|室|房|车厢|列|展位|展厅|"
    "[\u4e00-\u9fff]{2,4}高速|会议|教室|纸|峰会|动车|高铁|登机口|检票口|站台"
)
_LINK = "(?:号码?|[为是：: ]){0,3}"
_POWER = r"(?: ?[×x*] ?10(?:\^-?\d{1,3}|[⁻⁰¹²³⁴-⁹]{1,4}))?"
_DURATION = r"\d{1,3} ?hr? ?\d{1,2} ?m(?:in)?(?: ?\d{1,2} ?s(?:ec)?)?"
_MONEY = rf"(?:{CURRENCY} ?)?"
_UNIT = rf"(?:(?: (?=(?:{_SPACED})(?![A-Za-z\d²³])))?{UNIT}|{PERCENT}|[kw][1-9]?(?![A-Za-z\d]))"
_PATTERNS = tuple(
    re.compile(pattern, re.ASCII)
    for pattern in (
        r"(?P<zh>\d{4}-\d\d-\d\dT\d[\d:.]{3,14}(?:Z|[-+]\d\d:?\d\d)?)(?![A-Za-z\d])",
        rf"{_BEFORE}(?P<zh>{_DURATION})(?![A-Za-z])",
        rf"{_BEFORE}(?!(?:1[5-9]|20)\d0s)"
        rf"(?P<zh>[-+−±~]?{_MONEY}{_NUMBER}(?: ?{_DASH} ?{_MONEY}{_NUMBER})?{_POWER}{_UNIT}"
        r"(?:/(?=[\u4e00-\u9fff]))?\+?)",
        rf"{_BEFORE}(?P<zh>\d{{1,4}}(?:\.\d{{1,6}})?{_POWER[:-1]}/{UNIT})",
        r"(?<![A-Za-z\d.:])(?P<zh>\d{1,2}:[0-5]\d(?::[0-5]\d)?)(?!\d|:|\.\d| ?[AaPp]\.?[Mm])",
        r"(?<![A-Za-z\d.])(?P<zh>20\d\d([-/.])\d{1,2}\2\d{1,2})(?![A-Za-z\d])",
        r"(?<![A-Za-z])[A-Z]{2,5}(?:/[A-Z])? ?(?P<zh>\d{3,6}[-—:：](?:19|20)\d\d)(?![A-Za-z\d])",
        r"(?<![A-Za-z\d.])(?P<zh>\d{1,3}(?!AM|PM|ST|ND|RD|TH)[A-Z]{2,4})(?![A-Za-z\d])",
        r"(?<![A-Za-z\d.])(?P<zh>[12]m\d\d)(?![A-Za-z\d])",
        r"(?<![A-Za-z\d.])(?P<zh>(?:20)?\d\d[QH][1-4])(?![A-Za-z\d])",
        r"(?<![A-Za-z\d.])(?P<zh>\d{1,4}(?:\.\d{1,6})?(?:e[-+−]?|E[-+−])\d{1,3})(?![A-Za-z\d.])",
        rf"(?<![A-Za-z\d])(?P<zh>{CURRENCY} ?{_NUMBER}"
        r"(?:(?:[kKMBw]| ?(?:[mb]illion|thousand))(?![A-Za-z\d]))?)",
        rf"(?!0[xX])(?P<zh>{_NUMBER} ?[xX] ?\d[\d.]{{0,30}}(?:{UNIT})?)(?![A-Za-z\d])",
        r"(?<!\d)(?P<zh>\d{17}[Xx])(?![A-Za-z\d])",
        rf"(?<![A-Za-z])[A-Z]{{1,3}}-?(?P<zh>\d{{1,5}})(?=[A-Z]? ?(?:{_NAMED_BY_NUMBER}))",
        rf"(?:{WEAK_CODE_WORDS}|{CODE_WORDS}){_LINK}[A-Za-z]{{1,8}}(?P<zh>-?\d{{1,16}})(?![A-Za-z\d])",
        rf"(?:{CODE_WORDS}){_LINK}(?P<zh>\d{{2,16}})(?!\d)",
        rf"{_BEFORE}(?P<zh>\d{{1,4}}(?:\.\d{{1,2}})?[A-Z](?![A-Za-z\d])\+?)",
        rf"{_BEFORE}(?P<zh>\d[\d.]{{0,12}}° ?[NSEW])(?![A-Za-z])",
        r"(?<![\dA-Za-z])(?P<zh>1080|2160|1440|720|480|360)[pPi](?![A-Za-z])",
        r"(?<![A-Za-z])PM ?(?P<zh>2\.5|10)(?![\dA-Za-z])",
        r"(?<![A-Za-z\d])(?:[A-Za-z]|[A-Z]{2,5})[\d²]?"
        r"(?P<zh> ?[=≠≈<>≤≥] ?[-−]?(?:\d[\d.:/]{0,30}\d|\d)"
        r"(?:[eE][-+−]?\d{1,3}|%)?)(?![A-Za-z])",
        r"(?<![A-Za-z])[A-Z](?P<zh>\+\d{1,2})(?![A-Za-z\d])",
        r"维生素 ?[A-K](?P<zh>\d{1,2})(?!\d)",
        r"(?<![\dA-Za-z])(?P<zh>23{3,19}|6{3,9})(?![\dA-Za-z])",
        r"(?<![A-Za-z\d.])(?P<zh>\d{1,3}(?:\.\d)?V ?\d{1,2}(?:\.\d{1,2})?A)(?![A-Za-z\d])",
        r"(?<![A-Za-z\d.])(?P<zh>\d{1,2}['′]\d\d[\"″](?:/km)?)(?![A-Za-z\d])",
        r"(?<![^\s：；。:;，])(?P<zh>\d{1,2}\.)(?=[\u4e00-\u9fff])",
        r"[图表式] ?(?P<zh>\d{1,3})(?=[(（][a-z][)）])",
        r"ISBN[:： -]{0,2}(?P<zh>97[89][-\d]{10,14}X?)",
        r"(?<=[A-Za-z] )(?P<zh>\d{1,4})(?=[、和或及]\d)",
        r"(?<![A-Za-z\d.])(?P<zh>\d{4,6}\.)(?=(?:HK|SH|SZ|SS|BJ)(?![A-Za-z]))",
        rf"(?P<zh>{ROMAN})",
        rf"(?<=[{_NUMERALS}每])(?P<zh>[mgsh]| ?(?:{_LONG}))(?![A-Za-z\d])",
        rf"(?<=[元块次个万亿])/(?P<zh>{UNIT})",
        rf"单位[为是：: ]{{0,3}}(?P<zh>(?:元/)?{UNIT})",
        r"(?<![A-Za-z\d])(?P<zh>\d{1,2}[vV]\d{1,2})(?![A-Za-z\d])",
    )
)
_PLATE = re.compile(rf"[{PROVINCES}][A-Z] ?·? ?[A-Z\d]{{5,6}}(?![A-Za-z\d])", re.ASCII)
_MIXED_CODE = re.compile(
    rf"(?:{CODE_WORDS}){_LINK}(?P<code>(?!0[xX])(?=[A-Za-z]*\d)[A-Za-z\d]{{4,24}})(?![A-Za-z\d-])",
    re.ASCII,
)
_CHOICE = re.compile(r"(?<![A-Za-z\d.])\d{1,3}\.(?=[A-D](?![A-Za-z\d.]))", re.ASCII)
""""2.B", the answer to a question."""

_LATIN_BEFORE = re.compile(r"[A-Za-z],? $")
_LATIN_AFTER = re.compile(r"[.,]? ?[A-Za-z]")
_CAN_HOLD = re.compile(rf"[\dIVXLC{_NUMERALS}每元块次个位]", re.ASCII)


def islands(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Return the parts of a sentence that are Mandarin whatever their letters say.

    A quantity between two Latin words belongs to them and is none.

    Args:
        text: The whole text.
        start: Where the sentence begins.
        end: Where it ends.
    """
    if not _CAN_HOLD.search(text, start, end):
        return
    for pattern in _PATTERNS:
        for match in pattern.finditer(text, start, end):
            first, last = match.span("zh")
            before = text[max(start, first - 3) : first]
            if not (_LATIN_BEFORE.search(before) and _LATIN_AFTER.match(text, last, end)):
                yield first, last
    for code in _MIXED_CODE.finditer(text, start, end):
        if re.search("[a-z]{2}", code["code"]):
            continue  # the name of a model, such as iPhone15Pro
        for run in re.finditer("[0-9]+", code["code"]):
            yield code.start("code") + run.start(), code.start("code") + run.end()
    for choice in _CHOICE.finditer(text, start, end):
        yield choice.span()
    for plate in _PLATE.finditer(text, start, end):
        yield plate.start() + 2, plate.end()
