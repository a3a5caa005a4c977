"""What the English rules are made of: patterns tried where something readable begins."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from .aligned import Edit

Handler = Callable[[re.Match[str]], Iterable[Edit] | None]
"""Says what to change in what a pattern has matched; None: this is something else, go on."""

NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
"""A number without a sign, for use inside a group."""


def word_set(words: str) -> frozenset[str]:
    """Make a set of words that are written with spaces between."""
    return frozenset(words.split())


class Rule(NamedTuple):
    """One reading. What its pattern matches is done with, whether edited or not."""

    pattern: re.Pattern[str]
    handler: Handler


def rule(pattern: str, handler: Handler) -> Rule:
    """Make a rule of a regular expression."""
    return Rule(re.compile(pattern), handler)


def whole(match: re.Match[str], words: str) -> list[Edit]:
    """Replace all that was matched."""
    return [Edit(*match.span(), words)]


def groups(match: re.Match[str], **words: str | None) -> list[Edit]:
    """Replace named groups; those that took no part in the match or have no words are left."""
    return [
        Edit(*match.span(name), new)
        for name, new in words.items()
        if new is not None and match[name] is not None and match[name] != new
    ]


_WORD_BEFORE = re.compile(r"([A-Za-z]+)[.:#]? ?\Z")
_LONGEST_WORD = 20


def word_before(text: str, position: int) -> str:
    """Return the word that ends right before a position, "" if none does."""
    match = _WORD_BEFORE.search(text[max(0, position - _LONGEST_WORD) : position])
    return match[1] if match else ""


_NO_THING = (
    "and|or|of|per|in|to|from|at|on|for|with|by|is|are|was|were|has|have|had|tall|long|wide|high|"
    "deep|away|later|ago|left|the|a|an|each|every|than|as|if|when|but|so|then|off|more|less|total|"
    "apart|faster|slower|before|after|until|out|up|down|over|under|between|it|he|she|they|we|you|i|"
    "along|across|around|above|below|inside|outside|through|near|behind|within|without|about|again|"
    "ahead|early|late|remaining|clear|max|"
    "x|today|now|yesterday|tomorrow|daily|only|too|also|here|there|north|south|east|west|not|which|that"
)
_THING = re.compile(rf" (?!(?:{_NO_THING})\b)[a-z]")
"""A word that an amount before it may describe: a noun, or an adjective before one."""


def is_measure(text: str, start: int, end: int, is_tight: bool = False) -> bool:
    """Say whether an amount describes a thing: then its unit is singular.

    Args:
        text: The text.
        start: Where the amount begins.
        end: Where it ends.
        is_tight: Its unit touches the number, as in "12V battery"; else it needs an article, as
            "a 5 km run".
    """
    is_described = _THING.match(text, end) is not None
    return is_described and (is_tight or word_before(text, start) in ("a", "A"))


_SENTENCE_END = re.compile(r"""["')\]]*(?:\s*\Z|\s*\n|\s+["'(]*[A-Z])""")


def ends_sentence(text: str, position: int) -> bool:
    """Say whether a period that ends at `position` also ends its sentence."""
    return _SENTENCE_END.match(text, position) is not None
