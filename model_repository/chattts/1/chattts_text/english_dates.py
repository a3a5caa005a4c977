"""Dates, years, clock times and durations, as an American reader says them."""

import re

from .aligned import Edit
from .english_numbers import below_hundred, cardinal, ordinal, plural, year
from .english_rules import ends_sentence, groups, rule, whole, word_before, word_set

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_MONTH_OF = {name[:3].lower(): name for name in MONTHS}
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAYS = {
    "mon": "Monday",
    "tue": "Tuesday",
    "tues": "Tuesday",
    "wed": "Wednesday",
    "thu": "Thursday",
    "thur": "Thursday",
    "thurs": "Thursday",
    "fri": "Friday",
    "sat": "Saturday",
    "sun": "Sunday",
}
_SMALL_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|apr(?:il)?|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)  # "march" and "may" are words
_MONTH = f"(?:{_MONTH}|{_MONTH.upper()}|{_SMALL_MONTH})"
_DAY = r"(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)"
_RANK = r"(?:st|nd|rd|th)?"
_DATE_WORDS = word_set("on by before after until till since due from dated for through")
_DATE_WORDS |= {*_DAYS, *(name.lower() for name in _DAYS.values())}
_CENTURY_CUT = 69
"""Two-digit years below are of this century."""


def _full(month: str) -> str:
    name = _MONTH_OF[month.rstrip(".")[:3].lower()]
    return name if month[0].isupper() else name.lower()


def _is_day(text: str | None) -> bool:
    return text is None or 1 <= int(text) <= 31


def _month_first(match: re.Match[str]) -> list[Edit] | None:
    if not _is_day(match["day"]) or not _is_day(match["last"]):
        return None
    last = match["last"] and ordinal(match["last"])
    return groups(
        match,
        month=_full(match["month"]),
        gap=" ",
        gap2=" " if match["gap2"] == "-" else None,
        head=ordinal(match["day"]),
        dash="to",
        tail=last,
        year=match["year"] and year(match["year"]),
    )


def _day_first(match: re.Match[str]) -> list[Edit] | None:
    if not _is_day(match["day"]) or not _is_day(match["last"]):
        return None
    article = "" if word_before(match.string, match.start()).lower() == "the" else "the "
    of = "" if match["of"] else " of"
    first, last = ordinal(match["day"]), match["last"] and ordinal(match["last"]) + of
    return groups(
        match,
        head=article + first + ("" if last else of),
        dash="to",
        tail=last,
        gap=" ",
        month=_full(match["month"]) + _stop(match),
        gap2=" " if match["gap2"] == "-" else None,
        year=match["year"] and year(match["year"]),
    )


def _stop(match: re.Match[str]) -> str:
    """Keep the period of a short month that ends the sentence."""
    is_last = match["month"].endswith(".") and match.end("month") == match.end()
    return "." if is_last and ends_sentence(match.string, match.end()) else ""


def _month_year(match: re.Match[str]) -> list[Edit]:
    return groups(match, month=_full(match["month"]), year=year(match["year"]))


def _month_alone(match: re.Match[str]) -> list[Edit] | None:
    before = word_before(match.string, match.start()).lower()
    is_name_too = match["month"].lower() in ("jan.", "mar.", "jun.", "jul.")
    if is_name_too and before not in {*_DATE_WORDS, "in", "last", "next", "early", "late", "mid"}:
        return None
    stop = "." if ends_sentence(match.string, match.end()) else ""
    return whole(match, _full(match["month"]) + stop)


def _numeric(match: re.Match[str]) -> list[Edit] | None:
    """Read year, month, day; month, day, year (the American order); or day.month.year."""
    year_text, month, day = match["y"], int(match["m"]), int(match["d"])
    if match.re is _GERMAN.pattern or month > 12:
        month, day = day, month
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    if len(year_text) == 2:
        year_text = f"{20 if int(year_text) < _CENTURY_CUT else 19}{year_text}"
    words = f"{MONTHS[month - 1]} {ordinal(str(day))}, {year(year_text)}"
    return whole(match, words + (" at" if match.groupdict().get("t") else ""))


def _year_month(match: re.Match[str]) -> list[Edit] | None:
    month = int(match["m"])
    return whole(match, f"{MONTHS[month - 1]} {year(match['y'])}") if 1 <= month <= 12 else None


_NO_DENOMINATOR = frozenset({13, 17, 19, 22, 23, 26, 27, 28, 29, 31})
"""Of these nobody counts parts: 12/31 is a day, unless a word that may be counted follows."""


def _short(match: re.Match[str]) -> list[Edit] | None:
    month, day = int(match["m"]), int(match["d"])
    is_date = word_before(match.string, match.start()).lower() in _DATE_WORDS
    is_date = is_date or (day in _NO_DENOMINATOR and not match.string.startswith(" ", match.end()))
    if not is_date or not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return whole(match, f"{MONTHS[month - 1]} {ordinal(str(day))}")


def _decade(match: re.Match[str]) -> list[Edit]:
    text = match["decade"]
    return whole(match, plural(year(text) if len(text) == 4 else below_hundred(int(text))))


def _short_year(match: re.Match[str]) -> list[Edit]:
    value = int(match["year"])
    return whole(match, f"oh {cardinal(match['year'])}" if value < 10 else below_hundred(value))


_MORE_TIME = re.compile(rf" (?:[A-Z]{{2,4}}\b|{_DAY}|{_MONTH}\b)")
"""Behind a.m. or p.m., in the same sentence: a time zone, a day, a month."""


def _half(match: re.Match[str]) -> str | None:
    """Read "p.m." as letters, its period kept where it ends the sentence."""
    written = match["half"]
    if written is None:
        return None
    letters = " ".join(one for one in written if one.isalpha())
    has_more = _MORE_TIME.match(match.string, match.end()) is not None
    is_end = written.endswith(".") and not has_more and ends_sentence(match.string, match.end())
    return f" {letters}{'.' if is_end else ''}"


def _clock(match: re.Match[str]) -> list[Edit] | None:
    hour, minute, second = int(match["h"]), int(match["m"]), match["s"]
    if minute > 59 or (second and int(second) > 59) or (hour > 24 and second):
        return None
    letter = match.groupdict().get("letter")
    if is_ratio(match.string, match.start()) and not match["half"]:
        return None
    if second and len(match["h"]) == 1 and not match["half"]:
        return whole(match, _lasting([(hour, "hour"), (minute, "minute"), (int(second), "second")]))
    is_range = match.string.startswith(("-", "–"), match.end()) and 0 < hour <= 12
    words = _hour_and_minute(hour, minute, bool(match["half"] or letter) or is_range, bool(second))
    if second and int(second):
        words += f" and {_lasting([(int(second), 'second')])}"
    if letter:
        return whole(match, f"{words} {letter} m")
    return groups(match, time=words, half=_half(match))


_RATIO_BEFORE = re.compile(r"(?i:ratio|scale|odds|score|won|lost|beat)(?: of| is| was)? ?\Z")


def is_ratio(text: str, position: int) -> bool:
    """Say whether the words before a position make "3:20" there a ratio or a score."""
    return _RATIO_BEFORE.search(text[max(0, position - 12) : position]) is not None


def _hour_and_minute(hour: int, minute: int, has_half: bool, has_second: bool) -> str:
    if minute >= 10:
        return f"{below_hundred(hour)} {below_hundred(minute)}"
    if minute:
        return f"{below_hundred(hour)} oh {below_hundred(minute)}"
    if has_half:
        return below_hundred(hour)
    if hour == 0 and not has_second:
        return "midnight"
    return f"{below_hundred(hour)} " + ("hundred" if hour > 12 or hour == 0 else "o'clock")


def _hour(match: re.Match[str]) -> list[Edit] | None:
    if not 1 <= int(match["h"]) <= 12:
        return None
    return groups(match, time=cardinal(match["h"]), half=_half(match))


def _lasting(parts: list[tuple[int, str]]) -> str:
    said = [f"{cardinal(str(n))} {unit}{'' if n == 1 else 's'}" for n, unit in parts if n]
    return " ".join(said) or f"zero {parts[-1][1]}s"


def _duration(match: re.Match[str]) -> list[Edit] | None:
    units = (("days", "day"), ("hours", "hour"), ("minutes", "minute"), ("seconds", "second"))
    given = [(int(match[group]), unit) for group, unit in units if match[group]]
    if len(given) < 2:
        return None
    said = (f"{cardinal(str(n))} {unit}{'' if n == 1 else 's'}" for n, unit in given)
    return whole(match, " ".join(said))


_ON = re.compile(r"\b(?:on|closed|open|every|this|next|last) \Z", re.IGNORECASE)


def _weekday(match: re.Match[str]) -> list[Edit] | None:
    is_dated = match["date"] is not None
    is_sentence = ends_sentence(match.string, match.end()) and not is_dated
    is_shown = match["stop"] and _ON.search(match.string[max(0, match.start() - 8) : match.start()])
    is_word_too = match["day"].lower() in ("sat", "sun") or not match["stop"]
    is_word_too = is_word_too and not is_shown
    if is_word_too and not is_dated:
        return None
    return groups(match, head=_DAYS[match["day"].lower()] + ("." if is_sentence else ""))


def _name_range(match: re.Match[str]) -> list[Edit]:
    """Read Mon-Fri and Jan–Mar."""
    first, last = (
        _DAYS.get(name.rstrip(".").lower()) or _full(name) for name in match.group("a", "b")
    )
    return groups(match, a=first, dash="to", b=last)


_HALF = (
    r"(?P<half>[ \u00a0]?(?:[ap]m(?![A-Za-z])|[AP]M(?![A-Za-z])"
    r"|[ap]\.[ ]?m(?:\.|(?![\w.]))|[AP]\.[ ]?M(?:\.|(?![\w.]))))"
)
_NONE = r"(?P<s>(?!))?"
_YEAR = r"(?:(?P<gap2>,[ ]?|[ -])(?P<year>[12][0-9]{3})(?![0-9]|[.,:][0-9]))?"
_GERMAN = rule(r"(?P<m>[0-9]{1,2})\.(?P<d>[0-9]{1,2})\.(?P<y>[12][0-9]{3})(?![0-9])", _numeric)

WORD_RULES = (
    rule(
        rf"(?P<month>{_MONTH}\b\.?)(?P<gap>[ -])(?P<head>(?P<day>[0-9]{{1,2}}){_RANK})"
        rf"(?:(?P<dash>[ ]?[-–][ ]?)(?P<tail>(?P<last>[0-9]{{1,2}}){_RANK}))?"
        rf"(?![0-9A-Za-z%]|[.:/][0-9]|,[0-9]{{3}}(?![0-9])){_YEAR}",
        _month_first,
    ),
    rule(rf"(?P<month>{_MONTH}\b\.?),?[ ](?P<year>[12][0-9]{{3}})(?![0-9])", _month_year),
    rule(r"(?P<month>(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.)", _month_alone),
    rule(rf"(?P<a>{_DAY}\b\.?)(?P<dash>[-–])(?P<b>{_DAY}\b(?:\.(?=,|[ ][a-z0-9]))?)", _name_range),
    rule(rf"(?P<a>{_MONTH})(?P<dash>[-–])(?P<b>{_MONTH})(?!\w)", _name_range),
    rule(
        rf"(?P<head>(?P<day>{_DAY})(?P<stop>\.)?)(?!\w)"
        rf"(?P<date>(?=,?[ ](?:[0-9]|{_MONTH}\b|(?:&|and|or)[ ]{_DAY}\b)))?",
        _weekday,
    ),
)

WORDS = {word.lower() for name in MONTHS for word in (name, name[:3])} | {"sept", *_DAYS}
"""Lower-case words that the rules above begin with."""

DIGIT_RULES = (
    rule(
        r"(?P<y>[12][0-9]{3})(?P<mark>[-/.])(?P<m>[0-9]{1,2})(?P=mark)(?P<d>[0-9]{1,2})(?![0-9])"
        r"(?P<t>T(?=[0-9]{2}:))?",
        _numeric,
    ),
    rule(
        r"(?P<m>[0-9]{1,2})(?P<mark>[-/])(?P<d>[0-9]{1,2})(?P=mark)(?P<y>[12][0-9]{3})(?![0-9])",
        _numeric,
    ),
    rule(r"(?P<m>[0-9]{1,2})/(?P<d>[0-9]{1,2})/(?P<y>[0-9]{2})(?![0-9/])", _numeric),
    _GERMAN,
    rule(r"(?P<y>[12][0-9]{3})-(?P<m>0[1-9])(?![0-9-])", _year_month),
    rule(r"(?P<m>0[1-9]|1[0-2])/(?P<y>(?:19|20)[0-9]{2})(?![0-9/])", _year_month),
    rule(r"(?P<m>[0-9]{1,2})/(?P<d>[0-9]{1,2})(?![0-9/%])", _short),
    rule(
        rf"(?P<head>(?P<day>[0-9]{{1,2}}){_RANK})"
        rf"(?:(?P<dash>[ ]?[-–][ ]?)(?P<tail>(?P<last>[0-9]{{1,2}}){_RANK}))?"
        rf"(?P<gap>[ -])(?P<of>of )?(?P<month>{_MONTH}\b\.?){_YEAR}",
        _day_first,
    ),
    rule(r"(?P<decade>1[0-9]{2}0|20[0-9]0|[2-9]0)'?s(?![A-Za-z])", _decade),
    rule(
        r"(?P<time>(?P<h>[0-9]{1,2}):(?P<m>[0-9]{2})(?::(?P<s>[0-9]{2}))?)(?![0-9:])"
        rf"(?:{_HALF}|(?P<letter>[ap])(?![\w']|\.[ ]?m))?",
        _clock,
    ),
    rule(rf"(?P<time>(?P<h>[0-9]{{1,2}})\.(?P<m>[0-9]{{2}})){_NONE}{_HALF}", _clock),
    rule(rf"(?P<time>(?P<h>[0-9]{{1,2}})){_HALF}", _hour),
    rule(
        r"(?:(?P<days>[0-9]{1,6})[ ]?d[ ]?)?(?:(?P<hours>[0-9]{1,6})[ ]?(?:hrs?|h)[ ]?)?"
        r"(?:(?P<minutes>[0-9]{1,6})[ ]?(?:mins?|m)[ ]?)?"
        r"(?:(?P<seconds>[0-9]{1,6})[ ]?(?:secs?|s))?(?<![ ])(?!\w)",
        _duration,
    ),
)

APOSTROPHE_RULES = (
    rule(r"(?<!\w)'(?P<decade>[1-9]0)s(?![A-Za-z])", _decade),
    rule(r"(?<!\w)'(?P<year>[0-9]{2})(?![\w']|[.,:]?[0-9])", _short_year),
)
