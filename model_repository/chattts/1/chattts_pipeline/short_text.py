"""Texts of a few letters: the token model may end such a speech before it has said anything."""

import re

from chattts_text.tokens import without_tokens

MAX_LETTERS = 3
"""A text with more letters or Han characters is not short."""

STEPS_PER_SYLLABLE = 5
"""About 0.1 s: half of what a fast speaker takes."""

_WORD = re.compile(r"[a-z]+")
_VOWELS = re.compile(r"[aeiouy]+")


def min_steps(text: str) -> int:
    """Return how many steps the speech of a text must have before its end may come.

    Args:
        text: A segment, control tokens included.

    Returns:
        STEPS_PER_SYLLABLE per syllable (a Han character, or a group of vowels in a word), 0 if the
        text is not short.
    """
    spoken = without_tokens(text, " ").lower()
    letters = [character for character in spoken if character.isalpha()]
    if not 1 <= len(letters) <= MAX_LETTERS:
        return 0
    num_han = sum(not letter.isascii() for letter in letters)
    num_latin = sum(max(1, len(_VOWELS.findall(word))) for word in _WORD.findall(spoken))
    return STEPS_PER_SYLLABLE * (num_han + num_latin)
