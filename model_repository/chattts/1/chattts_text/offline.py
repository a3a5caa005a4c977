"""The front end without a server: for tools and tests on any machine."""

from collections.abc import Mapping
from typing import Any

from .front_end import FrontEnd, PreparedText
from .segments import SegmentLimits
from .switches import OPTION_NAMES, Language, Switches

LIMITS = SegmentLimits(max_characters=400, joined_s=20.0)
"""Those of chattts/config.pbtxt and of a checkpoint that speaks more than single sentences."""


class Everything:
    """A vocabulary that lacks nothing: no voice limits what can be said."""

    def has(self, text: str) -> bool:
        """See Vocabulary."""
        return True


def prepare(
    text: str, options: Mapping[str, Any] | None = None, language: Language = "auto"
) -> PreparedText:
    """Work out what a server would say for a text, whatever its voice can read.

    Args:
        text: What would be sent.
        options: The front end's keys of a request's options, and `split`.
        language: Language of what does not show it itself.

    Raises:
        ValueError: An option that the front end does not have, or one that is not allowed; markup
            that is not allowed; letters of another script if they are to be an error.
    """
    options = options or {}
    unknown = [key for key in options if key not in (*OPTION_NAMES, "split")]
    if unknown:
        allowed = ", ".join((*OPTION_NAMES, "split"))
        raise ValueError(f"options: {unknown[0]} is none of the text front end; allowed: {allowed}")
    front_end = FrontEnd(Everything(), {}, LIMITS)
    switches = Switches.from_options(options, language)
    return front_end.prepare(text, switches, is_split=bool(options.get("split", True)))
