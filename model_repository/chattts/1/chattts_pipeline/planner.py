"""What a request comes down to: who speaks, what is said, and what its caller should know."""

import json
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from chattts_text import FrontEnd, PreparedText, SegmentLimits
from chattts_text.switches import check_lexicon
from chattts_voices import Voice, VoiceRegistry

from .request import SpeechRequest
from .segment import SpeechPlan
from .settings import Checkpoint, Settings
from .vocabulary import Vocabulary, outside_vocabulary_warning

DRAWN_SEED_BITS = 53
"""A drawn seed survives JSON readers that hold numbers as float64."""

MAX_LEXICON_ENTRIES = 20_000
"""Of the operator's lexicon."""

LONGEST_LEARNT_SENTENCE_S = 8.0
"""Longest speech in one go of a voice that learnt single sentences, in seconds."""

NO_WORDS = "text: nothing in it can be spoken; allowed: at least one word or number"
_NO_WORDS_WARNING = {"code": "no_speakable_text", "message": "nothing in the text can be spoken"}


class Planner:
    """Plans requests for one checkpoint.

    Args:
        settings: The operator's limits.
        checkpoint: Facts of the weights.
        voices: Who can speak.
        vocabulary: What the token model can read.
        lexicon: How to write words so that they are read right; see `read_lexicon`.
    """

    def __init__(
        self,
        settings: Settings,
        checkpoint: Checkpoint,
        voices: VoiceRegistry,
        vocabulary: Vocabulary,
        lexicon: Mapping[str, str],
    ) -> None:
        self._front_end = FrontEnd(vocabulary, lexicon, _limits(settings, checkpoint))
        self._voices = voices
        self._vocabulary = vocabulary

    def plan(
        self, request: SpeechRequest, request_id: str, voice: Voice | None = None
    ) -> SpeechPlan:
        """Plan one request.

        A text without anything to speak is an error for a request of one response. A stream, which
        may be one of many that speak what somebody else writes, gets no audio and a warning.

        Args:
            request: What its caller wants.
            request_id: Its name.
            voice: Who speaks; None: whom the request names.

        Raises:
            ValueError: The voice is unknown, or the text cannot be spoken as asked.
        """
        voice = voice or self._voices.find(request.voice)
        prepared = self.prepare(request)
        if not (prepared.segments or request.stream):
            raise ValueError(NO_WORDS)
        return SpeechPlan(
            request=request,
            segments=prepared.segments,
            voice=voice,
            seed=secrets.randbits(DRAWN_SEED_BITS) if request.seed is None else request.seed,
            request_id=request_id,
            speech_id=uuid.uuid4().hex,
            warnings=tuple(self._warnings(prepared)),
        )

    def prepare(self, request: SpeechRequest) -> PreparedText:
        """Work out what a request says.

        Raises:
            ValueError: The text cannot be spoken as asked.
        """
        return self._front_end.prepare(request.text, request.switches, request.options.split)

    def dry_run(self, request: SpeechRequest) -> dict[str, Any]:
        """Return what a request would say, as JSON.

        Raises:
            ValueError: The text cannot be spoken as asked.
        """
        prepared = self.prepare(request)
        return prepared.as_json() | {"warnings": self._warnings(prepared)}

    def _warnings(self, prepared: PreparedText) -> list[dict[str, Any]]:
        no_words = [] if prepared.segments else [_NO_WORDS_WARNING]
        return [*prepared.warnings, *no_words, *self._unknown_words(prepared)]

    def _unknown_words(self, prepared: PreparedText) -> list[dict[str, Any]]:
        words = self._vocabulary.unknown_words(prepared.spoken)
        return [outside_vocabulary_warning(words)] if words else []


def _limits(settings: Settings, checkpoint: Checkpoint) -> SegmentLimits:
    wanted_s, learnt_s = settings.segment_seconds, checkpoint.segment_seconds
    limits = SegmentLimits(
        settings.max_segment_characters, joined_s=learnt_s if wanted_s is None else wanted_s
    )
    return limits if learnt_s else replace(limits, longest_s=LONGEST_LEARNT_SENTENCE_S)


def read_lexicon(path: Path) -> dict[str, str]:
    """Read the operator's lexicon, a JSON object of word to how it is to be read.

    Args:
        path: The file; none: an empty lexicon.

    Raises:
        ValueError: It is no such object.
    """
    if not path.exists():
        return {}
    try:
        lexicon: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
        check_lexicon("lexicon", lexicon, MAX_LEXICON_ENTRIES)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return lexicon
