"""What goes into a request and what comes back: plain immutable values, no network.

Audio is always mono float32 in -1 ... 1. S is the number of samples.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, Final, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from ._audio import play_audio, save_audio, wav_bytes

Samples = NDArray[np.float32]


class Unset(enum.Enum):
    """Says "not given" where None already means "no limit"."""

    TOKEN = enum.auto()


UNSET: Final = Unset.TOKEN


class SpeechOptions(TypedDict, total=False):
    """Keyword arguments of `synthesize` and `stream`; a key left out takes the server's default.

    The server checks the ranges and answers with `InvalidRequestError`.
    """

    voice: str
    """A name or an alias from `voices`, a speaker string, or empty for the default voice."""
    language: Literal["auto", "zh", "en"]
    """Which language's rules read the text. Default: auto."""
    style: str
    """Control tokens before the text, such as `[speed_5][oral_2]`. Default: `[speed_5]`."""
    refine: bool
    """Let the model rewrite the text with its own pauses first. Default: false."""
    temperature: float
    """Softmax temperature, 0.00001 ... 2. Default: 0.3."""
    top_p: float
    """Nucleus mass, above 0 and at most 1. Default: 0.7."""
    top_k: int
    """Candidates kept, 1 ... 626. Default: 20."""
    repetition_penalty: float
    """Penalty over the last 16 codes of a codebook, 0.5 ... 2. Default: 1.05."""
    min_new_tokens: int
    """Steps before end of speech is allowed, per segment (46.875 are one second). Default: 0."""
    max_new_tokens: int
    """Most steps per segment, 1 ... 2048. Default: 2048."""
    seed: int
    """Same request and seed, same samples, 0 ... 2**64 - 1. Default: drawn, and returned."""
    latency: Literal["exact", "low"]
    """exact: streamed samples equal the one-shot samples. low: the first ones of a stream come
    sooner, nearly the same and not the same bits each time. Default: exact."""
    priority: int
    """1 (first) ... 3 (last). Default: 2."""
    deadline_ms: int
    """Milliseconds until the *server* ends the request with finish reason "deadline" and what it
    has by then; 0 = none. Default: 0. `timeout_s` is the caller's own limit and raises instead."""
    queue_deadline_ms: int
    """Milliseconds until the server gives up, with finish reason "deadline" and no audio, if it
    has not begun to work on the first segment; 0 = none. Default: 0."""
    options: Mapping[str, object]
    """Rarely used switches, such as `{"split": False}`; an unknown key is an error."""
    model_version: str
    """Version of the model to ask, such as `"2"`. Default: the highest that is served."""


@dataclass(frozen=True, slots=True)
class Voice:
    """One voice of the server's registry."""

    name: str
    """What to pass as `voice`."""
    language: str
    """The one language it was made for: zh or en; empty if there are several."""
    description: str
    """One sentence for people; may be empty."""
    kind: str
    """speaker, or audio_prompt: speech goes on as a recording began."""
    languages: tuple[str, ...]
    """All languages it was made for."""
    gender: str
    """female, male, neutral or unknown."""
    styles: tuple[str, ...]
    """Tags for people, such as calm."""
    aliases: tuple[str, ...]
    """Other names that may be passed as `voice`."""
    auditioned: bool
    """True: somebody has listened to it with these weights."""
    license: str
    """Under what terms it may be used."""
    provenance: Mapping[str, str]
    """How it was made: at least method, tool, date and source."""
    sha256: str
    """Of its values: the same voice has the same, wherever it is."""


@dataclass(frozen=True, slots=True)
class SpeechWarning:
    """Something the caller should know about an utterance that was spoken all the same."""

    code: str
    """Stable machine-readable name."""
    message: str
    """One sentence for people."""
    start: int | None = None
    """Where in the text it is, in characters; None: it is about all of it."""
    end: int | None = None
    """Where it ends."""
    text: str = ""
    """What is written there."""
    spoken: str = ""
    """What is said there instead; empty: nothing."""


@dataclass(frozen=True, slots=True)
class Timings:
    """The server's own measurements of one request, without the network."""

    queue_ms: float
    """Milliseconds spent waiting for a slot."""
    first_audio_ms: float | None
    """Milliseconds from arrival to the first audio; None if there was none."""
    total_ms: float
    """Milliseconds from arrival to the last audio."""
    audio_s: float
    """Seconds of audio made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What the last response says about the whole utterance."""

    request_id: str
    """Names the request in the server's log."""
    seed: int
    """The seed that was used: pass it again for the same samples."""
    voice: str
    """The voice that spoke; empty if none was asked for."""
    finish_reasons: tuple[str, ...]
    """Why each segment ended: eos, length, cancelled, deadline or error."""
    warnings: tuple[SpeechWarning, ...]
    """Empty when there is nothing to say."""
    timings: Timings
    """The server's measurements."""
    text_segments: tuple[str, ...]
    """The pieces that the text was cut into, as they were spoken."""
    model_version: str
    """Version of the model that answered."""
    checkpoint: str
    """Name of the weights that spoke."""
    precision: str
    """Number format of the token model, such as fp32 or int8."""
    latency: str
    """exact or low: how the samples were made; exact for one response, whatever was asked."""
    untrained: bool
    """True: the weights are random and the audio is noise by design."""
    quality: tuple[str, ...] = ()
    """Faults that the server found in the audio: silent, clipped, too_short, too_long, loop or
    not_finite."""


class _ReadOnlySamples:
    """Samples stay read-only in a copy and in another process: NumPy's copies are not."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type] # a dataclass
        return _with_read_only_samples, (type(self), values)


def _with_read_only_samples(kind: type[Any], values: Mapping[str, Any]) -> Any:
    values["samples"].flags.writeable = False
    return kind(**values)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AudioChunk(_ReadOnlySamples):
    """One response of a stream: the next samples of the utterance."""

    samples: Samples
    """(S,) float32 in -1 ... 1, read-only; S may be 0 in the last chunk."""
    sample_rate: int
    """Hz."""
    index: int
    """Position in the stream, from 0."""
    segment_index: int
    """Which piece of the text this belongs to, from 0."""
    num_segments: int
    """Pieces that the text was cut into."""
    is_final: bool
    """True on the last chunk, and only there."""
    summary: Summary | None
    """Present on the last chunk, and only there."""

    @property
    def duration_s(self) -> float:
        """Seconds of audio in this chunk."""
        return len(self.samples) / self.sample_rate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audio(_ReadOnlySamples, Summary):
    """A whole utterance: its samples, what the server says about it, and how long it took."""

    samples: Samples
    """(S,) float32 in -1 ... 1, read-only."""
    sample_rate: int
    """Hz."""
    time_to_first_audio_s: float | None
    """Seconds from the call to the first samples in the caller's hands; None if there are none."""
    elapsed_s: float
    """Seconds from the call to the last samples in the caller's hands."""
    from_cache: bool = False
    """True: a kept utterance; what the server says is about the request that made it."""

    @property
    def duration_s(self) -> float:
        """Seconds of audio."""
        return len(self.samples) / self.sample_rate

    @property
    def real_time_factor(self) -> float | None:
        """Seconds waited per second of audio: below 1 is faster than speech; None without audio."""
        return self.elapsed_s / self.duration_s if len(self.samples) else None

    def to_wav_bytes(self) -> bytes:
        """The utterance as a complete WAV file: mono, 16 bit."""
        return wav_bytes(self.samples, self.sample_rate)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the utterance to `path`, whose suffix is .wav, .flac, .ogg or .mp3.

        .wav and .flac hold the same 16-bit samples, .ogg is Vorbis. The file appears whole: on any
        error, what was there before still is.

        Raises:
            ValueError: another suffix, or no audio for another one than .wav.
            ImportError: another one than .wav without the `audio` extra.
            OSError: the file cannot be written.
        """
        save_audio(path, self.samples, self.sample_rate)

    def play(self) -> None:
        """Play the utterance on the default output of this machine; returns at its end.

        Raises:
            ImportError: the `play` extra is not installed.
            OSError: there is no PortAudio library, no output, or it fails.
        """
        play_audio(self.samples, self.sample_rate)


@dataclass(frozen=True, slots=True)
class TextSegment:
    """A part of the text that is said in one go."""

    text: str
    """What the model reads, control tokens included."""
    start: int
    """Where it begins in the text that was sent, in characters."""
    end: int
    """Where it ends."""
    estimated_s: float
    """Seconds of speech, roughly."""
    pause_ms: int
    """Milliseconds of silence after it."""


@dataclass(frozen=True, slots=True)
class AlignedSpan:
    """A part of the text that was sent, and what is said for it."""

    start: int
    """Where it begins, in characters."""
    end: int
    """Where it ends."""
    text: str
    """As it was written."""
    spoken: str
    """As it is said; empty: it is not."""


@dataclass(frozen=True, slots=True)
class NormalizedText:
    """What a text would be spoken as; nothing was spoken."""

    segments: tuple[TextSegment, ...]
    """In order; empty if nothing can be spoken."""
    warnings: tuple[SpeechWarning, ...]
    """What was left out or guessed, and where."""
    alignment: tuple[AlignedSpan, ...]
    """Spans in order that cover the whole text."""
    estimated_s: float
    """Seconds of speech, roughly."""

    @property
    def spoken(self) -> str:
        """All that is said."""
        return "".join(segment.text for segment in self.segments)
