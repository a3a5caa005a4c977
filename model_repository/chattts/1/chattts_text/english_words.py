"""Abbreviations, initials and Roman numerals: letters that stand for other words."""

import re

from . import english_places
from .acronyms import is_said
from .aligned import Edit
from .context import PLACEHOLDER
from .english_numbers import cardinal, ordinal, roman
from .english_places import RANKS, STREETS
from .english_rules import ends_sentence, groups, rule, whole, word_before, word_set

_TITLES = {
    "Mr": "Mister",
    "Mrs": "Missus",
    "Ms": "Miz",
    "Dr": "Doctor",
    "Prof": "Professor",
    "Gen": "General",
    "Sgt": "Sergeant",
    "Capt": "Captain",
    "Lt": "Lieutenant",
    "Col": "Colonel",
    "Gov": "Governor",
    "Sen": "Senator",
    "Rep": "Representative",
    "Rev": "Reverend",
    "Hon": "Honorable",
    "Pres": "President",
    "Mt": "Mount",
    "Pt": "Point",
    "Ft": "Fort",
}
"""Read so before a name."""

_ABBREVIATIONS = {
    "vs": "versus",
    "etc": "et cetera",
    "approx": "approximately",
    "inc": "Incorporated",
    "ltd": "Limited",
    "corp": "Corporation",
    "co": "Company",
    "ave": "Avenue",
    "blvd": "Boulevard",
    "rd": "Road",
    "dr": "Drive",
    "hwy": "Highway",
    "jr": "Junior",
    "sr": "Senior",
    "dept": "department",
    "est": "established",
    "govt": "government",
    "assn": "association",
    "univ": "university",
    "avg": "average",
    "cf": "compare",
    "temp": "temperature",
    "bldg": "building",
    "misc": "miscellaneous",
    "tel": "telephone",
    "incl": "including",
    "excl": "excluding",
    "resp": "respectively",
    "viz": "namely",
    "acct": "account",
    "attn": "attention",
    "appt": "appointment",
    "asst": "assistant",
    "mgr": "manager",
    "bros": "Brothers",
    "doz": "dozen",
    "pkg": "package",
    "hrs": "hours",
    "vit": "vitamin",
    "wt": "weight",
    "qtr": "quarter",
    "ctr": "Center",
}
"""Read so with a period behind."""

_BEFORE_NUMBER = {
    "no": "number",
    "nos": "numbers",
    "fig": "figure",
    "figs": "figures",
    "vol": "volume",
    "vols": "volumes",
    "ch": "chapter",
    "chap": "chapter",
    "sec": "section",
    "eq": "equation",
    "p": "page",
    "pp": "pages",
    "pg": "page",
    "ca": "circa",
    "c": "circa",
    "art": "article",
    "ext": "extension",
    "apt": "apartment",
    "rm": "room",
    "ver": "version",
    "par": "paragraph",
    "tab": "table",
    "ep": "episode",
    "rte": "route",
    "cat": "category",
    "lat": "latitude",
    "cl": "clause",
    "op": "opus",
    "pt": "part",
    "bk": "book",
    "ll": "lines",
    "ste": "suite",
    "max": "maximum",
    "min": "minimum",
}
"""Read so with a period and a number behind."""

_LATIN = {"e.g": "for example", "i.e": "that is", "a.k.a": "also known as", "p.s": "P S"}


def _title(match: re.Match[str]) -> list[Edit]:
    return groups(match, head=_cased(match["word"], _TITLES[match["word"]]))


def _cased(written: str, words: str) -> str:
    """Give the words a capital if the written word has one."""
    return words[0].upper() + words[1:] if written[0].isupper() else words


def _saint(match: re.Match[str]) -> list[Edit] | None:
    """Read "St. Paul" as saint, "Main St." as street."""
    before = word_before(match.string, match.start())
    is_after_name = (before[:1].isupper() and before not in _PREPOSITIONS) or before in RANKS
    house = max(0, match.start() - len(before) - 3)
    number = match.string[house : house + 2]
    if match["name"] is not None and not (is_after_name and number.strip().isdecimal()):
        way = match.string[max(0, match.start() - _LONGEST_WAY) : match.start()]
        is_street = bool(_WAY_BEFORE.search(way)) and before not in _BEFORE_SAINTS
        return groups(match, head="Street." if is_street and match["stop"] else "Saint")
    return groups(match, head="Street" + _stop(match)) if is_after_name else None


_WAY_BEFORE = re.compile(
    r"(?:\b(?:on|to|at|down|along|off|from|onto|and|of|near)|[0-9][A-Z]?) (?:[A-Z][a-z]+ ){1,2}\Z"
)
_LONGEST_WAY = 50
_BEFORE_SAINTS = word_set("Port Mount Mt Fort Lake Sault East West North South Point Cape")
_PREPOSITIONS = word_set("The In At On To From By Near Of")


_MAY_END = word_set("etc inc ltd corp co ave blvd rd dr hwy jr sr st")


def _stop(match: re.Match[str]) -> str:
    word = match["word"].lower()
    if not match["stop"] or word not in _MAY_END:
        return ""
    if word != "etc":
        return "." if _SENTENCE_AFTER.match(match.string, match.end()) else ""
    return "." if ends_sentence(match.string, match.end()) else ""


def _abbreviation(match: re.Match[str]) -> list[Edit]:
    word = match["word"]
    words = _ABBREVIATIONS[word.lower()]
    return whole(match, (_cased(word, words) if words.islower() else words) + _stop(match))


def _numbered(match: re.Match[str]) -> list[Edit] | None:
    if match["word"] == "cat":
        return None  # the animal, at the end of a sentence
    head = _cased(match["word"], _BEFORE_NUMBER[match["word"].lower()])
    value = roman(match["roman"] or "")
    return groups(match, head=head, roman=cardinal(str(value)) if value else None)


def _latin(match: re.Match[str]) -> list[Edit]:
    words = _LATIN[match["word"].lower()]
    return whole(match, _cased(match["word"], words))


def _dotted(match: re.Match[str]) -> list[Edit]:
    """Read U.S. and Ph.D. letter by letter; a name may follow initials, so they rarely end."""
    letters = " ".join(one for one in match[0] if one.isalpha())
    is_end = match[0].endswith(".") and _SENTENCE_AFTER.match(match.string, match.end())
    said = letters if letters.islower() else letters.upper()
    return whole(match, f"{said}{'.' if is_end else ''}")


def _dotted_plural(match: re.Match[str]) -> list[Edit]:
    return whole(match, " ".join(match["letters"].replace(".", "")) + "'s")


_STARTERS = (
    "The|It|He|She|We|Then|This|That|These|But|And|So|If|In|You|They|There|At|On|For|When|What|How|"
    "Why|Who|Do|Is|Are|A|An|My|Your|Our|His|Her|Its|Please|Now|Also|After|Before|As|By|To|Not|No|Yes"
)


_SENTENCE_AFTER = re.compile(rf"[\"')\]]*(?:\s*\Z|\s*\n|\s+(?:{_STARTERS})\b)")


_LETTERED = word_set(
    "a an the vitamin plan grade type class group hepatitis section option team part exhibit "
    "answer letter point level tier phase step appendix figure table one two three four five six "
    "seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy eighty ninety"
)
"""Before a letter that is a name by itself, not somebody's initial."""


def _initial(match: re.Match[str]) -> list[Edit] | None:
    if word_before(match.string, match.start()).lower() in _LETTERED:
        return None
    return groups(match, stop="")


_SLASHED = {"w/o": "without", "w/": "with", "n/a": "not applicable", "b/c": "because"}


def _slashed(match: re.Match[str]) -> list[Edit]:
    return whole(match, _SLASHED[match[0].lower()])


_MONARCHS = (
    "Henry|Louis|Elizabeth|George|Charles|William|Edward|James|Richard|Paul|Pius|Leo|Benedict|Philip|"
    "Peter|Catherine|Nicholas|Alexander|Napoleon|Wilhelm|Frederick|Ivan|Ramses|Francis|Gregory|"
    "Innocent|Clement|Ferdinand|Joseph|Leopold|Carlos|Gustav|Olaf|Christian|Haakon|Pope|King|Queen"
)
_NUMBERED = (
    "Chapter|Part|Act|Scene|Section|Volume|Vol|Book|Type|Phase|Class|Level|Stage|Grade|Article|Title|"
    "Appendix|Figure|Table|War|Bowl|Fantasy|Episode|Mark|Generation|Unit|Lesson|Step|Round|Tier|"
    "Group|Category|Schedule|Annex|Amendment|Division|Factor|Apollo|Rocky|Games|Olympiad|Saturn"
)
_AFTER_ONE = (
    r"(?=[.,;:!?)\]]|\s*\Z| (?:and|or|of|to|errors?|trials?|studies|study|clinical|diabetes)\b)"
)
_NO_LETTER = r"(?!\w|'(?!s\b))"


def _roman(match: re.Match[str]) -> list[Edit] | None:
    value = roman(match["roman"].upper())
    return groups(match, roman=cardinal(str(value))) if value else None


def _monarch(match: re.Match[str]) -> list[Edit] | None:
    value = roman(match["roman"])
    return groups(match, roman=f"the {ordinal(str(value))}") if value else None


_ROMAN_SIGNS = {chr(0x2160 + i): i + 1 for i in range(12)} | {
    chr(0x2170 + i): i + 1 for i in range(12)
}
ROMAN_SIGN = "\u2160-\u216b\u2170-\u217b"
"""Roman numerals that are one character, for use inside a regular expression's brackets."""


def roman_sign(match: re.Match[str]) -> list[Edit]:
    """Read a Roman numeral that is one character."""
    return whole(match, cardinal(str(_ROMAN_SIGNS[match[0]])))


def _lone_roman(match: re.Match[str]) -> list[Edit] | None:
    """Read XIV or VII behind a name; a pair of letters only where no one says them as letters."""
    before = word_before(match.string, match.start())
    value = roman(match[0])
    is_named = before[:1].isupper() and (not before.isupper() or match[0] in _AFTER_CAPITALS)
    if not value or not is_named or is_said(match[0]):
        return None
    return whole(match, cardinal(str(value)))


_AFTER_CAPITALS = word_set("II III VI VII VIII IX")
"""Numerals behind capitals too, as in "GTA VI"."""


def _any(words: dict[str, str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


def _either_case(words: dict[str, str]) -> str:
    """Match the words with a small or a capital first letter; all in capitals they are others."""
    return _any({f"[{word[0]}{word[0].upper()}]{word[1:]}": "" for word in words})


WORD_RULES = (
    rule(r"(?<![\w/])(?:(?i:w/o|n/a|b/c)(?![\w/])|w/(?![a-z]\b))", _slashed),
    rule(r"(?<=[\w.] )v\.(?= [A-Z])", lambda match: whole(match, "versus")),
    rule(r"(?<=&)[A-Z]s(?!\w)", lambda match: whole(match, f"{match[0][0]}'s")),
    rule(rf"(?P<word>(?i:{'|'.join(_LATIN).replace('.', '[.]')}))\.", _latin),
    rule(
        rf"(?P<head>(?P<word>(?:Dr|Mt)(?!\.)|(?:{_any(_TITLES)})(?=\.))\.?)"
        rf"(?=[ {PLACEHOLDER}]{{0,3}}(?:[A-Z]|(?:&|and)[ ](?:Mrs?|Ms|Dr)\b))",
        _title,
    ),
    rule(r"(?<!&)(?P<head>(?P<word>Mrs?|Ms|Prof|Sgt|Capt|Lt)(?:\.|(?![\w'])))", _title),
    rule(r"(?P<head>(?P<word>St)(?P<stop>\.)?)(?![\w'])(?P<name>(?=[ ][A-Z][a-z]))?", _saint),
    rule(
        rf"(?P<head>(?P<word>(?i:{_any(_BEFORE_NUMBER)}))\.[ ]?)"
        rf"(?:(?=\(?[0-9{ROMAN_SIGN}])|(?P<roman>[IVXLC]+)(?![\w']))",
        _numbered,
    ),
    rule(rf"(?P<word>{_either_case(_ABBREVIATIONS)})(?P<stop>\.)(?!\w)", _abbreviation),
    rule(r"(?P<word>vs)(?P<stop>\.)?(?!\w)", _abbreviation),
    rule(r"et al(?P<stop>\.)", _initial),
    rule(r"Ph\.[ ]?D\.?|(?:[A-Za-z]\.){1,9}[A-Z](?![\w.])|(?:[A-Za-z]\.){2,9}(?!\w)", _dotted),
    rule(r"(?:[a-z]\.){2,9}[a-z](?![\w.])", _dotted),
    rule(r"(?P<letters>(?:[A-Z]\.){2,9})s(?!\w)", _dotted_plural),
    *english_places.WORD_RULES,
    rule(
        r"(?<!\b[A-Z] )(?<!\b[a-z] )"  # "the F B I." ends with no initial
        rf"[A-Z](?P<stop>\.)(?=[ ](?:[A-Z]\.|(?!(?:{_STARTERS})\b)[A-Z][a-z]))(?<!I\.)",
        _initial,
    ),
    rule(rf"(?:{_MONARCHS})[ ](?:Paul[ ])?(?P<roman>[IVX]+){_NO_LETTER}", _monarch),
    rule(
        rf"(?i:{_NUMBERED})s?[ ](?P<roman>(?:[IVXLC]{{2,}}|V|X|I{_AFTER_ONE})){_NO_LETTER}", _roman
    ),
    rule(rf"[IVX]{{2,}}{_NO_LETTER}", _lone_roman),
)
WORDS = frozenset(
    {word.lower() for word in (*_TITLES, *_ABBREVIATIONS, *_BEFORE_NUMBER)}
    | {word.lower() for word in (*_MONARCHS.split("|"), *_NUMBERED.split("|"))}
    | {f"{word.lower()}s" for word in _NUMBERED.split("|")}
    | {"st", "vs", "ph", "et", *(word.lower() for word in STREETS)}
)
"""Lower-case words that the rules above begin with, capitals and what has periods aside."""
