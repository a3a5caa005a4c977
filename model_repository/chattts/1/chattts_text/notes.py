"""The warnings of the front end: what each code means to the caller."""

from collections.abc import Iterable
from typing import Any

from .aligned import Note

MESSAGES = {
    "dropped_control": "a character without a sound or a shape was left out",
    "dropped_symbol": "a symbol that has no reading was left out",
    "dropped_markup": "markup was left out",
    "dropped_script": "letters of a script that the model does not read were left out",
    "spelled_script": "letters of a script that the model does not read were spelled in Latin",
    "dropped_link": "a web address was left out",
    "dropped_footnote": "a reference mark was left out",
    "homophone": "a character that the model does not know was replaced by one of the same sound",
    "polyphone": "a character was replaced by one that has the reading that it has here",
    "unreadable": "a character that the model does not know was left out",
    "unknown_reading": "a forced reading that no character of this vocabulary has; read as written",
    "dropped_pause": "a pause before the first word was left out",
}

MAX_NOTES = 50
"""More than these are counted, not listed."""


def as_warnings(notes: Iterable[Note], original: str) -> list[dict[str, Any]]:
    """Build the metadata's warnings from notes, neighbours of one kind joined.

    Args:
        notes: In any order.
        original: The caller's text.
    """
    joined: list[Note] = []
    for note in sorted(notes, key=lambda one: (one.start, one.end)):
        last = joined[-1] if joined else None
        if last and last.code == note.code and last.end == note.start and not note.spoken:
            joined[-1] = last._replace(end=note.end)
        else:
            joined.append(note)
    warnings: list[dict[str, Any]] = [
        {
            "code": note.code,
            "message": MESSAGES[note.code],
            "start": note.start,
            "end": note.end,
            "text": original[note.start : note.end],
            "spoken": note.spoken,
        }
        for note in joined[:MAX_NOTES]
    ]
    if len(joined) > MAX_NOTES:
        rest = f"{len(joined) - MAX_NOTES} more changes like these are not listed"
        warnings.append({"code": "more_changes", "message": rest})
    return warnings
