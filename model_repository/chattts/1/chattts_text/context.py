"""What the stages of the front end share: switches, the voice's vocabulary, and the placeholders.

A control token, a forced reading or a pause is one private character while the stages work, so
that no rule can look inside it, change it or cut it; the front end puts its meaning back.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from .aligned import Edit
from .switches import Switches

_FIRST_PLACEHOLDER = 0xF0000
_LAST_PLACEHOLDER = 0xFFFFD
PLACEHOLDER = f"{chr(_FIRST_PLACEHOLDER)}-{chr(_LAST_PLACEHOLDER)}"
"""All placeholders, for use inside a regular expression's brackets."""


class Vocabulary(Protocol):
    """What the token model can read."""

    def has(self, text: str) -> bool:
        """Say whether the tokenizer knows every piece of `text`."""
        ...


@dataclass(frozen=True, slots=True)
class Token:
    """What a placeholder stands for."""

    text: str = ""
    """What the model reads there: a control token, or the homophone of a forced reading."""
    pause_ms: int | None = None
    """Milliseconds of silence there; None: no pause."""


@dataclass(slots=True)
class Context:
    """One text on its way through the stages."""

    vocabulary: Vocabulary
    switches: Switches
    lexicon: Mapping[str, str]
    """Word as written: how to write it so that it is read right."""
    tokens: list[Token] = field(default_factory=list)

    def placeholder(self, token: Token) -> str:
        """Return the character that stands for `token` from now on."""
        self.tokens.append(token)
        return chr(_FIRST_PLACEHOLDER + len(self.tokens) - 1)

    def token(self, character: str) -> Token | None:
        """Return what a character stands for; None: itself."""
        index = ord(character) - _FIRST_PLACEHOLDER
        return self.tokens[index] if 0 <= index < len(self.tokens) else None


Stage = Callable[[str, Context], Iterable[Edit]]
"""A stage looks at the text as the stages before have left it, and says what to change in it."""
