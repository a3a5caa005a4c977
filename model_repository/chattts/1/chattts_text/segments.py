"""Cut the spoken text into segments that the model says well, each in one go."""

from dataclasses import dataclass
from typing import Any

from .aligned import AlignedText
from .context import Context


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """How long segments may be."""

    max_characters: int
    """Hard limit, in characters of the spoken text."""
    seconds: float
    """Sentences are joined up to about this much estimated audio; 0: each is its own segment."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of the text, said in one go."""

    text: str
    """What the model reads, control tokens included."""
    start: int
    """Where it begins in the caller's text, in characters."""
    end: int
    estimated_s: float
    """Seconds of speech, roughly."""
    pause_ms: int = 0
    """Milliseconds of silence after it."""

    def as_json(self) -> dict[str, Any]:
        """Return it for a dry run."""
        return {
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "estimated_s": self.estimated_s,
            "pause_ms": self.pause_ms,
        }


def cut(aligned: AlignedText, context: Context, limits: SegmentLimits | None) -> list[Segment]:
    """Cut a spoken text; None as limits: only at pauses."""
    text = "".join(
        token.text if (token := context.token(character)) else character
        for character in aligned.text
    )
    return [Segment(text, 0, len(aligned.original), 0.0)] if text.strip() else []
