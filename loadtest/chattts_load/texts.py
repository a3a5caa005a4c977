"""What the load says: texts by language and length, drawn by weight and seed."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LENGTHS = ("short", "medium", "long")
LANGUAGES = ("en", "zh")
DEFAULT_LENGTHS = "short=3,medium=5,long=2"
DEFAULT_LANGUAGES = "en=7,zh=3"
_FILE = Path(__file__).resolve().parents[1] / "data" / "texts.json"


@dataclass(frozen=True, slots=True)
class Text:
    """One text to speak."""

    text: str
    language: str
    """en or zh: also the voice of the small checkpoint."""
    length: str
    """short (up to 2 s of speech), medium (up to 6 s) or long (several segments)."""


def load_texts(path: Path = _FILE) -> tuple[Text, ...]:
    """Read all texts of a file: language, then length, then a list."""
    languages = json.loads(path.read_text(encoding="utf-8"))
    return tuple(
        Text(text, language, length)
        for language, lengths in languages.items()
        for length, texts in lengths.items()
        for text in texts
    )


class TextMix:
    """Draws texts: first the language and the length by weight, then one of its texts."""

    def __init__(
        self,
        texts: Sequence[Text],
        lengths: Mapping[str, float],
        languages: Mapping[str, float],
        seed: int,
    ) -> None:
        """Prepare draws; the same seed gives the same texts and seeds of speech.

        Raises:
            ValueError: no text has a weight above 0.
        """
        self._texts = tuple(texts)
        sizes: dict[tuple[str, str], int] = {}
        for one in texts:
            group = (one.language, one.length)
            sizes[group] = sizes.get(group, 0) + 1
        self._weights = [
            lengths.get(one.length, 0.0)
            * languages.get(one.language, 0.0)
            / sizes[one.language, one.length]
            for one in texts
        ]
        if not sum(self._weights):
            raise ValueError("no text has one of the lengths in one of the languages")
        self._random = random.Random(seed)

    def draw(self) -> tuple[Text, int]:
        """The next text and the seed to speak it with."""
        (text,) = self._random.choices(self._texts, self._weights)
        return text, self._random.randrange(2**32)


def read_weights(text: str, names: Sequence[str]) -> dict[str, float]:
    """Read NAME=WEIGHT,…; a name left out has no weight.

    Raises:
        argparse.ArgumentTypeError: another name, a negative weight, or no weight above 0.
    """
    weights = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        if name not in names:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(names)}")
        try:
            weights[name] = float(number or 1)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{part!r} is not NAME=WEIGHT") from None
    if min(weights.values()) < 0 or not sum(weights.values()):
        raise argparse.ArgumentTypeError(f"{text!r}: weights are 0 or more, one of them above 0")
    return weights
