"""Write out what is not words: numbers, dates, units, symbols, addresses.

Addresses are found first, in any language, and read as English. Every other part of the text goes
to the rules of its language; what they leave of signs is said or dropped by name.
"""

import re
from collections.abc import Iterable, Iterator

from . import addresses, english, mandarin, symbols
from .aligned import Edit
from .context import Context
from .language import HAN, LanguageSpan, language_spans

_RULES = {"zh": mandarin.edits, "en": english.edits}


def stage(text: str, context: Context) -> Iterable[Edit]:
    """Return the edits that turn every number, unit, sign and address into words."""
    found = list(addresses.edits(text, context))
    spans = _without(language_spans(text, context.switches.language), found)
    for start, end, language in spans:
        edits = sorted(_RULES[language](text, start, end, context))
        found += edits
        for gap_start, gap_end in _gaps(edits, start, end):
            found += symbols.edits(text, gap_start, gap_end, language)
    return _apart(text, sorted(found))


_HAN = re.compile(rf"[{HAN}]")


def _apart(text: str, edits: list[Edit]) -> Iterator[Edit]:
    """Put a space wherever new words would touch other words; the rules need not care.

    Args:
        text: What the edits belong to.
        edits: In order.
    """
    done, last = 0, ""
    for index, edit in enumerate(edits):
        last = text[edit.start - 1] if edit.start > done else last
        is_next_edited = index + 1 < len(edits) and edits[index + 1].start == edit.end
        following = "" if is_next_edited else text[edit.end : edit.end + 1]
        words = edit.text.strip()
        if words:
            left = " " if _touch(last, words[0]) else ""
            right = " " if _touch(words[-1], following) else ""
            words = f"{left}{words}{right}"
        elif edit.text or _touch(last, following):
            words = " "
        yield edit._replace(text=words)
        done, last = edit.end, words[-1:] or last


def _touch(before: str, after: str) -> bool:
    is_in_words = before.isalnum() and after.isalnum()
    return is_in_words and not _HAN.match(before) and not _HAN.match(after)


def _without(spans: list[LanguageSpan], edits: list[Edit]) -> Iterator[LanguageSpan]:
    """Cut what the edits cover out of the spans; both are in order."""
    index = 0
    for span in spans:
        start = span.start
        while index < len(edits) and edits[index].start < span.end:
            edit = edits[index]
            if start < edit.start:
                yield LanguageSpan(start, edit.start, span.language)
            start = max(start, edit.end)
            if edit.end > span.end:
                break
            index += 1
        if start < span.end:
            yield LanguageSpan(start, span.end, span.language)


def _gaps(edits: list[Edit], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Return the parts of `start ... end` that no edit covers."""
    for edit in edits:
        if start < edit.start:
            yield start, edit.start
        start = max(start, edit.end)
    if start < end:
        yield start, end
