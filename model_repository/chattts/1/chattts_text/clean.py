"""Width, entities, control and invisible characters, odd spaces: make the text plain.

What looks the same becomes the same: full-width letters, digits and signs become ASCII (Chinese
punctuation stays), compatibility forms what they stand for, accented Latin letters plain ones,
digits of other scripts ASCII. Superscripts, fractions, Roman and circled numbers stay: the number
rules read them. Angle signs around words are brackets, not signs of order; quotes, square brackets
and bullets only part words. Invisible characters vanish without a warning, because nobody would
read them; control, private, unassigned and broken ones may have been meant as something, so they
are listed.
Words longer than a token model's longest word are parted.
"""

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from .aligned import Edit
from .context import PLACEHOLDER, Context
from .language import HAN

_PLAIN = rf"\n -~{HAN}{PLACEHOLDER}，。！？、；：（）《》【】…—"
_LESS, _GREATER = "<{1,3}|&lt;|&#60;|&#[xX]3[cC];", ">{1,3}|&gt;|&#62;|&#[xX]3[eE];"
_FACES = (
    r"[:;=][-'^o]?[()DPpO/\\|*]{1,3}|[xX]D|(?<![0-9] )(?<!\b[a-z] )<3+"
    r"|\^[_.-]?\^|[-=][_.][-=]|[oO][_.][oO]|T[_.]T|>[_.]<"
)
"""Faces and hearts made of signs."""
_ODD = re.compile(
    rf"(?P<face>(?<![^\s{HAN}。！，!?~])(?:{_FACES})(?![^\s。！，.,!?~]))|"
    r"(?P<quoted>^(?:[^\S\n]*>){1,3}[^\S\n]+(?=[^\s>=0-9]))"
    r"|(?P<bullet>^[^\S\n]*[•‣◦▪▸►●○■□◆◇➢✓✔*+-][^\S\n]+(?=[^\s*+-]))"
    rf"|(?P<open>(?<![A-Za-z0-9])(?:{_LESS}))(?=[^\s<>&0-9=][^\s<>&]{{0,30}}(?P<close>{_GREATER}))"
    r"|(?P<entity>&(?:#[0-9]{1,12}|#[xX][0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{1,30});)"
    r"|(?P<apostrophe>(?<=[A-Za-zÀ-ɏ])[’‘ʼ´`＇](?=[A-Za-zÀ-ɏ])|[’‘](?=[0-9]0s))"
    r"|(?P<part>[\[\]{}“”„‟«»‹›「」『』])"
    r"|(?P<quote>\")"
    r"|(?P<keycap>(?<=[0-9])\ufe0f?\u20e3)"
    r"|(?P<inside_number>(?<=[0-9０-９])：(?=[0-9０-９])|(?<=[０-９])，(?=[０-９]{3}(?![０-９])))"
    rf"|(?P<again>(?<=[{HAN}])々)"
    r"|\r\n"
    rf"|[^{_PLAIN}]|[\uf900-\ufaff\U0002f800-\U0002fa1f]",
    re.MULTILINE,
)

_LINE_BREAKS = frozenset("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u180e\u2065")
_COMBINING = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)
_VARIATION = re.compile("[\ufe00-\ufe0f\u180b-\u180d\U000e0100-\U000e01ef]")
_KEPT = re.compile(
    "[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209c\u2100-\u2109\u210f-\u2129\u212c-\u218b\u2460-\u249b"
    "\u2474-\u2487\u24ea-\u24ff\u2776-\u2793\u203c\u2047-\u2049\u2026\u00a8\u00af\u00b4\u00b8\u3000-\u303f"
    "\u30fb-\u30ff\uffe3]"
)
"""Have a compatibility form, but other stages read them as they are."""
_LETTERS = {
    "ß": "ss",
    "ẞ": "SS",
    "æ": "ae",
    "Æ": "Ae",
    "œ": "oe",
    "Œ": "Oe",
    "ø": "o",
    "Ø": "O",
    "đ": "d",
    "Đ": "D",
    "ð": "d",
    "Ð": "D",
    "þ": "th",
    "Þ": "Th",
    "ł": "l",
    "Ł": "L",
    "ħ": "h",
    "Ħ": "H",
    "ı": "i",
    "ŋ": "ng",
    "Ŋ": "Ng",
    "ə": "e",
}
_SIGNS = {
    "º": "°",
    "ª": "a",
    "\u2010": "-",
    "\u2011": "-",
    "\u2012": "-",
    "\u2015": "—",
    "\u2500": "—",
    "\u22ef": "…",
    "\u2025": "…",
    "\u2800": " ",
    "\u301c": "~",
    "｡": "。",
    "､": "、",
    "·": "·",
    "\u2027": "·",
    "\u30fb": "·",
    "\uff65": "·",
}
_MEASURED = frozenset("0123456789¼½¾⅓⅔⅛⅜⅝⅞")
"""A double quote behind one of these means inches where no quotation is open."""

_LISTED = "dropped_control"
_MAX_WORD = 60
"""Longer Latin words are parted; tokenizers give up at about 100 letters."""
_LONG_WORD = re.compile(rf"[A-Za-z0-9]{{{_MAX_WORD + 1},}}")


def stage(text: str, context: Context) -> Iterable[Edit]:
    """See above."""
    yield from parted(text)
    bracket_end, quoted_from = -1, -1
    for match in _ODD.finditer(text):
        start, end = match.span()
        if match["open"]:
            bracket_end = match.end("close")
            yield Edit(start, end, "〈")
            yield Edit(match.start("close"), bracket_end, "〉")
        elif end == bracket_end:
            continue
        elif match["inside_number"]:
            yield Edit(start, end, ":" if match[0] == "：" else ",")
        elif match["face"]:
            yield Edit(start, end, " ", "dropped_symbol")
        elif match["again"]:
            yield Edit(start, end, text[start - 1])
        elif match["quote"]:
            is_inside = quoted_from >= 0 and text.find("\n", quoted_from, start) < 0
            if is_inside or text[max(0, start - 1)] not in _MEASURED:
                quoted_from = -1 if is_inside else start
                yield Edit(start, end, " ")
        elif match["keycap"]:
            yield Edit(start, end, "、")
        elif match["part"] or match["bullet"] or match["quoted"]:
            yield Edit(start, end, " ")
        elif match["apostrophe"]:
            yield Edit(start, end, "'")
        elif match["entity"]:
            decoded = html.unescape(match[0])
            if decoded != match[0]:
                pieces = [plain(character) for character in decoded or "\ufffd"]
                note = max(note for _, note in pieces)
                yield Edit(start, end, "".join(piece for piece, _ in pieces), note)
        elif match[0] == "\r\n":
            yield Edit(start, end, "\n")
        else:
            replacement, note = plain(match[0])
            if replacement != match[0]:
                yield Edit(start, end, replacement, note)


def parted(text: str) -> Iterator[Edit]:
    """Yield spaces inside Latin words that no token model can read as one."""
    for word in _LONG_WORD.finditer(text):
        for position in range(word.start() + _MAX_WORD, word.end(), _MAX_WORD):
            yield Edit(position, position, " ")


@lru_cache(maxsize=8192)
def plain(character: str) -> tuple[str, str]:
    """Return the plain form of a character, and the note that this is worth, if any."""
    if character in _LINE_BREAKS:
        return "\n", ""
    if character in _INVISIBLE or _COMBINING.match(character) or _VARIATION.match(character):
        return "", ""
    if character in "\ufffc\ufffd":
        return "", _LISTED
    if character in _SIGNS:
        return _SIGNS[character], ""
    if character in _LETTERS:
        return _LETTERS[character], ""
    category = unicodedata.category(character)
    if category in ("Zs", "Zl", "Zp") or character == "\t":
        return " ", ""
    if category == "Cf":
        return "", ""
    if category in ("Cc", "Co", "Cs", "Cn") and character != "\n":
        return "", _LISTED
    if category == "Nd":
        return str(unicodedata.decimal(character)), ""
    if _KEPT.match(character) or character in "，！？；：（）":
        return character, ""
    return _folded(character), ""


def _folded(character: str) -> str:
    """Return the compatibility form without accents on Latin letters."""
    folded = unicodedata.normalize("NFKC", character)
    if not folded.isascii():
        bare = "".join(
            one for one in unicodedata.normalize("NFD", folded) if not _COMBINING.match(one)
        )
        folded = bare if bare.isascii() and bare.isalnum() else folded
    return _LETTERS.get(folded, folded)
