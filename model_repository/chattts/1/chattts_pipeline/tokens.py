"""The control tokens of ChatTTS that a user may write, and what is left to speak beside them."""

import re

TEXT_TOKENS = ("[uv_break]", "[v_break]", "[lbreak]", "[llbreak]", "[laugh]")
"""Allowed inside the text."""

BASE_TOKENS = ("[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]")
"""Tokens of the base vocabulary that the model reads as structure, not as text."""

STYLE_TOKENS = "[speed_0] ... [speed_9], [oral_0] ... [oral_9], [laugh_0] ... [laugh_2], " + (
    "[break_0] ... [break_7]"
)
"""Allowed in `style`, in words."""

HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Han characters, for use inside a regular expression's brackets."""

_STYLE = re.compile(r"(?:\[(?:speed_[0-9]|oral_[0-9]|laugh_[0-2]|break_[0-7])\])*")
_REFINE_TOKEN = re.compile(r"\[(?:oral|laugh|break)_[0-9]\]")
_SPEAKABLE = re.compile(r"[^\W_]")


def is_style(style: str) -> bool:
    """Say whether `style` consists of style tokens and nothing else."""
    return _STYLE.fullmatch(style) is not None


def split_style(style: str) -> tuple[str, str]:
    """Split a style into the tokens of mode code (speed) and those of the refine pass."""
    return _REFINE_TOKEN.sub("", style), "".join(_REFINE_TOKEN.findall(style))


def without_tokens(text: str, replacement: str = "") -> str:
    """Replace every text token."""
    for token in TEXT_TOKENS:
        text = text.replace(token, replacement)
    return text


def is_speakable(text: str) -> bool:
    """Say whether a letter or digit remains beside the text tokens."""
    return _SPEAKABLE.search(without_tokens(text, " ")) is not None
