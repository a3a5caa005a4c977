"""What an English reader says for what is written and is not words.

One pass from left to right: where something readable begins, the rules for its first character are
tried in order, and the first that fits is taken.
"""

import re
import unicodedata
from collections.abc import Iterable

from . import (
    english_amounts,
    english_codes,
    english_dates,
    english_money,
    english_units,
    english_words,
)
from .acronyms import ATOMS, is_shouting, read_name, read_shouted, read_word
from .aligned import Edit
from .context import PLACEHOLDER, Context
from .english_numbers import cardinal, model_number, ordinal, year
from .english_rules import Handler, Rule, groups, rule, whole
from .language import LATIN

_ITEM = re.compile(
    rf"[{LATIN}]+(?:'[{LATIN}]+)*|[0-9]|\.(?=[0-9]|NET\b)|!(?==)|(?<=[A-Z]);(?=[A-Z])|[^\s\w.,;:!?\"()…{PLACEHOLDER}]"
    rf"|[(](?=[0-9]{{3}}\))|[{english_words.ROMAN_SIGN}½⅓⅔¼¾⅕-⅞²³⁰¹⁴-⁹]"
)


_AMOUNT_BEFORE = re.compile(
    r"(?:\)|(?:\A|[^\w.,-]|(?<![A-Za-z])-|[a-z]\.)[0-9][0-9.,:/]*(?:st|nd|rd|th)?"
    r"(?: ?(?:[%′″']|°[CF]?|[ap]\.?m\.?|AM|PM)|[A-Za-zμΩ]{1,3})?)\Z"
)
_LONGEST_AMOUNT = 16


def _range(match: re.Match[str]) -> list[Edit] | None:
    """Read a dash between amounts: from ... to ..., or minus in a sum."""
    text, start = match.string, match.start()
    before = text[max(0, start - _LONGEST_AMOUNT) : start]
    is_spaced = before.endswith(" ")
    if (is_spaced and not match["space"]) or not _AMOUNT_BEFORE.search(before.rstrip(" ")):
        return None
    is_price = is_spaced and match["currency"] is not None
    if is_price and not re.search("[$€£¥]", before):
        return None  # what is sold, and its price
    left = _NUMBER_BEFORE.search(before.rstrip(" "))
    first, second = float(left[0]) if left else 0.0, float(match["next"])
    is_falling = left is not None and first >= second
    if match["rest"] is not None or (is_spaced and match["dash"] in "-−" and is_falling):
        return groups(match, dash="minus")
    is_name = is_falling and second >= 100 and first - second >= 100  # 747-400, not 112-108
    is_name = is_name or first == second >= 10  # 50-50
    if before.endswith("'"):
        return [Edit(start - 1, match.end("dash"), "to")]
    return groups(match, dash=" " if is_name else "to")


_NUMBER_BEFORE = re.compile(r"[0-9]+(?:\.[0-9]+)?\Z")


def _minus(match: re.Match[str]) -> list[Edit]:
    return groups(match, sign="minus")


def _said(words: str) -> Handler:
    return lambda match: whole(match, words)


def _hash(match: re.Match[str]) -> list[Edit]:
    return groups(match, sign="number" if match["digit"] is not None else "hashtag")


def _handle(match: re.Match[str]) -> list[Edit]:
    return groups(match, sign="at")


def _apart(match: re.Match[str]) -> list[Edit]:
    return groups(match, sign=" ")


def _name(match: re.Match[str]) -> list[Edit]:
    return whole(match, read_name(match[0]))


def _word(match: re.Match[str]) -> list[Edit]:
    is_constant = "_" in match.string[max(0, match.start() - 1) : match.end() + 1]
    said = (read_shouted if is_constant and match[0].isupper() else read_word)(match[0])
    is_formula = match[0] in ATOMS and match.string.startswith(_LOWERED, match.end())
    is_name = match[0] in _PRONOUNS and not is_constant and _is_organized(match)
    if is_formula or is_name:
        said = " ".join(match[0])
    return whole(match, said) if said != match[0] else []


_LOWERED = tuple("₀₁₂₃₄₅₆₇₈₉")
_PRONOUNS = ("IT", "WHO")
_THE_BEFORE = re.compile(r"(?i:\bthe )\Z")
_CAPITALS_BEFORE = re.compile(r"(?:[A-Z]{2}|\bI) \Z")
_CAPITALS_AFTER = re.compile(r" [A-Z]{2}")


def _is_organized(match: re.Match[str]) -> bool:
    """Say whether IT is a trade here and WHO a body, not words that are stressed."""
    text, start = match.string, match.start()
    before = text[max(0, start - 4) : start]
    if match[0] == "WHO" and not _THE_BEFORE.search(before):
        return False
    return not (_CAPITALS_BEFORE.search(before) or _CAPITALS_AFTER.match(text, match.end()))


def _shouted(match: re.Match[str]) -> list[Edit]:
    said = read_shouted(match[0])
    return whole(match, said) if said != match[0] else []


def _power(match: re.Match[str]) -> list[Edit]:
    plain = unicodedata.normalize("NFKC", match["n"])
    sign = {"⁻": "minus ", "⁺": "plus "}.get(match["sign"], "")
    return whole(match, f"to the power of {sign}{cardinal(plain)}")


_SIZE_BEFORE = re.compile(r"[0-9] ?(?:ft|in|cm|mm|m|[\"′″'])\.? \Z")


def _dimension(match: re.Match[str]) -> list[Edit] | None:
    """Read the x of "5 ft x 7 ft"."""
    start = match.start()
    is_size = _SIZE_BEFORE.search(match.string[max(0, start - 8) : start])
    return whole(match, "by") if is_size else None


_FORMULA = re.compile(r"=[^\n.,;!?]{0,40}\Z")
_LONGEST_SUM = 41


def _in_formula(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - _LONGEST_SUM) : match.start()]
    return _FORMULA.search(before) is not None


def _slash(match: re.Match[str]) -> list[Edit]:
    """Read the slash of "a = b / c"; between other words it is a pause."""
    return whole(match, "divided by" if _in_formula(match) else ",")


def _difference(match: re.Match[str]) -> list[Edit] | None:
    return whole(match, "minus") if _in_formula(match) else None


def _dozens(match: re.Match[str]) -> list[Edit]:
    """Read 100s of."""
    return whole(match, f"{cardinal(match['n'])}s".removeprefix("one "))


_FORMULA_BEFORE = re.compile(r"(?<![$])[$]{1,2}(?:[A-Za-z(\\])[^$]*\Z")
_LONGEST_FORMULA = 120


def _formula_end(match: re.Match[str]) -> list[Edit] | None:
    """Leave out the sign behind $E=mc^2$."""
    before = match.string[max(0, match.start() - _LONGEST_FORMULA) : match.start()]
    is_end = _FORMULA_BEFORE.search(before) is not None
    return [Edit(*match.span(), " ", "dropped_symbol")] if is_end else None


def _quarter(match: re.Match[str]) -> list[Edit]:
    """Read 2Q22."""
    said = year(match["year"] if len(match["year"]) == 4 else f"20{match['year']}")
    return whole(match, f"{ordinal(match['n'])} quarter {said}")


def _dotted_name(match: re.Match[str]) -> list[Edit]:
    return whole(match, f"{match[0][0]} {model_number(match['n'])}")


def _is_number_end(match: re.Match[str]) -> bool:
    return match.string[match.start() - 1 : match.start()] in tuple("0123456789⁰¹²³⁴⁵⁶⁷⁸⁹")


_WEIGHT_BEFORE = r"(?<=[0-9]g)|(?<=oz)|(?<=lb)|(?<=kg)|(?<=cm)|(?<=[0-9]ml)|(?<=[0-9]mL)|(?<=ft)"
_NUMBER_NEXT = r"(?=[$€£¥]?\.?[0-9])"
_SIGN_RULES = (
    rule(r"(?P<sign>[^\w\s])(?P=sign){2,}", lambda match: []),
    *english_codes.SIGN_RULES,
    *english_money.SIGN_RULES,
    *english_dates.APOSTROPHE_RULES,
    rule(
        r"(?P<dash>[-–—~−])(?P<space> ?)"
        r"(?=(?P<currency>[$€£¥])?(?P<next>\.?[0-9]+(?:\.[0-9]+)?)(?P<rest> ?=)?)",
        _range,
    ),
    rule(r"(?<![\w)])(?P<sign>[-−–])" + _NUMBER_NEXT, _minus),
    rule(r"(?:(?<!\w)[~≈∼]|(?<![\w ])[~≈∼] )" + _NUMBER_NEXT, _said("about")),
    rule(r"(?<!\w)<" + _NUMBER_NEXT, _said("less than")),
    rule(r"(?<!\w)>" + _NUMBER_NEXT, _said("more than")),
    rule(r"(?<!\w)≤" + _NUMBER_NEXT, _said("at most")),
    rule(r"(?<!\w)≥" + _NUMBER_NEXT, _said("at least")),
    rule(r"(?<=[²³] )-(?= [0-9a-z])|(?<=[²³])-(?=[0-9a-z])", _said("minus")),
    rule(r"#(?=[A-Z]{1,4}(?:-[0-9]|(?!(?:19|20)[0-9]{2}\b)[0-9]{3}))", _said("number")),
    rule(r"(?:(?<=UTC)|(?<=GMT))-(?=[0-9])", _said("minus")),
    rule(r"(?<=Q[1-4])[-–](?=Q[1-4])", _said("to")),
    rule(r"(?:(?<=Q[1-4])|(?<=H[12])|(?<=FY))'(?=[0-9]{2}(?![0-9]))", _said(" ")),
    rule(
        r"(?<![0-9])(?<![0-9] )[$]{1,2}(?![$ ]?\.?[0-9])",
        lambda match: [Edit(*match.span(), " ", "dropped_symbol")],
    ),
    rule(r"(?<=[0-9])[$]{1,2}(?![$0-9])", _formula_end),
    rule(r"(?<=[A-Z]);(?=[A-Z])", _said(" ")),
    rule(r"(?<=[ (][A-D])-(?=[\s.,;)]|\Z)", _said("minus")),
    rule(r"(?<=[0-9])[·⋅](?=[0-9])", _said("times")),
    rule(r"(?<![\w.][A-Z])(?<=[A-Z])–(?=[A-Z](?!\w))", _said("to")),
    rule(r"(?<=[0-9])/(?=[$€£][0-9])", _said("for")),
    rule(r"<=>", _said("is equivalent to")),
    rule(r"<->", _said("to")),
    rule(r"<>", _said("is not equal to")),
    rule(r"&&", _said("and")),
    rule(r"\|\|", _said("or")),
    rule(r"<=", _said("is at most")),
    rule(r">=", _said("is at least")),
    rule(r"!=", _said("is not equal to")),
    rule(r"==(?!=)", _said("equals")),
    rule(r"=>|-{1,2}>", _said("to")),
    rule(rf"(?P<sign>#)(?:(?P<digit>(?= ?[0-9]))|(?=[{LATIN}]))", _hash),
    rule(rf"(?<!\w)(?P<sign>@)(?=[{LATIN}0-9])", _handle),
    rule(r"\.(?=NET\b)", _said("dot")),
    rule(r"(?<=noon)-(?=[0-9])", _said("to")),
    rule(r"(?<![A-Za-z0-9][a-z])(?<=[a-z])-(?=[0-9]+(?![\w-]))", _said("minus")),
    rule(r"(?<![A-Za-z0-9][a-z] )(?<=[a-z] )-(?= [0-9])", _said("minus")),
    rule(rf"(?<=[{LATIN}0-9])(?P<sign>-)(?=[0-9])", _apart),
    rule(r"(?<=[0-9])(?P<sign>-)(?=[A-Z])", _apart),
    rule(r"(?<=[A-Z])(?P<sign>-)(?=[A-Z](?![A-Za-z]))", _apart),
    rule(
        rf"(?:{_WEIGHT_BEFORE})/(?=[0-9.]+ ?(?:oz|lbs?|g|kg|ml|mL|cups?|ft|in|cm)\b)", _said("or")
    ),
    rule(r"(?<![A-Za-z][a-z])(?<=[a-zα-ω])/(?=[0-9])", _said("over")),
    rule(
        r"(?:(?<=[0-9])|(?<=[0-9]x))/(?=(?:day|week|month|year|hour|minute|second|person|night)\b)",
        _said("per"),
    ),
    Rule(
        english_units.PER_NUMBER,
        lambda m: whole(m, english_units.per_words(m["per"])) if _is_number_end(m) else None,
    ),
    rule(r"(?<=Q[1-4])[~～](?=Q[1-4])", _said("to")),
    rule(r"(?<=opyright )©", _said("")),
    rule(r"(?<=[\w)])\*\*(?=[0-9])", _said("to the power of")),
    rule(r"(?<=\w)²(?![⁰¹²³⁴-⁹])", _said("squared")),
    rule(r"(?<=\w)³(?![⁰¹²³⁴-⁹])", _said("cubed")),
    rule(r"(?<=[\w)])(?P<sign>[⁺⁻]?)(?P<n>[⁰¹²³⁴-⁹]{1,3})(?![⁰¹²³⁴-⁹])", _power),
    rule(r"(?:(?<=[0-9)])|(?<=[0-9)] ))\*(?= ?[0-9(])", _said("times")),
    rule(r"(?<=[0-9)] )/(?= [0-9(])", _said("divided by")),
    rule(r"(?<=[^\s/] )/(?= [^\s/])", _slash),
    rule(r"(?<=[A-Za-z)] )-(?= [A-Za-z(])", _difference),
    rule(r"(?<=[\w)])\^(?= ?[-−]?[0-9A-Za-z(])", _said("to the power of")),
    rule(f"[{english_words.ROMAN_SIGN}]", english_words.roman_sign),
)
_DIGIT_RULES = (
    rule(r"(?P<n>10{1,6})s(?= of\b)", _dozens),
    rule(r"(?P<n>[1-4])Q(?P<year>[0-9]{2}|20[0-9]{2})(?!\w)", _quarter),
    english_codes.HEXADECIMAL,
    *english_dates.DIGIT_RULES,
    *english_codes.DIGIT_RULES,
    *english_money.DIGIT_RULES,
    *english_amounts.DIGIT_RULES,
    rule(r"[0-9]+[0-9A-Za-z]*", _name),
)
_WORD_RULES = (
    *english_money.SIGN_RULES,
    *english_money.WORD_RULES,
    *english_dates.WORD_RULES,
    *english_words.WORD_RULES,
    rule(r"[A-Z]{2,3}(?=&[A-Z](?![a-z]))", lambda match: whole(match, " ".join(match[0]))),
    rule(r"x(?= [0-9])", _dimension),
    rule(r"(?<=[0-9] )x(?= [$€£]\.?[0-9])", _said("times")),
    english_codes.VERSION,
    english_codes.HEXADECIMAL,
    rule(r"(?P<sign>[A-Z]\.)(?P<n>[0-9]{3,4})(?!\w)", _dotted_name),
    rule(r"(?:C|F|J|A)#(?!\w)", lambda match: whole(match, f"{match[0][0]} sharp")),
    rule(r"[A-Za-z]\+\+(?!\w)", lambda match: whole(match, f"{match[0][0]} plus plus")),
    Rule(english_units.BARE, lambda m: whole(m, english_units.bare_words(*m.group(1, 2, 3)))),
    english_codes.VERSIONED_NAME,
    rule(r"[A-Za-z]+[0-9][A-Za-z0-9]*", _name),
    rule(rf"[{LATIN}]+(?:'[{LATIN}]+)*", _word),
)
_SHOUTED_RULES = (*_WORD_RULES[:-1], rule(rf"[{LATIN}]+(?:'[{LATIN}]+)*", _shouted))
_PLAIN_WORD = _WORD_RULES[-1:]
_KEYWORDS = english_dates.WORDS | english_words.WORDS | {"rs", "x"}
_READ_FROM_DIGITS = frozenset("0123456789½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞")
_SHOWS_MORE = frozenset("0123456789.$¥/#+")
"""Behind a word: it may be more than a word."""
_LINE = re.compile(r"[^\n]+")


def edits(text: str, start: int, end: int, context: Context) -> Iterable[Edit]:
    """Return what to change in one English part of a text.

    Args:
        text: The whole text.
        start: Where the part begins.
        end: Where it ends.
        context: Of the text; the English rules have no switch of their own.
    """
    for line in _LINE.finditer(text, start, end):
        is_shouted = is_shouting(line[0])
        position = line.start()
        while item := _ITEM.search(text, position, line.end()):
            position = item.end()
            for one in _rules(item, is_shouted):
                match = one.pattern.match(text, item.start(), line.end())
                found = match and one.handler(match)
                if match and found is not None:
                    done = list(found)
                    yield from done
                    position = max(position, match.end(), *(edit.end for edit in done))
                    break


def _rules(item: re.Match[str], is_shouted: bool) -> Iterable[Rule]:
    """Choose the rules to try where something begins."""
    text = item[0]
    follows = item.string[item.end() : item.end() + 1]
    if text in _READ_FROM_DIGITS or (text == "." and follows != "N"):
        return _DIGIT_RULES
    if not text[0].isalpha():
        return _SIGN_RULES
    is_plain = (text[1:].islower() or text.islower()) and not item.string.endswith(
        "&", 0, item.start()
    )
    if is_plain and text.lower() not in _KEYWORDS and follows not in _SHOWS_MORE:
        return _PLAIN_WORD if len(text) > 1 else ()
    return _SHOUTED_RULES if is_shouted else _WORD_RULES
