"""Money, with its sign in front or its code behind."""

import re

from .aligned import Edit
from .english_numbers import cardinal, number
from .english_rules import NUMBER, is_measure, rule, whole
from .english_units import per_after

_CURRENCIES = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "¥": ("yen", "yen", "", ""),
    "₩": ("won", "won", "", ""),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "₽": ("ruble", "rubles", "kopeck", "kopecks"),
    "₿": ("bitcoin", "bitcoins", "", ""),
    "R$": ("real", "reais", "centavo", "centavos"),
    "Rs": ("rupee", "rupees", "paisa", "paise"),
    "CN¥": ("yuan", "yuan", "", ""),
}
_DOLLARS = {
    "US": "U S",
    "USD": "U S",
    "HK": "Hong Kong",
    "NT": "New Taiwan",
    "A": "Australian",
    "AU": "Australian",
    "C": "Canadian",
    "CA": "Canadian",
    "S": "Singapore",
}
_CODES = {
    "USD": "U S dollar",
    "EUR": "euro",
    "GBP": "pound",
    "JPY": "yen",
    "CNY": "yuan",
    "RMB": "yuan",
    "CHF": "Swiss franc",
    "CAD": "Canadian dollar",
    "AUD": "Australian dollar",
    "HKD": "Hong Kong dollar",
    "€": "euro",
    "¢": "cent",
}
_UNCOUNTED = ("yen", "yuan", "won")
SCALES = {
    "k": "thousand",
    "K": "thousand",
    "M": "million",
    "MM": "million",
    "m": "million",
    "mn": "million",
    "B": "billion",
    "b": "billion",
    "bn": "billion",
    "T": "trillion",
    "tn": "trillion",
}
_BEFORE_THING = re.compile(
    r"[ -](?:an?-|bills?|notes?|coins?|tickets?|fees?|fines?|gifts?|coupons?)(?:(?<=-)|\b)"
)


def _money(match: re.Match[str]) -> list[Edit]:
    """Read money with its sign in front: $3.50 is three dollars and fifty cents."""
    text, end = match.string, match.end()
    one, many, cent, cents = _CURRENCIES[match["sign"]]
    if match["land"]:
        one, many = f"{_DOLLARS[match['land']]} {one}", f"{_DOLLARS[match['land']]} {many}"
    amount, scale = match["n"], match["scale"] or ""
    whole_part, _, decimals = amount.partition(".")
    thing = _BEFORE_THING.match(text, end) or is_measure(text, match.start(), end)
    if scale or match["last"] or not cent or len(decimals) != 2:
        words = number(amount)
        if match["last"]:
            words += f" to {number(match['last'])}"
        scale = match["scale2"] or scale
        words += f" {SCALES.get(scale, scale)}" if scale else ""
        name = one if amount == "1" and not scale and not match["last"] else many
        words += f" {one if thing else name}"
    else:
        said = []
        units, hundredths = whole_part.replace(",", "").lstrip("0"), int(decimals)
        if units or not hundredths:
            said.append(f"{cardinal(whole_part)} {one if units == '1' or thing else many}")
        if hundredths:
            said.append(f"{number(decimals)} {cent if hundredths == 1 else cents}")
        words = " and ".join(said)
    edits = whole(match, words)
    per = per_after(text, end, match.endpos)
    return [*edits, Edit(end, per[0], per[1])] if per else edits


def _money_behind(match: re.Match[str]) -> list[Edit] | None:
    """Read money with its code beside it or its sign behind: 5 USD, EUR 5, 3 €."""
    scale = f" {SCALES.get(match['scale'], match['scale'])}" if match["scale"] else ""
    name = _CODES.get(match["code"])
    if name is None:
        return None
    is_plural = (match["n"] != "1" or scale) and name not in _UNCOUNTED
    per = per_after(match.string, match.end(), match.endpos)
    edits = whole(match, f"{number(match['n'])}{scale} {name}{'s' if is_plural else ''}")
    return [*edits, Edit(match.end(), per[0], per[1])] if per else edits


_SCALE = r"(?:[ ]?(?P<scale>thousand|million|billion|trillion|MM|[kKmMbBT]|mn|bn|tn)(?![\w']))?"

SIGN_RULES = (
    rule(
        rf"(?P<land>USD?|HK|NT|AU?|CA?|S)?(?P<sign>[$€£¥₩₹₽₿]|CN¥|R\$|Rs(?=\.?[ ]?[0-9]))"
        r"(?:(?<=s)\.)?[ ]?"
        rf"(?P<n>{NUMBER}){_SCALE}"
        rf"(?:[ ]?[-–~][ ]?(?P<last>{NUMBER}){_SCALE.replace('scale', 'scale2')}(?![%\w]))?",
        _money,
    ),
)

WORD_RULES = (rule(rf"(?P<code>[A-Z]{{3}})[ ]?(?P<n>{NUMBER}){_SCALE}", _money_behind),)

DIGIT_RULES = (
    rule(rf"(?P<n>{NUMBER}){_SCALE}[ ]?(?P<code>{'|'.join(_CODES)})(?!\w)", _money_behind),
)
