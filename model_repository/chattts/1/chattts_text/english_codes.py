"""Telephone numbers, versions, network addresses, identifiers: read piece by piece."""

import re

from .acronyms import read_name
from .aligned import Edit
from .english_numbers import cardinal, digits, model_number, pairs
from .english_rules import rule, whole, word_before, word_set
from .english_units import unit_after

_GROUPS = re.compile(r"[0-9]+|[A-Za-z]+")


def _phone(match: re.Match[str]) -> list[Edit] | None:
    """Read a telephone number digit by digit, with a pause at each group."""
    said = []
    for index, group in enumerate(_GROUPS.findall(match["number"])):
        is_toll_free = index == 1 and match["number"].lstrip("+").startswith("1")
        if group.isalpha():
            said.append(group.lower() if len(group) > 3 else " ".join(group))
        elif is_toll_free and group in ("800", "900"):
            said.append(f"{cardinal(group[0])} hundred")
        else:
            said.append(digits(group))
    words = ", ".join(said)
    if match["number"].startswith("+"):
        words = f"plus {words}"
    if match["extension"]:
        words += f", extension {digits(match['extension'])}"
    return whole(match, words)


def _version(match: re.Match[str]) -> list[Edit] | None:
    """Read v2.10.3 as "version two point ten point three"."""
    points = match["number"].count(".")
    if not match["v"] and points < 2:
        unit = unit_after(match.string, match.end(), match.endpos, is_one=False)
        if unit or not _is_versioned(match):
            return None
    if match["v"] == "V" and not points:
        return None  # an engine
    parts = match["number"].split(".")
    is_network = not match["v"] and len(parts) == 4 and all(len(part) <= 3 for part in parts)
    if is_network:
        joint = "slash" if match["joint"] == "/" else "colon"
        port = f" {joint} {model_number(match['port'])}" if match["port"] else ""
        return whole(match, " dot ".join(digits(part) for part in parts) + port)
    if not match["v"] and match["port"]:
        return None
    said = [pairs(p) if len(p) == 4 else digits(p) if p[0] == "0" else cardinal(p) for p in parts]
    is_named = word_before(match.string, match.start()).lower() in ("version", "versions")
    return whole(match, ("version " if match["v"] and not is_named else "") + " point ".join(said))


_VERSIONED = word_set(
    "version versions release python ubuntu debian node java cuda windows macos ios android "
    "section chapter table figure fig sec eq equation appendix postgres go rust django torch"
)


def _is_versioned(match: re.Match[str]) -> bool:
    """Say whether 3.11 is three point eleven here, not a decimal fraction."""
    word = word_before(match.string, match.start())
    is_camel = not word.islower() and not word[1:].islower() and not word.isupper()
    return bool(word) and (word.lower() in _VERSIONED or is_camel)


def _versioned_name(match: re.Match[str]) -> list[Edit]:
    """Read Python3.11 and Qwen2.5."""
    parts = " point ".join(
        digits(part) if part[0] == "0" else cardinal(part) for part in match["number"].split(".")
    )
    return whole(match, f"{read_name(match['name'])} {parts}")


def _grouped(match: re.Match[str]) -> list[Edit]:
    """Read groups of digits such as card or account numbers, with a pause at each group."""
    return whole(match, ", ".join(digits(group) for group in _GROUPS.findall(match[0])))


def _hexadecimal(match: re.Match[str]) -> list[Edit] | None:
    """Spell a long run of hexadecimal digits, a UUID or a hardware address."""
    text = match[0]
    if not any(one.isdigit() for one in text) or not any(one.isalpha() for one in text):
        return None
    groups = re.split("[-:]", text)
    said = (" ".join(digits(one) or one for one in group) for group in groups)
    return whole(match, ", ".join(said))


def _prefixed(match: re.Match[str]) -> list[Edit]:
    """Spell 0x1F, 0b101."""
    return whole(match, " ".join(digits(one) or one for one in match[0]))


_EXTENSION = r"(?:,?[ ]?(?:ext\.?|extension|x)[ ]?(?P<extension>[0-9]{1,6}))?(?![\w-])"

SIGN_RULES = (
    rule(rf"(?P<number>\+[0-9]{{1,3}}(?:[ .-]?\(?[0-9]{{1,5}}\)?){{2,6}}){_EXTENSION}", _phone),
    rule(rf"(?P<number>\([0-9]{{3}}\)[ .-]?[0-9]{{3}}[ .-]?[0-9]{{4}}){_EXTENSION}", _phone),
)
"""For "+" and "("."""

DIGIT_RULES = (
    rule(
        r"(?P<number>(?:1[ .-])?(?:\([0-9]{3}\)[ ]?|[0-9]{3}[ .-])[0-9]{3}[ .-][0-9]{4})"
        rf"{_EXTENSION}",
        _phone,
    ),
    rule(rf"(?P<number>0[0-9]{{2,4}}(?:[ -][0-9]{{3,4}}){{2}}){_EXTENSION}", _phone),
    rule(rf"(?P<number>[0-9]{{3}}-[0-9]{{4}}){_EXTENSION}", _phone),
    rule(rf"(?P<number>1-[0-9]{{3}}-[A-Z0-9]{{2,7}}(?:-[A-Z0-9]{{2,4}})?){_EXTENSION}", _phone),
    rule(
        r"(?P<v>)(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9}){1,5})"
        r"(?:(?P<joint>[:/])(?P<port>[0-9]{1,5}))?(?![\w%])",
        _version,
    ),
    rule(r"[0-9]{4}(?: [0-9]{4}){2,3}(?![\w%]|[.,][0-9])", _grouped),
    rule(r"[0-9]{5}-[0-9]{4}(?![\w-])", _grouped),
    rule(r"[0-9]{1,20}(?:-[0-9]{1,20}){2,9}(?![\w-])", _grouped),
    rule(r"0[xX][0-9A-Fa-f]+\b|0b[01]+\b", _prefixed),
)

HEXADECIMAL = rule(
    r"(?:[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|[0-9a-f]{7,64}|[0-9A-F]{8,64})(?![\w-])",
    _hexadecimal,
)
VERSION = rule(r"(?P<v>[vV]\.? ?)(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9}){0,5})(?!\w)", _version)
"""For words that begin with v."""
VERSIONED_NAME = rule(
    r"(?P<name>[A-Za-z]{2,})(?P<number>[0-9]{1,4}(?:\.[0-9]{1,4}){1,4})(?![A-Za-z0-9])",
    _versioned_name,
)
