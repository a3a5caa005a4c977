"""Cut the spoken text into segments that the model says well, each in one go.

Where to cut is boundaries.py's business; here pieces become segments. Invariant: all segments
joined are the spoken text, unless there is nothing to say; then there is no segment.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .aligned import AlignedText
from .boundaries import limited, sentences
from .context import MAX_PAUSE_MS, Context
from .language import HAN
from .tokens import is_speakable

_HAN_S = 0.22
_ENGLISH_SYLLABLE_S = 0.19
"""Read Mandarin has 5.2 and English 6.2 syllables a second (Pellegrino, Coupé, Marsico 2011, table
1); a voice that reads with care takes about 15 % longer."""
_CLAUSE_S = 0.2
_SENTENCE_S = 0.4

_HAN_CHARACTER = re.compile(rf"[{HAN}]")
_SYLLABLE = re.compile(r"[aeiouy]+|(?<![a-z])[^\W\d_aeiouy]+(?![a-z])", re.IGNORECASE | re.ASCII)
_CLAUSE_MARK = re.compile(r"[，、：,:;；]")
_SENTENCE_MARK = re.compile(r"[。！？.!?…]")


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """How long segments may be."""

    max_characters: int
    """Hard limit, in characters of the spoken text; a control token counts as one."""
    joined_s: float
    """Sentences are joined up to about this much estimated speech; 0: each is its own segment."""
    longest_s: float = 30.0
    """A sentence of more estimated speech is cut: 2048 steps of the token model are 44 s."""


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


@dataclass(slots=True)
class _Piece:
    """A stretch of the spoken text."""

    start: int
    end: int
    pause_ms: int = 0
    """Silence after it."""


def cut(aligned: AlignedText, context: Context, limits: SegmentLimits | None) -> list[Segment]:
    """Cut a spoken text.

    A segment ends at a pause, and else where a sentence ends; short sentences are joined, but the
    first one stands alone, so that the first audio comes soon. What cannot be spoken alone joins
    its neighbour.

    Args:
        aligned: The text as the last stage left it; a pause before the first word counts for
            nothing.
        context: Its placeholders.
        limits: How long segments may be; None: cut only at pauses.

    Raises:
        ValueError: Pauses in one place add up to more than MAX_PAUSE_MS.
    """
    text = context.with_readings(aligned.text)
    if not is_speakable(text):
        return []
    pieces = _pieces(text, context, limits)
    joined = _joined(text, pieces, limits or SegmentLimits(len(text) + 1, 0.0))
    longest_ms = max(piece.pause_ms for piece in joined)
    if longest_ms > MAX_PAUSE_MS:
        allowed = f"0 ... {MAX_PAUSE_MS} ms in one place"
        raise ValueError(f"text: pauses of {longest_ms} ms follow one another; allowed: {allowed}")
    return [_segment(piece, text, aligned, context) for piece in joined]


def estimated_s(text: str) -> float:
    """Return about how many seconds a text takes to say."""
    return round(
        _HAN_S * _count(_HAN_CHARACTER, text)
        + _ENGLISH_SYLLABLE_S * _count(_SYLLABLE, text)
        + _CLAUSE_S * _count(_CLAUSE_MARK, text)
        + _SENTENCE_S * _count(_SENTENCE_MARK, text),
        2,
    )


def _pieces(text: str, context: Context, limits: SegmentLimits | None) -> list[_Piece]:
    """Return sentences, none of them too long, that together cover the text."""
    pieces: list[_Piece] = []
    start = 0
    for position, pause_ms in [*context.pauses(text), (len(text), 0)]:
        pieces += _sentences(text, start, position, limits)
        if pieces:
            pieces[-1].end = min(position + 1, len(text))
            pieces[-1].pause_ms += pause_ms
        start = position + 1
    return pieces


def _sentences(text: str, start: int, end: int, limits: SegmentLimits | None) -> Iterator[_Piece]:
    if limits is None:
        if start < end:
            yield _Piece(start, end)
        return
    for sentence in sentences(text, start, end):
        for part in _limited(text, *sentence, limits):
            yield _Piece(*part)


def _limited(text: str, start: int, end: int, limits: SegmentLimits) -> Iterator[tuple[int, int]]:
    """Cut a sentence into parts that are short enough, in characters and in seconds."""
    most, length_s = limits.max_characters, estimated_s(text[start:end])
    if length_s > limits.longest_s:
        most = min(most, max(1, int((end - start) * limits.longest_s / length_s)))
    if end - start <= most:
        yield start, end
        return
    for part in limited(text, start, end, most):
        yield from _limited(text, *part, limits)


def _joined(text: str, pieces: list[_Piece], limits: SegmentLimits) -> list[_Piece]:
    joined: list[_Piece] = []
    seconds = 0.0
    for piece in pieces:
        words = text[piece.start : piece.end]
        piece_s = estimated_s(words)
        last = joined[-1] if joined else None
        if last and piece.end - last.start <= limits.max_characters:
            is_beside = len(joined) > 1 and not last.pause_ms
            fits = is_beside and seconds + piece_s <= limits.joined_s
            if fits or not (is_speakable(words) and is_speakable(text[last.start : last.end])):
                last.end = piece.end
                last.pause_ms += piece.pause_ms
                seconds += piece_s
                continue
        joined.append(piece)
        seconds = piece_s
    return joined


def _segment(piece: _Piece, text: str, aligned: AlignedText, context: Context) -> Segment:
    start, end = aligned.source(piece.start, piece.end)
    words = text[piece.start : piece.end]
    spoken = context.expanded(aligned.text[piece.start : piece.end])
    return Segment(spoken, start, end, estimated_s(words), piece.pause_ms)


def _count(pattern: re.Pattern[str], text: str) -> int:
    return len(pattern.findall(text))
