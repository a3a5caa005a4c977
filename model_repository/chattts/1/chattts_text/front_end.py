"""The front end: from what is written to what is said, and nothing lost on the way.

Each stage is a module with one function `stage`; it sees the text of the stages before it and
returns edits. The order below is the order of work.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import (
    clean,
    lexicon,
    markdown,
    markup,
    normalize,
    pauses,
    polyphones,
    readability,
    script,
    spacing,
)
from .aligned import AlignedText, Edit
from .context import Context, RememberedVocabulary, Stage, Vocabulary
from .notes import as_warnings
from .segments import Segment, SegmentLimits, cut
from .switches import STAGES, Switches

_STAGES: tuple[tuple[str, Stage], ...] = (
    ("markup", markup.stage),
    ("markdown", markdown.stage),
    ("clean", clean.stage),
    ("lexicon", lexicon.stage),
    ("script", script.stage),  # before the rules, which know measure words as 个, not as 個
    ("normalize", normalize.stage),
    # Again, while the marks are still as written: "2Dr." is "two Dr." now, "3A–C" is "three A–C".
    ("normalize", normalize.stage),
    ("polyphones", polyphones.stage),
    ("readability", readability.stage),
    ("pauses", pauses.stage),
    ("spacing", spacing.stage),
)
_SAFETY = frozenset({"markup", "readability", "spacing"})
"""Run without normalization too."""
_REPEATED = frozenset({"clean", "normalize", "script", "readability", "spacing"})
_MAX_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class PreparedText:
    """What will be said."""

    segments: tuple[Segment, ...]
    """In order; empty if there is nothing to say."""
    aligned: AlignedText
    """The spoken text, aligned with the caller's."""
    warnings: tuple[dict[str, Any], ...]
    """Code, message and place of each change that loses or guesses something."""

    @property
    def spoken(self) -> str:
        """All segments joined: what the model reads, control tokens included."""
        return "".join(segment.text for segment in self.segments)

    def as_json(self) -> dict[str, Any]:
        """Return everything for a dry run; offsets count characters."""
        return {
            "segments": [segment.as_json() for segment in self.segments],
            "warnings": list(self.warnings),
            "alignment": [
                {
                    "start": span.start,
                    "end": span.end,
                    "text": self.aligned.original[span.start : span.end],
                    "spoken": self.aligned.text[span.spoken_start : span.spoken_end],
                }
                for span in self.aligned.alignment()
            ],
            "estimated_s": round(sum(one.estimated_s for one in self.segments), 2),
        }


class FrontEnd:
    """Prepares texts for one voice model.

    Args:
        vocabulary: What the token model can read.
        lexicon: Word as written to how it is written so that it is read right; a request's own
            lexicon comes first.
        limits: How long segments may be.
    """

    def __init__(
        self, vocabulary: Vocabulary, lexicon: Mapping[str, str], limits: SegmentLimits
    ) -> None:
        self._vocabulary = RememberedVocabulary(vocabulary)
        self._lexicon = lexicon
        self._limits = limits

    def prepare(self, text: str, switches: Switches, is_split: bool = True) -> PreparedText:
        """Work out what is to be said.

        Args:
            text: The caller's text.
            switches: How to read it.
            is_split: Cut it into segments; False: one segment whatever its length, cut only at
                pauses of a given length.

        Raises:
            ValueError: Markup that is not allowed or not well-formed, or, with
                `on_unsupported="error"`, a script that the model does not read.
        """
        context = Context(self._vocabulary, switches, {**self._lexicon, **switches.lexicon})
        aligned = AlignedText.of(text)
        for name, stage in _STAGES:
            if _runs(name, switches):
                aligned = aligned.edited(_edits(stage, aligned, context))
        if switches.normalize:
            aligned = _settled(aligned, context)
        segments = cut(aligned, context, self._limits if is_split else None)
        aligned = aligned.edited(context.expansions(aligned.text))
        return PreparedText(tuple(segments), aligned, tuple(as_warnings(aligned.notes, text)))


def _settled(aligned: AlignedText, context: Context) -> AlignedText:
    """Repeat stages until they find nothing to do: what one has left may show another a word.

    So the spoken text, written again, is spoken the same.
    """
    for _ in range(_MAX_ROUNDS):
        before = aligned.text
        for name, stage in _STAGES:
            if name in _REPEATED and _runs(name, context.switches):
                aligned = aligned.edited(_edits(stage, aligned, context))
        if aligned.text == before:
            break
    return aligned


def _runs(stage: str, switches: Switches) -> bool:
    if not switches.normalize:
        return stage in _SAFETY
    return stage not in STAGES or switches.runs(stage)


def _edits(stage: Stage, aligned: AlignedText, context: Context) -> list[Edit]:
    try:
        return list(stage(aligned.text, context))
    except readability.UnsupportedScriptError as error:
        start, _ = aligned.source(error.position, error.position + 1)
        raise readability.UnsupportedScriptError(error.script, error.letters, start) from None
