"""What the stages of the front end share: switches, the voice's vocabulary, and the placeholders.

A control token, a forced reading or a pause is one private character while the stages work, so
that no rule can look inside it, change it or cut it; the front end puts its meaning back.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from .aligned import Edit
from .switches import Switches

_FIRST_PLACEHOLDER = 0xF0000
_LAST_PLACEHOLDER = 0xFFFFD
PLACEHOLDER = f"{chr(_FIRST_PLACEHOLDER)}-{chr(_LAST_PLACEHOLDER)}"
"""All placeholders, for use inside a regular expression's brackets."""

MAX_PAUSE_MS = 10_000
"""Longest silence in one place."""

_MAX_REMEMBERED = 50_000
"""Characters of a vocabulary; more than any language has."""

_ANY_PLACEHOLDER = re.compile(f"[{PLACEHOLDER}]")


class Vocabulary(Protocol):
    """What the token model can read."""

    def has(self, text: str) -> bool:
        """Say whether the tokenizer knows every piece of `text`."""
        ...


class RememberedVocabulary:
    """A vocabulary that asks another one only once for each character."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._known: dict[str, bool] = {}

    def has(self, text: str) -> bool:
        """Say whether the tokenizer knows every piece of `text`."""
        if len(text) != 1:
            return self._vocabulary.has(text)
        known = self._known.get(text)
        if known is None:
            if len(self._known) >= _MAX_REMEMBERED:
                self._known.clear()
            known = self._known[text] = self._vocabulary.has(text)
        return known


@dataclass(frozen=True, slots=True)
class Token:
    """What a placeholder stands for."""

    text: str = ""
    """What the model reads there: a control token, or the homophone of a forced reading."""
    pause_ms: int | None = None
    """Milliseconds of silence there; None: no pause."""

    @property
    def is_reading(self) -> bool:
        """Say whether this is one character to be read, and neither a control token nor a pause."""
        return len(self.text) == 1


@dataclass(slots=True)
class Context:
    """One text on its way through the stages."""

    vocabulary: Vocabulary
    switches: Switches
    lexicon: Mapping[str, str]
    """Word as written: how to write it so that it is read right."""
    tokens: list[Token] = field(default_factory=list)
    _indices: dict[Token, int] = field(default_factory=dict)

    def placeholder(self, token: Token) -> str:
        """Return the character that stands for `token` from now on.

        Equal tokens share one, so that there are enough for any text.
        """
        index = self._indices.setdefault(token, len(self.tokens))
        if index == len(self.tokens):
            self.tokens.append(token)
        return chr(_FIRST_PLACEHOLDER + index)

    def token(self, character: str) -> Token | None:
        """Return what a character stands for; None: itself."""
        index = ord(character) - _FIRST_PLACEHOLDER
        return self.tokens[index] if 0 <= index < len(self.tokens) else None

    def pauses(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the position and the milliseconds of each pause in a text."""
        for match in _ANY_PLACEHOLDER.finditer(text):
            token = self.token(match[0])
            if token and token.pause_ms is not None:
                yield match.start(), token.pause_ms

    def with_readings(self, text: str) -> str:
        """Put homophones in place of forced readings; the length stays as it is."""
        if not self.tokens:
            return text
        return _ANY_PLACEHOLDER.sub(self._reading, text)

    def expanded(self, text: str) -> str:
        """Put in place of every placeholder what the model reads there."""
        if not self.tokens:
            return text
        return _ANY_PLACEHOLDER.sub(self._expansion, text)

    def expansions(self, text: str) -> Iterator[Edit]:
        """Yield the edits that `expanded` comes down to."""
        for match in _ANY_PLACEHOLDER.finditer(text):
            yield Edit(*match.span(), self._expansion(match))

    def _reading(self, match: re.Match[str]) -> str:
        token = self.token(match[0])
        return token.text if token and token.is_reading else match[0]

    def _expansion(self, match: re.Match[str]) -> str:
        token = self.token(match[0])
        return token.text if token else match[0]


Stage = Callable[[str, Context], Iterable[Edit]]
"""A stage looks at the text as the stages before have left it, and says what to change in it."""
