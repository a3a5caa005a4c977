"""English number words, in American style: no "and", hyphens between tens and ones."""

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = (
    "",
    "thousand",
    "million",
    "billion",
    "trillion",
    "quadrillion",
    "quintillion",
    "sextillion",
    "septillion",
)
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}

MAX_DIGITS = 3 * len(_SCALES)
"""Whole numbers with more digits have no name here; they are read digit by digit."""


def digits(text: str) -> str:
    """Read digits one by one; other characters are left out."""
    return " ".join(_ONES[int(one)] for one in text if one in "0123456789")


def cardinal(text: str) -> str:
    """Read a whole number of ASCII digits, with or without grouping commas."""
    text = text.replace(",", "").lstrip("0") or "0"
    if len(text) > MAX_DIGITS:
        return digits(text)
    if text == "0":
        return _ONES[0]
    words: list[str] = []
    first = len(text) % 3 or 3
    groups = [text[:first], *(text[i : i + 3] for i in range(first, len(text), 3))]
    for index, group in enumerate(groups):
        value = int(group)
        if value:
            words += _below_thousand(value)
            scale = _SCALES[len(groups) - 1 - index]
            words += [scale] if scale else []
    return " ".join(words)


def _below_thousand(value: int) -> list[str]:
    hundreds, rest = divmod(value, 100)
    words = [_ONES[hundreds], "hundred"] if hundreds else []
    return [*words, below_hundred(rest)] if rest else words


def below_hundred(value: int) -> str:
    """Read 0 ... 99."""
    if value < 20:
        return _ONES[value]
    tens, ones = divmod(value, 10)
    return f"{_TENS[tens]}-{_ONES[ones]}" if ones else _TENS[tens]


def ordinal(text: str) -> str:
    """Read a whole number as a rank: 21 is twenty-first."""
    words = cardinal(text)
    head, mark, last = "", "", words
    for separator in "- ":
        if separator in last:
            cut = last.rindex(separator)
            head, mark, last = words[: len(words) - len(last) + cut], separator, last[cut + 1 :]
    return f"{head}{mark}{_ordinal_word(last)}"


def _ordinal_word(word: str) -> str:
    if word in _ORDINALS:
        return _ORDINALS[word]
    return f"{word[:-1]}ieth" if word.endswith("y") else f"{word}th"


def number(text: str) -> str:
    """Read a number as it is written: grouping commas, decimals, `.5`; no sign."""
    whole, point, decimals = text.partition(".")
    words = cardinal(whole) if whole else ""
    if point and decimals:
        words = f"{words} point {digits(decimals)}".lstrip()
    return words


def year(text: str) -> str:
    """Read a year of three or four digits: 1905 is nineteen oh five, 2008 two thousand eight."""
    value = int(text)
    if 2000 <= value <= 2009 or value % 1000 == 0:
        return cardinal(text)
    return pairs(text)


def pairs(text: str) -> str:
    """Read a number of up to four digits as people say rooms, models and years: 208, 1080, 737."""
    if len(text) < 3 or len(text) > 4 or text[0] == "0":
        return digits(text) if text[0] == "0" or len(text) > 4 else cardinal(text)
    head, tail = int(text[:-2]), int(text[-2:])
    if not tail:
        return (
            cardinal(text) if head % 10 == 0 or len(text) == 3 else f"{below_hundred(head)} hundred"
        )
    if tail < 10:
        if head % 10 == 0 and len(text) == 4:
            return cardinal(text)
        return f"{below_hundred(head)} oh {_ONES[tail]}"
    return f"{below_hundred(head)} {below_hundred(tail)}"


def model_number(text: str) -> str:
    """Read the digits of a name such as H264 or RTX 4090: in pairs, or one by one if longer."""
    return pairs(text) if len(text) <= 4 else digits(text)


def plural(words: str) -> str:
    """Put the last number word into the plural: nineties, quarters, sixes."""
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return f"{words}es" if words.endswith("x") else f"{words}s"


def fraction(numerator: str, denominator: str) -> str:
    """Read a common fraction: 3/4 is three quarters; large denominators are "over"."""
    above, below = int(numerator), int(denominator)
    top = cardinal(numerator)
    if below < 2 or below > 100 or above >= 100:
        return f"{top} over {cardinal(denominator)}"
    part = {2: "half", 4: "quarter"}.get(below) or ordinal(denominator)
    if above == 1:
        return f"one {part}"
    return f"{top} {'halves' if below == 2 else plural(part)}"


_ROMAN_PARTS = (
    ("C", 100), ("XC", 90), ("L", 50), ("XL", 40), ("X", 10), ("IX", 9), ("V", 5), ("IV", 4),
    ("I", 1),
)  # fmt: skip
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def roman(text: str) -> int:
    """Return the value of a well-formed Roman numeral up to 399 in capitals; 0: it is none."""
    if not text or not set(text) <= set(_ROMAN):
        return 0
    values = [_ROMAN[one] for one in text]
    total = sum(
        -value if value < following else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    )
    return total if to_roman(total) == text else 0


def to_roman(value: int) -> str:
    """Write 1 ... 399 as a Roman numeral."""
    written = ""
    for sign, size in _ROMAN_PARTS:
        count, value = divmod(value, size)
        written += sign * count
    return written
