"""One place in a text that a Mandarin rule may read."""

import re
from collections.abc import Callable
from typing import NamedTuple

from .mandarin_numbers import cardinal
from .mandarin_units import COUNTER

CONTEXT_CHARACTERS = 12
"""A rule looks back at no more than this."""


_COUNTED = re.compile(rf"(?:[、或] ?\d{{1,4}})?{COUNTER.pattern}", re.ASCII)


_PRICED = re.compile(r"\d[块元毛角米斤]$", re.ASCII)
"""Behind it 2 is the rest of an amount: 1块2."""

_ORDINAL = re.compile(r"第(?:\d{1,4} ?[、,，和或与至到-] ?)*$", re.ASCII)


class Place(NamedTuple):
    """A match of a rule's pattern and what is around it."""

    match: re.Match[str]
    before: str
    """Up to `CONTEXT_CHARACTERS` in front of the match."""
    said: str
    """What was said for what ends right in front of the match; empty: it was left as written."""
    one: str
    """How 1 is said in telephone numbers and codes."""

    def follows(self, pattern: re.Pattern[str]) -> bool:
        """Say whether a pattern matches right behind the match."""
        return pattern.match(self.match.string, self.match.end()) is not None

    @property
    def after(self) -> str:
        """Up to six characters behind the match."""
        end = self.match.end()
        return self.match.string[end : end + 6]

    @property
    def is_counted(self) -> bool:
        """The match is a number that counts something, so that 2 is 两."""
        is_ordinal = _ORDINAL.search(self.before) is not None
        counted = COUNTER if _PRICED.search(self.before) else _COUNTED
        return not is_ordinal and not self.said and self.follows(counted)

    def part(self, name: str) -> str:
        """Say a group of digits as a whole number; empty if there is none."""
        written = self.match[name]
        return cardinal(written) if written else ""


Rule = tuple[re.Pattern[str], Callable[[Place], str | None]]
"""What is tried at a place: a pattern, and what to say for all of its match; None: not this rule.

NOTE: a pattern reads a bounded number of characters unless its rule takes all that it has read, so
that the work stays linear in the text.
"""


def rule(pattern: str, say: Callable[[Place], str | None]) -> Rule:
    """Make a rule from a regular expression in which digits are ASCII digits."""
    return re.compile(pattern, re.ASCII), say
