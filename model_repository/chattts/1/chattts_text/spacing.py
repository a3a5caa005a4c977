"""Spaces and marks in order, and no bracket that the model could take for a control token.

What stands between two words is read as a whole and becomes one mark, one space or nothing: the
strongest mark that is written there, in the width of the language around it; a line break is a
comma, a blank line a full stop. Between Han and Latin is one space, inside Han none. Pauses come
after the mark; control tokens are looked through. Idempotent: what it makes it leaves alone.
"""

import re
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from .aligned import Edit
from .context import PLACEHOLDER, Context
from .language import HAN, LATIN
from .marks import BY_STRENGTH, COMMA, SENTENCE_ENDS, STOP, UNHEARD, WRITTEN, Mark, known

_WIDE = frozenset("，。？！；：、（）【】〔〕〖〗…—｜")
_BRACKETS = frozenset("()（）【】〔〕〖〗|｜—–")
"""Are no pause at the end of a text."""
_ELLIPSIS = re.compile(r"…|\.{2}|。{2}")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_DASH = re.compile(r"\s-+(?!\S)|--")
_NEW_SENTENCE = re.compile(r"[A-Z]|$")

_WORD = re.compile(r"[^\W_]")
_HAN = re.compile(rf"[{HAN}]")
_TOKEN = re.compile(rf"[{PLACEHOLDER}]")
_PAUSE = "\ue000"
"""Stands for any pause while gaps are looked at."""
_MARKS = "".join({*WRITTEN, *UNHEARD})
_INSIDE_WORD = rf"(?<=[{LATIN}])['-](?=[{LATIN}])|(?<=[0-9])[.,:/-](?=[0-9])"
_BETWEEN = re.compile(
    rf"(?P<gap>(?:(?!{_INSIDE_WORD})[\s{_PAUSE}{re.escape(_MARKS)}])+)"
    rf"|(?<=[{HAN}])(?=[{LATIN}])|(?<=[{LATIN}])(?=[{HAN}])"
)
"""What is between two words, or the place where two of different scripts meet."""
_UNSAFE = re.compile(rf"[{re.escape(_MARKS)}]")


class _Gap(NamedTuple):
    """What stands between two words."""

    start: int
    end: int
    mark: Mark | None
    written: str
    """The character that the mark comes from; empty: a line break or a dash."""


def stage(text: str, context: Context) -> Iterable[Edit]:
    """See above; without normalization only what keeps the prompt safe."""
    pauses = dict.fromkeys(position for position, _ in context.pauses(text))
    shown = _shown(context.with_readings(text), pauses)
    first_word = _WORD.search(shown)
    start = first_word.start() if first_word else len(text)
    yield from _leading(pauses, start)
    if not context.switches.normalize:
        yield from _safe(shown, context)
        return
    matches = list(_BETWEEN.finditer(shown))
    gaps = [_gap(shown, *match.span("gap")) for match in matches if match["gap"]]
    for gap, has_han in zip(gaps, _sentences_with_han(shown, gaps), strict=True):
        if gap.start < start:
            yield from _before_words(text, gap, pauses)
            continue
        kept = "".join(text[i] for i in range(gap.start, gap.end) if i in pauses)
        wanted = _wanted(shown, gap, has_han, context) + kept
        if wanted != text[gap.start : gap.end]:
            yield Edit(gap.start, gap.end, wanted)
    for match in matches:
        if not match[0]:
            yield Edit(match.start(), match.start(), " ")


def _shown(text: str, pauses: Iterable[int]) -> str:
    """Return the text with all pauses as one character that is no placeholder."""
    characters = list(text)
    for position in pauses:
        characters[position] = _PAUSE
    return "".join(characters)


def _leading(pauses: Iterable[int], first_word: int) -> Iterator[Edit]:
    """Leave out a pause before the first word: nothing has begun that it could interrupt."""
    for position in pauses:
        if position < first_word:
            yield Edit(position, position + 1, "", "dropped_pause")


def _before_words(text: str, gap: _Gap, pauses: Container[int]) -> Iterator[Edit]:
    """Leave out marks and spaces before the first word; _leading does the pauses."""
    for position in range(gap.start, gap.end):
        if position not in pauses:
            yield Edit(position, position + 1, "")


def _safe(text: str, context: Context) -> Iterator[Edit]:
    """Change only brackets, and marks that the vocabulary lacks."""
    for match in _UNSAFE.finditer(text):
        character = match[0]
        if character in "[]":
            bracket = "(" if character == "[" else ")"
            yield Edit(*match.span(), bracket if context.vocabulary.has(bracket) else " ")
        elif not context.vocabulary.has(character):
            mark = WRITTEN.get(character)
            is_wide = character in _WIDE
            yield Edit(*match.span(), known(mark, is_wide, context.vocabulary) if mark else " ")


def _gap(text: str, start: int, end: int) -> _Gap:
    written = text[start:end]
    marks: dict[Mark, str] = {}
    for character in written:
        if character in WRITTEN and not (end == len(text) and character in _BRACKETS):
            marks.setdefault(WRITTEN[character], character)
    if _ELLIPSIS.search(written):
        stop = marks.pop(STOP, "")
        is_end = "\n" in written or _NEW_SENTENCE.match(text, end)
        marks.setdefault(STOP if is_end else COMMA, stop or "…")
    if start > 0 and end < len(text):
        if "\n" in written:
            marks.setdefault(STOP if _BLANK_LINE.search(written) else COMMA, "")
        elif _DASH.search(written):
            marks.setdefault(COMMA, "")
    mark = next((mark for mark in BY_STRENGTH if mark in marks), None)
    return _Gap(start, end, mark, marks[mark] if mark else "")


def _sentences_with_han(text: str, gaps: list[_Gap]) -> Iterator[bool]:
    """Say for each gap whether the sentence that it is in, or ends, has Han."""
    start, waiting = 0, 0
    for gap in gaps:
        waiting += 1
        if gap.mark in SENTENCE_ENDS:
            yield from [_HAN.search(text, start, gap.start) is not None] * waiting
            start, waiting = gap.end, 0
    yield from [_HAN.search(text, start) is not None] * waiting


def _wanted(text: str, gap: _Gap, has_han: bool, context: Context) -> str:
    """Return what is to stand between two words, besides pauses."""
    left, right = text[gap.start - 1], text[gap.end : gap.end + 1]
    if gap.mark is None:
        return " " if right and _needs_space(left, right, text[gap.start : gap.end]) else ""
    mark = known(gap.mark, _is_wide(text, gap, has_han), context.vocabulary)
    return mark if not right or mark in _WIDE or mark == " " else f"{mark} "


def _needs_space(left: str, right: str, written: str) -> bool:
    has_han = bool(_HAN.match(left)), bool(_HAN.match(right))
    if _TOKEN.match(left) or _TOKEN.match(right):
        return not any(has_han) and any(one.isspace() or one == _PAUSE for one in written)
    return not all(has_han)


def _is_wide(text: str, gap: _Gap, has_han: bool) -> bool:
    """Choose the width of a mark: its neighbours' language, else as it is written."""
    before = _last_outside_tokens(text, gap.start)
    if before and _HAN.match(before):
        return True
    if gap.mark not in SENTENCE_ENDS and _HAN.match(text, gap.end):
        return True
    return has_han and (gap.written in _WIDE if gap.written else True)


def _last_outside_tokens(text: str, end: int) -> str:
    """Return the last character before `end` that is no placeholder."""
    while end and _TOKEN.match(text, end - 1):
        end -= 1
    return text[end - 1 : end]
