"""The control tokens of ChatTTS that a user may write, and those that only we may."""

import re

from chattts_text.tokens import TEXT_TOKENS as TEXT_TOKENS

BASE_TOKENS = ("[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]")
"""Tokens of the base vocabulary that the model reads as structure, not as text."""

STYLE_TOKENS = "[speed_0] ... [speed_9], [oral_0] ... [oral_9], [laugh_0] ... [laugh_2], " + (
    "[break_0] ... [break_7]"
)
"""Allowed in `style`, in words."""

_STYLE = re.compile(r"(?:\[(?:speed_[0-9]|oral_[0-9]|laugh_[0-2]|break_[0-7])\])*")
_REFINE_TOKEN = re.compile(r"\[(?:oral|laugh|break)_[0-9]\]")


def is_style(style: str) -> bool:
    """Say whether `style` consists of style tokens and nothing else."""
    return _STYLE.fullmatch(style) is not None


def split_style(style: str) -> tuple[str, str]:
    """Split a style into the tokens of mode code (speed) and those of the refine pass."""
    return _REFINE_TOKEN.sub("", style), "".join(_REFINE_TOKEN.findall(style))
