"""Units after numbers: symbol to what it is called once and many times."""

import re

from .english_numbers import cardinal
from .english_rules import ends_sentence, word_before, word_set

_SINGULAR = {
    "km": "kilometer",
    "cm": "centimeter",
    "mm": "millimeter",
    "nm": "nanometer",
    "μm": "micrometer",
    "µm": "micrometer",
    "um": "micrometer",
    "m": "meter",
    "mi": "mile",
    "yd": "yard",
    "kg": "kilogram",
    "mg": "milligram",
    "μg": "microgram",
    "µg": "microgram",
    "g": "gram",
    "t": "ton",
    "lb": "pound",
    "lbs": "pound",
    "dL": "deciliter",
    "dl": "deciliter",
    "mcg": "microgram",
    "mmol": "millimole",
    "kgs": "kilogram",
    "KG": "kilogram",
    "KM": "kilometer",
    "CM": "centimeter",
    "MM": "millimeter",
    "ML": "milliliter",
    "wks": "week",
    "mo": "month",
    "mos": "month",
    "oz": "ounce",
    "ml": "milliliter",
    "mL": "milliliter",
    "l": "liter",
    "L": "liter",
    "gal": "gallon",
    "bbl": "barrel",
    "tsp": "teaspoon",
    "tbsp": "tablespoon",
    "Tbsp": "tablespoon",
    "Tsp": "teaspoon",
    "qt": "quart",
    "pt": "point",
    "pts": "point",
    "pkg": "package",
    "ha": "hectare",
    "kWh": "kilowatt hour",
    "mAh": "milliamp hour",
    "Wh": "watt hour",
    "kW": "kilowatt",
    "MW": "megawatt",
    "GW": "gigawatt",
    "W": "watt",
    "kV": "kilovolt",
    "mV": "millivolt",
    "V": "volt",
    "mA": "milliamp",
    "μF": "microfarad",
    "µF": "microfarad",
    "nF": "nanofarad",
    "pF": "picofarad",
    "A": "amp",
    "Ω": "ohm",
    "kΩ": "kilo ohm",
    "dB": "decibel",
    "dBm": "decibel milliwatt",
    "PB": "petabyte",
    "TB": "terabyte",
    "GB": "gigabyte",
    "MB": "megabyte",
    "KB": "kilobyte",
    "kB": "kilobyte",
    "TiB": "tebibyte",
    "GiB": "gibibyte",
    "MiB": "mebibyte",
    "KiB": "kibibyte",
    "Gb": "gigabit",
    "Mb": "megabit",
    "px": "pixel",
    "MP": "megapixel",
    "kPa": "kilopascal",
    "hPa": "hectopascal",
    "MPa": "megapascal",
    "Pa": "pascal",
    "kcal": "kilocalorie",
    "cal": "calorie",
    "kJ": "kilojoule",
    "J": "joule",
    "N": "newton",
    "hr": "hour",
    "hrs": "hour",
    "h": "hour",
    "min": "minute",
    "mins": "minute",
    "sec": "second",
    "secs": "second",
    "s": "second",
    "ms": "millisecond",
    "μs": "microsecond",
    "µs": "microsecond",
    "us": "microsecond",
    "ns": "nanosecond",
    "yr": "year",
    "yrs": "year",
    "wk": "week",
    "d": "day",
    "°": "degree",
    "mol": "mole",
    "bit": "bit",
    "bits": "bit",
    "req": "request",
}
_BOTH = {
    "in": ("inch", "inches"),
    "″": ("inch", "inches"),
    "′′": ("inch", "inches"),
    "ft": ("foot", "feet"),
    "fl oz": ("fluid ounce", "fluid ounces"),
    "′": ("foot", "feet"),
    "Hz": ("hertz", "hertz"),
    "kHz": ("kilohertz", "kilohertz"),
    "MHz": ("megahertz", "megahertz"),
    "GHz": ("gigahertz", "gigahertz"),
    "°C": ("degree Celsius", "degrees Celsius"),
    "℃": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "℉": ("degree Fahrenheit", "degrees Fahrenheit"),
    "MPH": ("mile per hour", "miles per hour"),
    "mph": ("mile per hour", "miles per hour"),
    "kph": ("kilometer per hour", "kilometers per hour"),
    "mpg": ("mile per gallon", "miles per gallon"),
    "rpm": ("revolution per minute", "revolutions per minute"),
    "fps": ("frame per second", "frames per second"),
    "dpi": ("dot per inch", "dots per inch"),
    "bpm": ("beat per minute", "beats per minute"),
    "Gbps": ("gigabit per second", "gigabits per second"),
    "Mbps": ("megabit per second", "megabits per second"),
    "kbps": ("kilobit per second", "kilobits per second"),
    "bps": ("bit per second", "bits per second"),
    "mbps": ("megabit per second", "megabits per second"),
    "gbps": ("gigabit per second", "gigabits per second"),
    "MBps": ("megabyte per second", "megabytes per second"),
    "ppm": ("part per million", "parts per million"),
    "sqft": ("square foot", "square feet"),
    "kt": ("knot", "knots"),
    "kts": ("knot", "knots"),
    "hp": ("horsepower", "horsepower"),
    "inHg": ("inch of mercury", "inches of mercury"),
    "mmHg": ("millimeter of mercury", "millimeters of mercury"),
    "IU": ("international unit", "international units"),
}
UNITS = {unit: (name, f"{name}s") for unit, name in _SINGULAR.items()} | _BOTH
"""Symbol: singular, plural."""

_POWERS = {"²": "square", "2": "square", "³": "cubic", "3": "cubic"}
_LENGTHS = word_set("km cm mm nm m in ft yd mi")
_AMBIGUOUS = word_set("A N J t d us in cal MP l ha bit")
"""Read as units only where they touch the number: "5 A students", "5 in a row"."""
_DOTTED = word_set(
    "ft in lb lbs oz yd mi mo gal tsp tbsp Tbsp Tsp qt pt pts pkg hr hrs min mins sec secs yr yrs "
    "wk mph"
)
"""May have a period that is no full stop."""

_ANY = "|".join(sorted(UNITS, key=len, reverse=True))
_POWER = "[²³]|[23](?![0-9])"
_UNIT = re.compile(
    rf"(?P<gap>[ \u00a0-]?)(?P<area>sq |sq\. |cu |cu\. )?(?P<unit>{_ANY})(?P<power>{_POWER})?"
    rf"(?:/(?P<many>10{{1,3}}[ ]?)?(?P<per>{_ANY}|H|S|day|week|month|year|hour|minute|second)"
    rf"(?P<per_power>{_POWER})?)?"
    r"(?:(?<=[°′″])|(?![\w']))"
)
_CUP = re.compile(r" c\.(?=,| [a-z])")
_FEET_BEFORE = re.compile(r"(?:ft|feet|foot)\.? [0-9.]+\Z")
_FAST = re.compile(r"[0-9]{4}\Z|[0-9],[0-9]{3}\Z|[369]00\Z")
"""Bits per second; fewer are points of interest."""
_ANGLE = re.compile(r"[°′][0-9.]+\Z")
_PER = re.compile(
    rf"/(?P<per>{_ANY}|day|week|month|year|hour|minute|second|person|night|mo|"
    r"share|unit|user|seat|ticket|item|page|head|piece|visit|call|word|token|request|sheet|box|acre)"
    r"(?![\w'/])"
)


def unit_after(text: str, position: int, end: int, is_one: bool) -> tuple[int, str] | None:
    """Read the unit that follows a number.

    Args:
        text: The text.
        position: Where the number ends.
        end: Where to stop looking.
        is_one: The number is exactly one.

    Returns:
        Where the unit ends and its words, with the hyphen before it; None: no unit.
    """
    cup = _CUP.match(text, position, end)
    if cup:
        return cup.end(), " cup" if is_one else " cups"
    match = _UNIT.match(text, position, end)
    if not match:
        return None
    if _is_place(text, position, match["unit"]):
        return None
    gap, unit, power, stop = match["gap"], match["unit"], match["power"], match.end()
    has_point = unit in _DOTTED and (gap == "-" or not ends_sentence(text, stop + 1))
    if text.startswith("." if has_point else (".,", ".;"), stop):
        stop += 1
    elif unit in _AMBIGUOUS and gap and not match["area"] and not _is_inch(text, position, unit):
        return None
    if power in ("2", "3") and unit not in _LENGTHS:
        return None
    if unit in ("′", "″", "′′") and _ANGLE.search(text[max(0, position - 8) : position]):
        name = "minute" if unit == "′" else "second"
        return match.end(), f"{name}{'' if is_one else 's'}"
    words = UNITS[unit][0 if is_one or gap == "-" else 1]
    if unit == "bps" and not _FAST.search(text[max(0, position - 8) : position]):
        words = "basis point" if is_one or gap == "-" else "basis points"
    if power and unit in _LENGTHS:
        words = f"{_POWERS[power]} {words}"
    elif power:
        words += " squared" if power == "²" else " cubed"
    if match["area"]:
        words = f"{'square' if match['area'][0] == 's' else 'cubic'} {words}"
    if match["per"]:
        words += per_words(match["per"], match["per_power"], (match["many"] or "").strip())
    return stop, f"{gap}{words}"


PER_NUMBER = re.compile(
    r"/(?P<per>m?L|ml|dL|[μµ]L|kg|g|min|h|s|day|week|month|year|person|page|item)(?![\w'/])"
)
"""Behind a number without a unit: 10^9/L."""

BARE = re.compile(
    r"(?P<unit>km|m|[kKMGT]B|[MG]b|kg|mg|g|L|l|μg|µg)/(?P<per>hr|h|s|min|L|l|m|kg|d)"
    r"(?P<power>[²³]|[23](?![0-9]))?(?![\w/])"
)
"""A compound unit that needs no number before it to be known as one."""


def bare_words(unit: str, per: str, power: str | None) -> str:
    """Read a compound unit without a number."""
    return UNITS[unit][1] + per_words(per, power)


_ROADS = ("I-", "US-", "SR-")
_PLACES = word_set(
    "route highway hwy rte gate seat apt apartment row room unit flat exit suite class grade "
    "platform no figure fig section table appendix exhibit"
)


def _is_place(text: str, position: int, unit: str) -> bool:
    """Say whether a number with a capital is a place, as in "Gate 12A"."""
    start = position
    while start and position - start < _LONGEST_PLACE and text[start - 1].isdecimal():
        start -= 1
    is_numbered = word_before(text, start).lower() in _PLACES or text[
        max(0, start - 3) : start
    ].endswith(_ROADS)
    return len(unit) == 1 and unit.isupper() and is_numbered


_LONGEST_PLACE = 4


def _is_inch(text: str, position: int, unit: str) -> bool:
    """Say whether "in" behind a number is a length: "6 ft 1 in"."""
    return unit == "in" and bool(_FEET_BEFORE.search(text[max(0, position - 10) : position]))


def per_words(unit: str, power: str | None = None, many: str = "") -> str:
    """Read the part of a unit behind its slash: " per hour", " per cubic meter"."""
    name = {"mo": "month", "H": "hour", "S": "second"}.get(unit) or (
        UNITS[unit][1 if many else 0] if unit in UNITS else unit
    )
    name = f"{cardinal(many)} {name}" if many else name
    if power and unit in _LENGTHS:
        name = f"{_POWERS[power]} {name}"
    elif power:
        name += " squared" if power in "²2" else " cubed"
    return f" per {name}"


def per_after(text: str, position: int, end: int) -> tuple[int, str] | None:
    """Read "/kg" or "/month" behind an amount of money; None: there is none."""
    match = _PER.match(text, position, end)
    if not match:
        return None
    stop = match.end()
    if text.startswith(".", stop) and match["per"] in _DOTTED and not ends_sentence(text, stop + 1):
        stop += 1
    return stop, per_words(match["per"])
