"""The `options` input: rarely used switches, beside those of the text front end."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from chattts_text import OPTION_NAMES
from chattts_text.switches import shown

_RANGES = {"speed": (0.5, 2.0)}


@dataclass(frozen=True, slots=True)
class Options:
    """The rarely used switches of the `options` input."""

    list_voices: bool = False
    """Answer with the voices instead of speech."""
    dry_run: bool = False
    """Answer with what would be said, instead of speech."""
    health: bool = False
    """Answer whether the models behind answer, instead of speech."""
    split: bool = True
    """Cut the text into sentences."""
    speed: float = 1.0
    """How fast the speech is played, at the same pitch, 0.5 ... 2."""
    trim: bool = False
    """Cut the breath and noise after the last word of a segment."""
    level: bool = False
    """Bring all segments to one loudness."""
    carry_over: bool = False
    """The first segment is the audio prompt of the later ones."""
    retry_quality: bool = False
    """Speak once more, with a derived seed, where a fault is found; for one response only."""

    @property
    def asks_for_speech(self) -> bool:
        """Whether the answer is speech."""
        return not (self.list_voices or self.dry_run or self.health)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Options":
        """Take over what is not the text front end's.

        Raises:
            ValueError: An unknown key, or a value that is not allowed.
        """
        names = tuple(one.name for one in fields(cls))
        for key in values:
            if key not in names and key not in OPTION_NAMES:
                allowed = ", ".join((*names, *OPTION_NAMES))
                raise ValueError(f"options: unknown key {shown(key)}; allowed: {allowed}")
        return cls(**{key: _checked(key, values[key]) for key in names if key in values})


def _checked(key: str, value: object) -> Any:
    if key not in _RANGES:
        if isinstance(value, bool):
            return value
        raise ValueError(f"options: {key} is {shown(value)}; allowed: true, false")
    low, high = _RANGES[key]
    if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
        return float(value)
    raise ValueError(f"options: {key} is {shown(value)}; allowed: {low} ... {high}")
