"""The user's lexicon: words that are to be read in a certain way.

The longest word that fits is taken first; Latin words only as a whole, in any case.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from .aligned import Edit
from .context import Context

_WORD = "A-Za-z0-9"


def stage(text: str, context: Context) -> Iterable[Edit]:
    """See above."""
    if not context.lexicon:
        return
    readings = _lower_case(context.lexicon)
    for match in _pattern(tuple(readings)).finditer(text):
        spoken = readings.get(match[0].lower())
        if spoken is not None and spoken != match[0]:
            yield Edit(*match.span(), spoken)


def _lower_case(lexicon: Mapping[str, str]) -> dict[str, str]:
    return {word.strip().lower(): spoken for word, spoken in lexicon.items()}


@lru_cache(maxsize=64)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    ordered = sorted(words, key=len, reverse=True)
    return re.compile("|".join(map(_whole, ordered)), re.IGNORECASE)


def _whole(word: str) -> str:
    """Return an expression for a word that is not a part of another Latin word."""
    before = rf"(?<![{_WORD}])" if re.match(f"[{_WORD}]", word) else ""
    after = rf"(?![{_WORD}])" if re.search(f"[{_WORD}]$", word) else ""
    return f"{before}{re.escape(word)}{after}"
