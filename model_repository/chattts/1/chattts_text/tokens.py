"""The control tokens of ChatTTS that a text may hold, and what is left to speak beside them."""

import re

TEXT_TOKENS = ("[uv_break]", "[v_break]", "[lbreak]", "[llbreak]", "[laugh]")
"""Allowed inside a text; written anything else in brackets is ordinary text."""

_SPEAKABLE = re.compile(r"[^\W_]")


def without_tokens(text: str, replacement: str = "") -> str:
    """Replace every text token."""
    for token in TEXT_TOKENS:
        text = text.replace(token, replacement)
    return text


def is_speakable(text: str) -> bool:
    """Say whether a letter or digit remains beside the text tokens."""
    return _SPEAKABLE.search(without_tokens(text, " ")) is not None
