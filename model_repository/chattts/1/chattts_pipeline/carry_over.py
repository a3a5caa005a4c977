"""What later segments continue from: an audio prompt and what it says."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_STEPS = 512
"""Longest part of a segment that is carried over (10.9 s): a voice and its pace need no more, and
each later segment computes the prompt again and has that much less room."""

_UNIT = re.compile(r"\[\w+\]|[^\W\d_一-鿿]+(?:['’][^\W\d_一-鿿]+)*|.", re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class AudioPrompt:
    """Speech that a segment continues from."""

    codes: NDArray[np.int32] | None = None
    """(T, 4); None: none."""
    transcript: str = ""
    """What it says."""


def carried_over(chunks: Sequence[NDArray[np.int32]], text: str) -> AudioPrompt:
    """Make an audio prompt of a segment that was spoken.

    Of a long one, the last steps are used, and as large a share of the text, from the beginning of
    a word or control token: speech is even enough for that.

    Args:
        chunks: Its codes, (T, 4) each.
        text: Its text, as the token model read it.
    """
    codes = np.concatenate(chunks)
    start = round(len(text) * max(0, len(codes) - MAX_STEPS) / len(codes))
    units = (unit.start() for unit in _UNIT.finditer(text))
    first = next((position for position in units if position >= start), len(text))
    return AudioPrompt(codes[-MAX_STEPS:], text[first:])
