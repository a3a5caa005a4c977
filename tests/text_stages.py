"""Runs single stages of the text front end on a text, for their own tests."""

from __future__ import annotations

import re
from typing import Any

from chattts_text import AlignedText, Context, Switches
from chattts_text.normalize import stage


class Everything:
    """A vocabulary that has all."""

    def has(self, text: str) -> bool:
        """See chattts_text.Vocabulary."""
        return True


def normalized(text: str, **switches: Any) -> AlignedText:
    """Return a text after the stage that writes out numbers, signs and addresses."""
    context = Context(Everything(), Switches(**switches), {})
    return AlignedText.of(text).edited(stage(text, context))


def said(text: str, **switches: Any) -> str:
    """Return the same as one line of single spaces."""
    return re.sub(r"\s+", " ", normalized(text, **switches).text).strip()
