"""Numbers and what they count: units, fractions, ranges, years, plain numbers."""

import re

from .aligned import Edit
from .english_fractions import VULGAR, is_inch_mark, read_fraction, read_share, read_vulgar
from .english_money import SCALES
from .english_numbers import (
    cardinal,
    digits,
    model_number,
    number,
    ordinal,
    pairs,
    plural,
    year,
)
from .english_rules import (
    NUMBER,
    groups,
    is_measure,
    rule,
    whole,
    word_before,
    word_set,
)
from .english_units import unit_after


def _scaled(match: re.Match[str]) -> list[Edit] | None:
    """Read 5k, 2.5M, 3bn; 4K and 7B stay names."""
    scale, amount = match["scale"], match["n"]
    if scale == "B" and amount.isdecimal():
        return None
    is_race = scale == "k" and _RACE.match(match.string, match.end())
    if is_race or scale == "B" or (scale == "K" and not _COUNTED.match(match.string, match.end())):
        return whole(match, f"{number(amount)} {scale}")
    return whole(match, f"{number(amount)} {SCALES[scale]}")


_RACE = re.compile(r"[ -](?:runs?|races?|walk|jog|run)\b")


def _feet(match: re.Match[str]) -> list[Edit]:
    feet, inches = match["feet"], match["inches"]
    words = f"{number(feet)} {'foot' if feet == '1' else 'feet'}"
    return whole(match, f"{words} {number(inches)} {'inch' if inches == '1' else 'inches'}")


_EQUALS = re.compile(r"(?:\.[0-9]+)? ?=|\^|[⁻⁰¹²³⁴-⁹]")


def _multiplied(match: re.Match[str]) -> list[Edit]:
    """Read the first factor of 3x4, 3 × 4 or 1920x1080, and the sign."""
    before = match["n"]
    is_size = len(before) >= 3 and len(match["next"]) >= 3
    sign = match["sign"] or match["tight"]
    is_sum = _EQUALS.match(match.string, match.end("next")) is not None
    by = (sign == "x" and not is_sum) or (sign == "×" and is_size)
    words = pairs(before) if is_size and before.isdecimal() else number(before)
    edits = [Edit(*match.span("n"), words), Edit(*match.span("op"), "by" if by else "times")]
    following = match["next"]
    if is_size and following.isdecimal() and not match["more"]:
        edits.append(Edit(*match.span("next"), pairs(following)))
    return edits


def _times(match: re.Match[str]) -> list[Edit]:
    return groups(match, n=number(match["n"]), sign="times")


def _ratio(match: re.Match[str]) -> list[Edit]:
    return groups(match, a=number(match["a"]), mark="to", b=number(match["b"]))


def _year_range(match: re.Match[str]) -> list[Edit] | None:
    first, last = match["a"], match["b"]
    if int(last) <= int(first[-len(last) :]):
        return None
    said = year(last) if len(last) == 4 else cardinal(last)
    return groups(match, a=year(first), mark="to", b=said)


def _rank(match: re.Match[str]) -> list[Edit]:
    return whole(match, ordinal(match["n"].replace(",", "")))


_YEAR_WORDS = word_set(
    "in since by from until till of year years early late mid circa before after during around "
    "spring summer fall autumn winter class the copyright ad c ca"
)
_CODE_BEFORE = re.compile(
    r"(?<![A-Za-z])(?i:codes?|pin|id|zip|passcode|password|extension|ext|serial|tracking|otp|"
    r"ending in|ending with|last four)"
    r"(?i: number| no\.?)?(?: ?[:#]| is| was|\.)? ?\Z"
)
_LONGEST_CODE_WORD = 24
_PAIR_WORDS = word_set("room flight route highway suite bus boeing airbus")
_CALL_WORDS = word_set("call dial text called dialed phone hotline")
_SMALL = (
    "was|is|has|does|goes|says|this|his|its|as|always|the|we|and|to|in|a|an|it|he|she|they|you|for|"
    "on|at|by|or|but|when|with|were|will|had|did|that|which|who"
)
_COUNTED = re.compile(
    rf"(?: (?!(?:{_SMALL})\b)[a-z]+)?? (?!(?:{_SMALL})\b)"
    r"(?:[a-z]+(?<![sui])s|people|men|women|children|feet|teeth|mice)\b"
)
"""A plural noun, perhaps behind an adjective: what is before it is a quantity."""

_STREET = re.compile(
    r"(?: [NSEW]{1,2}\b)?(?: (?:[A-Z][a-z]+|[0-9]{1,3}(?:st|nd|rd|th))){1,3} "
    r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Drive|Dr|Lane|Ln|Court|Ct|Expy|Hwy|Pkwy|Way)\b"
)
_NAME = re.compile(r"[A-Z]{2,}\Z")


_SCALE_WORD = re.compile(r"[ ](?:hundred|thousand|million|billion|trillion)(?=[ ])")
_LETTER = re.compile(r"[A-Za-z]")


def _plain(match: re.Match[str]) -> list[Edit] | None:
    """Read any other number, with the unit behind it."""
    text, written = match.string, match["n"]
    is_one = written in ("1", "1.00")
    if _is_plural(match):
        return [Edit(match.start(), match.end() + 1, plural(pairs(written)))]
    unit = unit_after(text, match.end(), match.endpos, is_one)
    is_tight = unit is not None and text[match.end()] not in " \u00a0°℃℉"
    if unit and is_measure(text, match.start(), unit[0], is_tight):
        unit = unit_after(text, match.end(), match.endpos, is_one=True)
    scale = _SCALE_WORD.match(text, match.end(), match.endpos)
    if scale:
        unit = unit_after(text, scale.end(), match.endpos, is_one=False)
    if unit:
        position = scale.end() if scale else match.end()
        return [Edit(*match.span(), number(written)), Edit(position, *unit)]
    if _LETTER.match(text, match.end(), match.endpos):
        return None
    if written.isdecimal():
        return whole(match, _integer(text, match.start(), match.end(), written))
    return whole(match, number(written))


_MANY = re.compile(r"(?:(?i:two|three|four|five|six|several|many|few|those|these) |[A-Z]-?)\Z")


def _is_plural(match: re.Match[str]) -> bool:
    """Say whether an s behind a name's number makes it many: B-52s, three 6s, two 747s."""
    text = match.string
    is_tight = text.startswith("s", match.end()) and not text[match.end() + 1 :][:1].isalnum()
    return is_tight and match["n"].isdecimal() and bool(_MANY.search(text[: match.start()][-8:]))


def _integer(text: str, start: int, end: int, written: str) -> str:
    """Choose between quantity, year, code and name for digits without commas or decimals."""
    before = word_before(text, start)
    lower, size = before.lower(), len(written)
    is_code = _CODE_BEFORE.search(text[max(0, start - _LONGEST_CODE_WORD) : start]) is not None
    if (written[0] == "0" and size > 1) or is_code:
        return digits(written)
    if size == 3 and lower in _CALL_WORDS and _COUNTED.match(text, end) is None:
        return digits(written)
    if lower in _PAIR_WORDS or _STREET.match(text, end):
        return model_number(written)
    if size == 5 and len(before) == 2 and before.isupper():
        return digits(written)  # the postal code behind a state
    if size == 5 and text.endswith("D.C. ", 0, start):
        return digits(written)
    if size > 6 and not written.endswith("000"):
        return digits(written)
    if size == 4:
        return _four(text, end, written, before)
    if size == 3 and _NAME.search(before):
        return pairs(written)
    return cardinal(written)


_YEARS_BEFORE = re.compile(
    r"\b(?:[Ii]n|[Ff]rom|[Ss]ince|[Yy]ears) (?:[12][0-9]{3}(?:, (?:and |or )?| and | or )){1,3}\Z"
)
"""The years of "in 1066, 1776 and 2001"."""


def _four(text: str, end: int, written: str, before: str) -> str:
    value, is_told = int(written), before.lower() in _YEAR_WORDS
    start = end - len(written)
    is_told = is_told or bool(_YEARS_BEFORE.search(text[max(0, start - 32) : start]))
    if is_told and (1000 <= value <= 2199 or before.lower() == "year"):
        return year(written)
    if 1900 <= value <= 2099:
        return cardinal(written) if _COUNTED.match(text, end) else year(written)
    return pairs(written) if _NAME.search(before) else cardinal(written)


def _inches(match: re.Match[str]) -> list[Edit] | None:
    """Read 12" as inches where the mark closes no quotation."""
    text, start = match.string, match.start()
    if not is_inch_mark(text, start):
        return None
    is_one = match["n"] == "1" or is_measure(text, start, match.end(), is_tight=True)
    return whole(match, f"{number(match['n'])} {'inch' if is_one else 'inches'}")


def _arc(match: re.Match[str]) -> list[Edit]:
    """Read the minutes and seconds of 39°54'20"."""
    words = f"{cardinal(match['m'])} minute{'' if match['m'] in ('1', '01') else 's'}"
    if match["s"]:
        words += f" {number(match['s'])} seconds"
    return whole(match, f" {words} ")


def _chain(match: re.Match[str]) -> list[Edit]:
    """Read 24/7/365."""
    return whole(match, " ".join(cardinal(part) for part in match[0].split("/")))


def _plan(match: re.Match[str]) -> list[Edit]:
    """Read 401(k)."""
    return whole(match, f"{pairs(match['n'])} {match['letter']}")


def _spaced(match: re.Match[str]) -> list[Edit]:
    """Read 1 000 000 and 1.000.000."""
    return whole(match, cardinal(match["n"].replace(" ", "").replace(".", "")))


def _scientific(match: re.Match[str]) -> list[Edit]:
    power = match["power"].lstrip("+")
    sign = "minus " if power[0] in "-−" else ""
    words = f"times ten to the power of {sign}{cardinal(power.lstrip('-−'))}"
    return whole(match, f"{number(match['n'])} {words}")


def _suffixed(match: re.Match[str]) -> list[Edit]:
    """Read 802.11ax, its letters one by one."""
    more = f" {model_number(match['more'])}" if match["more"] else ""
    return whole(match, f"{number(match['n'])} {' '.join(match['suffix'])}{more}")


DIGIT_RULES = (
    rule(r"[0-9]{1,4}(?:/[0-9]{1,4}){2,5}(?![\w/])", _chain),
    rule(
        r"(?<=°)(?P<m>[0-9]{1,2})['′][ ]?(?:(?P<s>[0-9]{1,2}(?:\.[0-9]+)?)(?:[\"″]|''|′′)?)?",
        _arc,
    ),
    rule(r"(?<!°)(?P<feet>[0-9]+)['′][ ]?(?P<inches>[0-9]+(?:\.[0-9]+)?)(?:[\"″]|''|′′)", _feet),
    rule(
        r"(?:(?P<whole>[0-9]{1,3})[ -]|\b)(?P<above>[0-9]{1,4}(?:\.[0-9])?)[/⁄]"
        r"(?P<below>[0-9]{1,4})(?![0-9/%])(?:(?:rds?|ths?|'s)(?!\w))?",
        read_fraction,
    ),
    rule(
        r"(?P<a>[0-9]{1,3}(?:\.[0-9]{1,3}|,[0-9]{3}))/(?P<b>[0-9]{1,3}(?:\.[0-9]{1,3}|,[0-9]{3})?)"
        r"(?![\w/]|[.,][0-9])",
        read_share,
    ),
    rule(rf"(?P<whole>[0-9]{{1,3}})?[ ]?(?P<sign>[{''.join(VULGAR)}])", read_vulgar),
    rule(
        rf"(?P<n>{NUMBER})(?P<op>[ ](?P<sign>[x×*])[ ]|(?P<tight>[x×*]))"
        r"(?=(?P<next>[0-9]+)(?P<more>[ ]?[x×*.])?)",
        _multiplied,
    ),
    rule(rf"(?P<n>{NUMBER})(?P<sign>[x×])(?!\w| ?[-+=^²³])", _times),
    rule(r"(?P<a>[0-9]+(?:\.[0-9]+)?)(?P<mark>:)(?P<b>[0-9]+(?:\.[0-9]+)?)(?![0-9:])", _ratio),
    rule(
        r"(?P<a>1[0-9]{3}|20[0-9]{2})(?P<mark>[ ]?[-–—][ ]?)(?P<b>[12][0-9]{3}|[0-9]{2})(?![\w%-])",
        _year_range,
    ),
    rule(r"(?P<n>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:st|nd|rd|th|ST|ND|RD|TH)\b", _rank),
    rule(r"(?P<n>[0-9]{1,3}(?:\.[0-9]+)?)(?P<scale>[kKMB]|bn|mn)(?![\w']|-(?![0-9]))", _scaled),
    rule(r"(?P<n>[0-9]{1,3}(?:[ .][0-9]{3}){2,7})(?![\w-]|[.,][0-9])", _spaced),
    rule(rf"(?P<n>{NUMBER})[eE](?P<power>[-+−]?[0-9]{{1,3}})(?!\w)", _scientific),
    rule(rf"(?P<n>{NUMBER})\"(?!\w)", _inches),
    rule(r"(?P<n>[0-9]{3})\((?P<letter>[a-z])\)", _plan),
    rule(rf"(?P<n>{NUMBER})", _plain),
    rule(r"(?P<n>[0-9]+\.[0-9]+)(?P<suffix>[A-Za-z]{1,3})(?P<more>[0-9]{0,3})(?!\w)", _suffixed),
)
