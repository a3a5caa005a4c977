"""Addresses of houses in English: streets, ways of the compass, states."""

import re

from .aligned import Edit
from .english_rules import ends_sentence, groups, rule, whole, word_before, word_set

RANKS = word_set("st nd rd th")
"""What a street's number ends with."""
STREETS = {
    "Ave": "Avenue",
    "Blvd": "Boulevard",
    "Rd": "Road",
    "Ct": "Court",
    "Ln": "Lane",
    "Hwy": "Highway",
    "Expy": "Expressway",
    "Pkwy": "Parkway",
}
"""Read so behind a name, without a period too."""
_WAYS = {"N": "North", "S": "South", "E": "East", "W": "West"}
_STATES = {
    "AL": "Alabama", "AK": "Alaska", "AZ": "Arizona", "AR": "Arkansas", "CA": "California",
    "CO": "Colorado", "CT": "Connecticut", "DE": "Delaware", "FL": "Florida", "GA": "Georgia",
    "HI": "Hawaii", "IA": "Iowa", "ID": "Idaho", "IL": "Illinois", "IN": "Indiana",
    "KS": "Kansas", "KY": "Kentucky", "LA": "Louisiana", "MA": "Massachusetts",
    "MD": "Maryland", "ME": "Maine", "MI": "Michigan", "MN": "Minnesota", "MO": "Missouri",
    "MS": "Mississippi", "MT": "Montana", "NC": "North Carolina", "ND": "North Dakota",
    "NE": "Nebraska", "NH": "New Hampshire", "NJ": "New Jersey", "NM": "New Mexico",
    "NV": "Nevada", "NY": "New York", "OH": "Ohio", "OK": "Oklahoma", "OR": "Oregon",
    "PA": "Pennsylvania", "RI": "Rhode Island", "SC": "South Carolina", "SD": "South Dakota",
    "TN": "Tennessee", "TX": "Texas", "UT": "Utah", "VA": "Virginia", "VT": "Vermont",
    "WA": "Washington", "WI": "Wisconsin", "WV": "West Virginia", "WY": "Wyoming",
}  # fmt: skip
_OTHERS_TOO = word_set("AK AR CO CT DE HI ID IN LA MA MD ME MS OH OK OR PA PR SC VA AL NE")
"""States only before a postal code: else other letters or words after a comma too."""
_SHORT_STATES = {
    "Ala": "AL", "Ariz": "AZ", "Ark": "AR", "Calif": "CA", "Colo": "CO", "Conn": "CT",
    "Del": "DE", "Fla": "FL", "Ga": "GA", "Ill": "IL", "Ind": "IN", "Kan": "KS", "Ky": "KY",
    "La": "LA", "Mass": "MA", "Md": "MD", "Mich": "MI", "Minn": "MN", "Miss": "MS", "Mo": "MO",
    "Mont": "MT", "Neb": "NE", "Nev": "NV", "Okla": "OK", "Ore": "OR", "Pa": "PA",
    "Tenn": "TN", "Tex": "TX", "Va": "VA", "Vt": "VT", "Wash": "WA", "Wis": "WI", "Wyo": "WY",
}  # fmt: skip


def _street(match: re.Match[str]) -> list[Edit] | None:
    before = word_before(match.string, match.start())
    is_named = before[:1].isupper() or before in RANKS
    return whole(match, STREETS[match["word"]]) if is_named else None


def _way(match: re.Match[str]) -> list[Edit]:
    return whole(match, _WAYS[match["way"]])


_ROAD_BEFORE = re.compile(r"(?:I-|US-|SR-|Hwy |Highway |Route |Rte\.? )[0-9]{1,3} \Z")


def _bound(match: re.Match[str]) -> list[Edit] | None:
    """Read "I-5 N"."""
    before = match.string[max(0, match.start() - 14) : match.start()]
    return _way(match) if _ROAD_BEFORE.search(before) else None


def _ways(match: re.Match[str]) -> list[Edit]:
    return whole(match, _WAYS[match[0][0]] + _WAYS[match[0][1]].lower())


def _state(match: re.Match[str]) -> list[Edit] | None:
    if match["code"] is None and match["state"] in _OTHERS_TOO:
        return None
    return groups(match, state=_STATES[match["state"]])


def _short_state(match: re.Match[str]) -> list[Edit]:
    stop = "." if ends_sentence(match.string, match.end()) else ""
    return whole(match, _STATES[_SHORT_STATES[match["state"]]] + stop)


WORD_RULES = (
    rule(rf"(?P<word>{'|'.join(STREETS)})(?![\w.'])", _street),
    rule(
        r"(?:(?<=[0-9] )|(?<=[°′″])|(?<=[°′″] ))(?P<way>[NSEW])\.?(?= (?:[A-Z][a-z]|[0-9]))", _way
    ),
    rule(r"(?P<way>[NSEW])(?=\.? [0-9]{1,3}(?:st|nd|rd|th) (?:St|Ave|Pl|Blvd)\b)\.?", _way),
    rule(r"(?:(?<=[°′″])|(?<=[°′″] ))(?P<way>[NSEW])(?!\w)", _way),
    rule(r"(?<=[0-9] )(?P<way>[NSEW])(?![\w'])", _bound),
    rule(r"Hwy(?= [0-9])", lambda match: whole(match, "Highway")),
    rule(
        r"(?:(?<=[0-9]st )|(?<=[0-9]nd )|(?<=[0-9]rd )|(?<=[0-9]th ))Fl\b\.?",
        lambda match: whole(match, "Floor"),
    ),
    rule(
        r"(?:(?<=Ave )|(?<=Ave\. )|(?<=St )|(?<=St\. )|(?<=Blvd )|(?<=Rd )|(?<=Avenue )"
        r"|(?<=Street )|(?<=[wW]inds ))[NS][EW](?!\w)",
        _ways,
    ),
    rule(
        rf"(?<=[a-z], )(?P<state>{'|'.join(_STATES)})(?:(?P<code>(?=[ ][0-9]{{5}}(?![0-9])))"
        r"|(?=[.,;:!?)\n]|\Z))",
        _state,
    ),
    rule(rf"(?:(?<=[a-z], )|(?<=\b[DRI]-))(?P<state>{'|'.join(_SHORT_STATES)})\.", _short_state),
)
