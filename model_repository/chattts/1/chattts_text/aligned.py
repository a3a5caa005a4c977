"""A text that changes from stage to stage and always knows where each character came from."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Edit(NamedTuple):
    """Replace `text[start:end]` of the text that a stage was given."""

    start: int
    end: int
    text: str
    note: str = ""
    """Code of the warning that the caller gets (see notes.py); empty: the change needs none."""


class Note(NamedTuple):
    """A change that the caller should know of."""

    code: str
    start: int
    """Offset in the caller's text, in characters."""
    end: int
    spoken: str
    """What is said instead; empty: nothing."""


class Span(NamedTuple):
    """One step of the alignment: `original[start:end]` is spoken as `spoken[spoken_start:...]`."""

    start: int
    end: int
    spoken_start: int
    spoken_end: int


@dataclass(frozen=True, slots=True)
class AlignedText:
    """A text, and for each of its characters the span of the caller's text that it stands for.

    Spans never go back: a later character begins and ends no earlier than the one before.
    """

    text: str
    original: str
    sources: tuple[tuple[int, int], ...]
    """Start and end in `original` for each character of `text`."""
    notes: tuple[Note, ...] = ()

    @classmethod
    def of(cls, text: str) -> "AlignedText":
        """Begin with the caller's own text."""
        return cls(text, text, tuple((i, i + 1) for i in range(len(text))))

    def edited(self, edits: Iterable[Edit]) -> "AlignedText":
        """Apply the edits of one stage, all of them to this text.

        A replacement as long as what it replaces is taken character by character; any other one
        stands as a whole for all that it replaces.

        Args:
            edits: In any order; none may overlap another.

        Raises:
            ValueError: Two edits overlap, or one is outside the text.
        """
        ordered = sorted(edits)
        if not ordered:
            return self
        texts: list[str] = []
        sources: list[tuple[int, int]] = []
        notes = list(self.notes)
        done = 0
        for edit in ordered:
            if not done <= edit.start <= edit.end <= len(self.text):
                raise ValueError(f"{edit} overlaps another edit or is outside the text")
            texts += self.text[done : edit.start], edit.text
            sources += self.sources[done : edit.start]
            source = self.source(edit.start, edit.end)
            if len(edit.text) == edit.end - edit.start:
                sources += self.sources[edit.start : edit.end]
            else:
                sources += [source] * len(edit.text)
            if edit.note:
                notes.append(Note(edit.note, *source, edit.text.strip()))
            done = edit.end
        texts.append(self.text[done:])
        sources += self.sources[done:]
        return AlignedText("".join(texts), self.original, tuple(sources), tuple(notes))

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the caller's text that `text[start:end]` stands for."""
        if start < end:
            return self.sources[start][0], self.sources[end - 1][1]
        position = self.sources[start][0] if start < len(self.text) else len(self.original)
        before = self.sources[start - 1][1] if start else 0
        return min(before, position), min(before, position)

    def alignment(self) -> list[Span]:
        """Return spans in order that cover the whole original and the whole text.

        Runs of characters that stand for themselves are one span; what is not spoken has an empty
        spoken span.
        """
        spans: list[Span] = []
        i, reached = 0, 0
        while i < len(self.text):
            start, end = self.sources[i]
            j = i + 1
            while j < len(self.text) and self.sources[j] == (start, end):
                j += 1
            if start > reached:
                spans.append(Span(reached, start, i, i))
            spans.append(Span(max(start, reached), max(end, reached), i, j))
            reached, i = max(end, reached), j
        if reached < len(self.original):
            spans.append(Span(reached, len(self.original), len(self.text), len(self.text)))
        return _joined(spans, self)


def _joined(spans: list[Span], aligned: AlignedText) -> list[Span]:
    """Join neighbours that stand for themselves."""
    joined: list[Span] = []
    for span in spans:
        if joined and _is_itself(joined[-1], aligned) and _is_itself(span, aligned):
            joined[-1] = Span(joined[-1].start, span.end, joined[-1].spoken_start, span.spoken_end)
        else:
            joined.append(span)
    return joined


def _is_itself(span: Span, aligned: AlignedText) -> bool:
    start, end, spoken_start, spoken_end = span
    return aligned.original[start:end] == aligned.text[spoken_start:spoken_end]
