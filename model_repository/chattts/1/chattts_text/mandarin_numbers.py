"""Number words of Mandarin: digits one by one, whole numbers, decimals."""

MAX_CARDINAL_DIGITS = 16
"""Longer numbers are said digit by digit: nobody follows the units of a longer one."""

_DIGITS = "零一二三四五六七八九"
_PLACES = ("", "十", "百", "千")


def digits(written: str, one: str = "一") -> str:
    """Say each digit by itself; any other character is left out.

    Args:
        written: Text with ASCII digits.
        one: How 1 is said: 幺 in telephone numbers and codes.
    """
    names = [one if digit == "1" else _DIGITS[int(digit)] for digit in written if digit in _ASCII]
    return "".join(names)


_ASCII = frozenset("0123456789")


def cardinal(written: str) -> str:
    """Say a whole number, 2 at its head as 两 before 百, 千, 万 and 亿 (两千二百, but 十二万).

    Args:
        written: ASCII digits; zeros at the head are not said.
    """
    written = written.lstrip("0")
    if not written:
        return "零"
    if len(written) > MAX_CARDINAL_DIGITS:
        return digits(written)
    words = _large(written)
    if words.startswith("一十"):
        return words[1:]
    if words[0] == "二" and words[1:2] in ("百", "千", "万", "亿"):
        return "两" + words[1:]
    return words


def _large(written: str) -> str:
    """Say digits that begin with no zero, in groups of eight and four."""
    for size, unit in ((8, "亿"), (4, "万")):
        if len(written) > size:
            low = written[-size:]
            rest = low.lstrip("0")
            zero = "零" if rest and low[0] == "0" else ""
            return _large(written[:-size]) + unit + zero + (_large(rest) if rest else "")
    words, has_gap = "", False
    for digit, place in zip(written, reversed(_PLACES[: len(written)]), strict=True):
        if digit == "0":
            has_gap = True
            continue
        words += ("零" if has_gap else "") + _DIGITS[int(digit)] + place
        has_gap = False
    return words


def number(written: str, is_counted: bool = False) -> str:
    """Say a number with or without a fraction.

    Args:
        written: Such as "1,299.00", "0.5", ".5", "007"; with zeros at its head it is said digit by
            digit.
        is_counted: It counts something, so that 2 is 两.
    """
    whole, point, fraction = written.replace(",", "").partition(".")
    whole = whole or "0"
    if whole == "2" and is_counted and not point:
        return "两"
    words = digits(whole) if len(whole) > 1 and whole[0] == "0" else cardinal(whole)
    return f"{words}点{digits(fraction)}" if fraction else words
