"""Signs that no rule has read: each is said in the language around it, or left out with a note.

The rules of a language read signs with a meaning in their place first ("5 < 7", "3 × 4"). What they
leave comes here, so that no sign vanishes in silence.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from .aligned import Edit
from .context import PLACEHOLDER
from .language import Spoken

_PUNCTUATION = "-\\s\\w,.?!;:'\"()\\[\\]{}…—–‐‑，。？！；：、“”‘’（）《》〈〉【】〔〕「」『』〖〗·"
"""What the model reads, or later stages order: never touched here, except "_"."""

_LONE_MINUS = "−"
_ODD = re.compile(rf"([^{_PUNCTUATION}{PLACEHOLDER}]|_)\1*")
_SPECIAL_NUMBER = re.compile(
    "[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070\u2074-\u2079\u2080-\u2089\u2150-\u2189\u2460-\u249b\u24ea-\u24ff"
    "\u2776-\u2793\u3220-\u3229\u3280-\u3289\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u0e50-\u0e59]"
)
_DECORATION = 3
"""A sign repeated this often is a line or an ornament, not a sign."""


class Reading(NamedTuple):
    """What a sign is called; None in one language: there it has no name."""

    zh: str | None
    en: str | None


READINGS = {
    "&": Reading("和", "and"),
    "@": Reading("艾特", "at"),
    "#": Reading("井号", "hash"),
    "%": Reading("百分号", "percent"),
    "‰": Reading("千分号", "per mille"),
    "$": Reading("美元", "dollars"),
    "€": Reading("欧元", "euros"),
    "£": Reading("英镑", "pounds"),
    "¥": Reading("元", "yen"),
    "₩": Reading("韩元", "won"),
    "₹": Reading("卢比", "rupees"),
    "₽": Reading("卢布", "rubles"),
    "₿": Reading("比特币", "bitcoin"),
    "¢": Reading("美分", "cents"),
    "+": Reading("加", "plus"),
    _LONE_MINUS: Reading("减", "minus"),
    "⁻": Reading("负", "minus"),
    "⁺": Reading("正", "plus"),
    "±": Reading("正负", "plus or minus"),
    "×": Reading("乘以", "times"),
    "∕": Reading("除以", "divided by"),
    "∗": Reading("乘以", "times"),
    "⋅": Reading("乘以", "times"),
    "∙": Reading("乘以", "times"),
    "≦": Reading("小于等于", "is at most"),
    "≧": Reading("大于等于", "is at least"),
    "≅": Reading("全等于", "is congruent to"),
    "⊆": Reading("包含于", "is a subset of"),
    "⊃": Reading("包含", "is a superset of"),
    "⊇": Reading("包含", "is a superset of"),
    "÷": Reading("除以", "divided by"),
    "=": Reading("等于", "equals"),
    "≠": Reading("不等于", "is not equal to"),
    "≈": Reading("约等于", "is about"),
    "≡": Reading("恒等于", "is identical to"),
    "<": Reading("小于", "is less than"),
    ">": Reading("大于", "is greater than"),
    "≤": Reading("小于等于", "is at most"),
    "≥": Reading("大于等于", "is at least"),
    "≪": Reading("远小于", "is much less than"),
    "≫": Reading("远大于", "is much greater than"),
    "∞": Reading("无穷大", "infinity"),
    "√": Reading("根号", "the square root of"),
    "∑": Reading("求和", "the sum of"),
    "∏": Reading("求积", "the product of"),
    "∫": Reading("积分", "the integral of"),
    "∂": Reading("偏", "partial"),
    "∆": Reading("德尔塔", "delta"),
    "∈": Reading("属于", "is in"),
    "∉": Reading("不属于", "is not in"),
    "∅": Reading("空集", "the empty set"),
    "∩": Reading("交", "intersection"),
    "∪": Reading("并", "union"),
    "⊂": Reading("包含于", "is a subset of"),
    "∀": Reading("对任意", "for all"),
    "∃": Reading("存在", "there exists"),
    "∝": Reading("正比于", "is proportional to"),
    "∴": Reading("所以", "therefore"),
    "∵": Reading("因为", "because"),
    "∠": Reading("角", "angle"),
    "∥": Reading("平行于", "is parallel to"),
    "⊥": Reading("垂直于", "is perpendicular to"),
    "°": Reading("度", "degrees"),
    "℃": Reading("摄氏度", "degrees Celsius"),
    "℉": Reading("华氏度", "degrees Fahrenheit"),
    "Ω": Reading("欧姆", "ohms"),
    "→": Reading("到", "to"),
    "↑": Reading(None, "up"),
    "↓": Reading(None, "down"),
    "⇒": Reading("推出", "implies"),
    "⇔": Reading("等价于", "is equivalent to"),
    "§": Reading("节", "section"),
    "¶": Reading("段", "paragraph"),
    "№": Reading("号", "number"),
    "©": Reading("版权", "copyright"),
    "\\": Reading("反斜杠", "backslash"),
    "^": Reading(None, "caret"),
    "♯": Reading("升", "sharp"),
    "♭": Reading("降", "flat"),
}
"""Signs with a name. "/", "_" and "~" part what is around them; all others are left out."""

GREEK = {
    "α": Reading("阿尔法", "alpha"),
    "β": Reading("贝塔", "beta"),
    "γ": Reading("伽马", "gamma"),
    "δ": Reading("德尔塔", "delta"),
    "ε": Reading("艾普西隆", "epsilon"),
    "ζ": Reading("泽塔", "zeta"),
    "η": Reading("伊塔", "eta"),
    "θ": Reading("西塔", "theta"),
    "ι": Reading("约塔", "iota"),
    "κ": Reading("卡帕", "kappa"),
    "λ": Reading("拉姆达", "lambda"),
    "μ": Reading("缪", "mu"),
    "µ": Reading("缪", "mu"),
    "ν": Reading("纽", "nu"),
    "ξ": Reading("克西", "xi"),
    "π": Reading("派", "pi"),
    "ρ": Reading("柔", "rho"),
    "σ": Reading("西格马", "sigma"),
    "τ": Reading("陶", "tau"),
    "υ": Reading("宇普西隆", "upsilon"),
    "φ": Reading("斐", "phi"),
    "χ": Reading("希", "chi"),
    "ψ": Reading("普西", "psi"),
    "ω": Reading("欧米伽", "omega"),
}
"""Greek letters that stand alone, as in formulas; Greek words are a script like any other."""

_GREEK_LETTER = re.compile(
    r"(?<![\u0370-\u03ff\u1f00-\u1fff])[µΑ-Ωα-ω](?![\u0370-\u03ff\u1f00-\u1fff])"
)
_PARTS = frozenset("/_~")


def edits(text: str, start: int, end: int, language: Spoken) -> Iterator[Edit]:
    """Say or drop the signs of `text[start:end]`, a part that no other rule has touched.

    Args:
        text: The whole text.
        start: Where the part begins.
        end: Where it ends.
        language: The language around it.
    """
    for match in _ODD.finditer(text, start, end):
        yield from _sign(text, match, language)
    for match in _GREEK_LETTER.finditer(text, start, end):
        reading = GREEK.get(match[0].lower())
        name = reading and getattr(reading, language)
        if name:
            yield Edit(*match.span(), name)
    for match in _SPECIAL_NUMBER.finditer(text, start, end):
        yield Edit(*match.span(), _special(match[0], language))


def _sign(text: str, match: re.Match[str], language: Spoken) -> Iterator[Edit]:
    sign, (start, end) = match[1], match.span()
    if unicodedata.category(sign)[0] in "MLC" or sign in GREEK:
        return  # marks on letters of other scripts, and what has no shape, are for other stages
    reading = READINGS.get(sign)
    name = reading and getattr(reading, language)
    is_formula = sign == "$" and end - start > 1
    if name and end - start < _DECORATION and not is_formula:
        yield Edit(start, end, " ".join([name] * (end - start)))
    elif sign in _PARTS and end - start == 1 and _is_between_words(text, start, end):
        is_choice = sign == "/" and language == "zh" and not text.startswith("和/或", start - 1)
        yield Edit(start, end, "、" if is_choice else " ")
    else:
        yield Edit(start, end, "", "dropped_symbol")


def _is_between_words(text: str, start: int, end: int) -> bool:
    return start > 0 and text[start - 1].isalnum() and end < len(text) and text[end].isalnum()


_DIGIT_NAMES = {
    "zh": tuple("零一二三四五六七八九"),
    "en": ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
}


def _special(sign: str, language: Spoken) -> str:
    """Read a circled, raised or foreign digit, digit by digit."""
    names = _DIGIT_NAMES[language]
    plain = unicodedata.normalize("NFKC", sign)
    words = [names[unicodedata.decimal(one)] for one in plain if one.isdecimal()]
    return ("" if language == "zh" else " ").join(words)
