"""From a text to its segments: clean and cut.

Does not judge the text (request.py did) and does not know words (vocabulary.py does). Invariant:
nothing is lost, the segments joined are the cleaned text.
"""

import re

from chattts_text.language import HAN
from chattts_text.tokens import is_speakable

_TAG = re.compile(r"\[\w+\]")

_LINE_BREAKS = re.compile(r"\r\n?|[\v\f\x85\u2028\u2029]")
_BLANKS = re.compile(r"(?:[^\S\n]|[\x00-\x08\x0e-\x1f\x7f-\x9f])+")
_BLANK_LINES = re.compile(r" *\n[ \n]*")

_SENTENCE_END = re.compile(
    r"(?P<marks>[。！？；…．.!?;]+)(?P<closing>[\"'”’」』）)》]*)(?P<tail>(?:\s*\[\w+\])*\s*)|\n"
)
_CLAUSE_END = re.compile(rf"(?:[，、：—–]|[,:](?=[\s\[{HAN}]|$))\s*")
_NARROW_MARKS = frozenset(".!?;．")
_NEXT_STARTS = re.compile(rf"[{HAN}]|$")
_WORD_BEFORE = re.compile(r"[A-Za-z](?:[A-Za-z.]*[A-Za-z])?$")
_INITIALS = re.compile(r"(?:[A-HJ-Za-z]|[A-Za-z](?:\.[A-Za-z])+)")
_ABBREVIATIONS = frozenset({"mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "vs", "cf", "fig"})
_ITEM_NUMBER = re.compile(r"\s*\d+")
_WORD_CHARACTER = re.compile(rf"(?![{HAN}])\w")


def clean(text: str) -> str:
    """Make every separator one space or one newline and trim the ends."""
    text = _LINE_BREAKS.sub("\n", text)
    text = _BLANKS.sub(" ", text)
    return _BLANK_LINES.sub("\n", text).strip()


def split(text: str, max_characters: int) -> list[str]:
    """Cut a cleaned text into sentences of at most `max_characters`.

    A longer sentence is cut after a clause mark, else after a space, else anywhere but inside a
    control token (and not inside a word that fits). A piece with nothing to speak joins its
    neighbour where there is room.

    Args:
        text: A text as `clean` returns it.
        max_characters: Longest segment, longer than any control token.

    Returns:
        Segments that joined give `text` again.
    """
    pieces = [part for piece in _sentences(text) for part in _limit(piece, max_characters)]
    segments: list[str] = []
    for piece in pieces:
        joins = segments and not (is_speakable(piece) and is_speakable(segments[-1]))
        if joins and len(segments[-1]) + len(piece) <= max_characters:
            segments[-1] += piece
        else:
            segments.append(piece)
    return segments


def spoken_segments(text: str, max_characters: int | None) -> list[str]:
    """Return what the model has to speak, segment by segment.

    Args:
        text: The text of a request.
        max_characters: Longest segment; None: one segment whatever its length.
    """
    text = clean(text)
    pieces = [text] if max_characters is None else split(text, max_characters)
    return [piece.strip() for piece in pieces if is_speakable(piece)]


def _sentences(text: str) -> list[str]:
    pieces = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match[0] == "\n" or _ends_sentence(text, start, match):
            pieces.append(text[start : match.end()])
            start = match.end()
    return [*pieces, text[start:]] if start < len(text) else pieces


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    marks = match["marks"]
    if not _NARROW_MARKS.issuperset(marks):
        return True
    if not match["tail"] and not _NEXT_STARTS.match(text, match.end()):
        return False
    return marks != "." or not _is_abbreviation(text[start : match.start()])


def _is_abbreviation(before: str) -> bool:
    if _ITEM_NUMBER.fullmatch(before):
        return True
    word = _WORD_BEFORE.search(before)
    if word is None:
        return False
    return word[0].lower() in _ABBREVIATIONS or _INITIALS.fullmatch(word[0]) is not None


def _limit(piece: str, max_characters: int) -> list[str]:
    parts = []
    while len(piece) > max_characters:
        cut = _cut_position(piece, max_characters)
        parts.append(piece[:cut])
        piece = piece[cut:]
    return [*parts, piece]


def _cut_position(piece: str, max_characters: int) -> int:
    clauses = [match.end() for match in _CLAUSE_END.finditer(piece)]
    fitting = [end for end in clauses if end <= max_characters]
    if fitting:
        return fitting[-1]
    space = piece.rfind(" ", 1, max_characters)
    if space >= 0:
        return space + 1
    return _hard_cut(piece, max_characters)


def _hard_cut(piece: str, max_characters: int) -> int:
    for tag in _TAG.finditer(piece):
        if 0 < tag.start() < max_characters < tag.end():
            return tag.start()
    cut = max_characters
    while cut > 1 and _WORD_CHARACTER.match(piece, cut) and _WORD_CHARACTER.match(piece, cut - 1):
        cut -= 1
    return cut if cut > 1 else max_characters
