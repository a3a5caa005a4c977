"""The switches of the front end, one set per request, and their check."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Language = Literal["auto", "zh", "en"]
InputFormat = Literal["plain", "markdown", "auto"]
OnUnsupported = Literal["error", "skip", "spell"]
Links = Literal["host", "full", "omit"]

MAX_LEXICON_ENTRIES = 200
MAX_LEXICON_CHARACTERS = 64
_SHOWN_CHARACTERS = 60

STAGES = (
    "clean",
    "lexicon",
    "normalize",
    "script",
    "polyphones",
    "readability",
    "pauses",
)
"""Stages that a request can switch; markup and what keeps the prompt safe always run."""

_ON = {stage: stage not in ("polyphones", "pauses") for stage in STAGES}


@dataclass(frozen=True, slots=True)
class Switches:
    """How the text of one request is read. Names and ranges are those of the `options` input."""

    language: Language = "auto"
    """Language of what does not show it itself, such as numbers."""
    normalize: bool = True
    """False: nothing is rewritten; control tokens are honoured and unreadable characters listed."""
    input_format: InputFormat = "plain"
    """auto: markdown where the text looks like it."""
    on_unsupported: OnUnsupported = "skip"
    """What happens to letters of scripts that the model does not read: error refuses the request,
    skip leaves them out with a warning, spell says them in Latin letters with a warning."""
    links: Links = "host"
    """How much of a web address is read."""
    footnotes: bool = True
    """Read reference marks such as [12]; False: leave them out."""
    telephone_one: Literal["幺", "一"] = "幺"
    """How 1 is read in telephone numbers and codes in Mandarin."""
    stages: Mapping[str, bool] = field(default_factory=dict)
    """Stage name: whether it runs; what is not named keeps its default."""
    lexicon: Mapping[str, str] = field(default_factory=dict)
    """Word as written: how to write it so that it is read right."""

    def runs(self, stage: str) -> bool:
        """Say whether a stage runs."""
        return self.normalize and self.stages.get(stage, _ON[stage])

    @classmethod
    def from_options(cls, options: Mapping[str, Any], language: Language = "auto") -> "Switches":
        """Take the front end's keys out of a request's options.

        Raises:
            ValueError: A value is not allowed. The message names the key and what is.
        """
        known = {key: options[key] for key in OPTION_NAMES if key in options}
        for key, value in known.items():
            _CHECKS[key](key, value)
        return cls(language=language, **known)


def _one_of(*allowed: object) -> Callable[[str, object], None]:
    def check(key: str, value: object) -> None:
        if not any(value is one or (isinstance(one, str) and value == one) for one in allowed):
            names = ", ".join(
                str(one).lower() if isinstance(one, bool) else str(one) for one in allowed
            )
            raise ValueError(f"options: {key} is {shown(value)}; allowed: {names}")

    return check


def _stages(key: str, value: object) -> None:
    allowed = f"an object with true or false for {', '.join(STAGES)}"
    if not isinstance(value, dict):
        raise ValueError(f"options: {key} is {shown(value)}; allowed: {allowed}")
    for stage, is_on in value.items():
        if stage not in STAGES or not isinstance(is_on, bool):
            raise ValueError(f"options: {key}: {shown({stage: is_on})}; allowed: {allowed}")


def check_lexicon(key: str, value: object, max_entries: int = MAX_LEXICON_ENTRIES) -> None:
    """Check a lexicon: word as written to how it is to be read.

    Raises:
        ValueError: Not an object of short, non-empty texts, or too many of them.
    """
    allowed = (
        f"an object of at most {max_entries} texts, 1 ... {MAX_LEXICON_CHARACTERS} characters each"
    )
    if not isinstance(value, dict) or len(value) > max_entries:
        raise ValueError(f"options: {key}: allowed: {allowed}")
    for word, reading in value.items():
        for text in (word, reading):
            is_text = isinstance(text, str) and text.strip()
            if not is_text or len(text) > MAX_LEXICON_CHARACTERS:
                raise ValueError(f"options: {key}: {shown(text)}; allowed: {allowed}")


_CHECKS: dict[str, Callable[[str, object], None]] = {
    "normalize": _one_of(True, False),
    "input_format": _one_of("plain", "markdown", "auto"),
    "on_unsupported": _one_of("error", "skip", "spell"),
    "links": _one_of("host", "full", "omit"),
    "footnotes": _one_of(True, False),
    "telephone_one": _one_of("幺", "一"),
    "stages": _stages,
    "lexicon": check_lexicon,
}

OPTION_NAMES = tuple(_CHECKS)
"""The front end's keys in a request's options."""

assert {*OPTION_NAMES, "language"} == {one.name for one in fields(Switches)}


def shown(value: object) -> str:
    """Return a value as an error message shows it, cut short."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
