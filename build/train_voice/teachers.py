"""The voices that teach: flite for English, espeak-ng for Mandarin, through their C libraries.

Both run in this process and say when each word was spoken, so the words need no recogniser. flite's
voices and its code may be used freely; espeak-ng is a GPL program of which only the sound is used.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import soxr
from layout import SAMPLE_RATE
from pypinyin import Style, lazy_pinyin

from train_voice.corpus import words_of

Samples = npt.NDArray[np.float32]

LEAD_SECONDS = 0.064
TAIL_SECONDS = 0.140
"""Silence kept before the first and after the last word."""
_COUNTING = frozenset("零一二三四五六七八九十百第期月号年点分")
"""Beside these 一 keeps its tone, elsewhere it takes one that the next syllable decides."""
LOUD = 0.01
"""What is louder is no silence."""
_FULL_SCALE = 32768


class TeacherError(RuntimeError):
    """A teacher's library is missing, or a teacher did not say what it was given."""


@dataclass(frozen=True, slots=True)
class Speech:
    """What a teacher said."""

    samples: Samples
    """(S,) float32 in -1 ... 1 at 24 kHz, trimmed."""
    spans: Sequence[tuple[float, float]]
    """Start and end of each word of `words_of(text)`, in seconds of `samples`."""


class Teacher(Protocol):
    """A voice."""

    def say(self, text: str) -> Speech:
        """Return the speech of a text.

        Raises:
            TeacherError: it said other words than those of the text.
        """
        ...


def make_teacher(name: str) -> Teacher:
    """Return the teacher of a name in `corpus.TEACHERS`.

    Raises:
        TeacherError: its library is not installed (see apt-packages.txt).
    """
    return EspeakTeacher() if name == "cmn" else FliteTeacher(name)


def _library(name: str, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name, mode=mode)
    except OSError as error:
        raise TeacherError(
            f"{name} is missing; install the packages of build/train_voice/apt-packages.txt"
        ) from error


def _trimmed(samples: Samples, rate: int, spans: list[tuple[float, float]]) -> Speech:
    """Resample to 24 kHz and cut the silence around the words to its two lengths."""
    samples = np.asarray(soxr.resample(samples, rate, SAMPLE_RATE), np.float32)
    start = spans[0][0] - LEAD_SECONDS
    first = round(start * SAMPLE_RATE)
    last = round((spans[-1][1] + TAIL_SECONDS) * SAMPLE_RATE)
    padded = np.pad(samples, (max(0, -first), max(0, last - len(samples))))
    cut = padded[max(0, first) : max(0, first) + last - first]
    return Speech(cut, [(begin - start, end - start) for begin, end in spans])


class _FliteWave(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_char_p),
        ("sample_rate", ctypes.c_int),
        ("num_samples", ctypes.c_int),
        ("num_channels", ctypes.c_int),
        ("samples", ctypes.POINTER(ctypes.c_short)),
    )


@cache
def _flite() -> ctypes.CDLL:
    flite = _library("libflite.so.1", ctypes.RTLD_GLOBAL)
    for name in ("libflite_cmulex.so.1", "libflite_usenglish.so.1"):
        _library(name, ctypes.RTLD_GLOBAL)
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "flite_synth_text": (pointer, [text, pointer]),
        "utt_relation": (pointer, [pointer, text]),
        "relation_head": (pointer, [pointer]),
        "item_next": (pointer, [pointer]),
        "flite_ffeature_string": (text, [pointer, text]),
        "flite_ffeature_float": (ctypes.c_float, [pointer, text]),
        "utt_wave": (ctypes.POINTER(_FliteWave), [pointer]),
        "delete_utterance": (None, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(flite, name)
        function.restype, function.argtypes = result, arguments
    flite.flite_init()
    return flite


class FliteTeacher:
    """A voice of flite: slt (female) or rms (male), American English."""

    def __init__(self, voice: str) -> None:
        self._flite = _flite()
        register = getattr(_library(f"libflite_cmu_us_{voice}.so.1"), f"register_cmu_us_{voice}")
        register.restype, register.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        self._voice = register(None)

    def say(self, text: str) -> Speech:
        """Return the speech of an English text.

        Raises:
            TeacherError: it is not ASCII, or was read otherwise.
        """
        if not text.isascii():
            raise TeacherError(f"flite reads ASCII only, not {text!r}")
        utterance = self._flite.flite_synth_text(text.encode("ascii"), self._voice)
        try:
            wave = self._flite.utt_wave(utterance).contents
            pcm = np.ctypeslib.as_array(wave.samples, (wave.num_samples,))
            samples = pcm.astype(np.float32) / _FULL_SCALE
            rate = int(wave.sample_rate)
            read = self._words(utterance)
        finally:
            self._flite.delete_utterance(utterance)
        return _trimmed(samples, rate, joined_spans(words_of(text), read))

    def _words(self, utterance: int) -> list[tuple[str, float, float]]:
        flite = self._flite
        words = []
        item = flite.relation_head(flite.utt_relation(utterance, b"Word"))
        phones = b"R:SylStructure.daughter%b.daughter%b.R:Segment.%b"
        while item:
            name = flite.flite_ffeature_string(item, b"name").decode()
            start = flite.flite_ffeature_float(item, phones % (b"1", b"1", b"p.end"))
            end = flite.flite_ffeature_float(item, phones % (b"n", b"n", b"end"))
            words.append((name, start, end))
            item = flite.item_next(item)
        return words


def joined_spans(
    words: Sequence[str], read: Sequence[tuple[str, float, float]]
) -> list[tuple[float, float]]:
    """Return the start and end of each word, of which flite may read parts ("it", "'s").

    Raises:
        TeacherError: the parts do not make up the words.
    """
    rest = iter(read)
    spans = []
    for word in words:
        spoken, start, end = next(rest, ("", 0.0, 0.0))
        while len(spoken := spoken.replace("'", "")) < len(word.replace("'", "")):
            part, _, end = next(rest, ("?" * len(word), 0.0, 0.0))
            spoken += part
        if spoken != word.replace("'", ""):
            raise TeacherError(f"flite read {word!r} as {spoken!r}")
        spans.append((start, end))
    if next(rest, None):
        raise TeacherError(f"flite read more words than {' '.join(words)!r}")
    return spans


class _EspeakEvent(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


_ESPEAK_SYNCHRONOUS = 2
_ESPEAK_UTF8 = 1
_EVENT_END, _EVENT_WORD = 0, 1
_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_EspeakEvent)
)


@cache
def _espeak() -> tuple[ctypes.CDLL, int]:
    """Return the library, started once per process with the Mandarin voice, and its rate in Hz."""
    espeak = _library("libespeak-ng.so.1")
    rate = int(espeak.espeak_Initialize(_ESPEAK_SYNCHRONOUS, 0, None, 0))
    if rate <= 0 or espeak.espeak_SetVoiceByName(b"cmn-latn-pinyin"):
        raise TeacherError("espeak-ng has no voice cmn-latn-pinyin")
    return espeak, rate


class EspeakTeacher:
    """espeak-ng's Mandarin voice, fed with pinyin: it cannot read Han characters itself."""

    def __init__(self) -> None:
        self._espeak, self._rate = _espeak()
        self._chunks: list[Samples] = []
        self._starts: dict[int, int] = {}
        self._callback = _Callback(self._receive)

    def say(self, text: str) -> Speech:
        """Return the speech of a Mandarin text."""
        spoken = pinyin(text)
        data = spoken.encode()
        self._chunks, self._starts = [], {}
        # the library knows one callback, that of the last teacher who spoke
        self._espeak.espeak_SetSynthCallback(self._callback)
        self._espeak.espeak_Synth(data, len(data) + 1, 0, 1, 0, _ESPEAK_UTF8, None, None)
        samples = np.concatenate(self._chunks)
        places = [match.start() + 1 for match in re.finditer(r"\w+", spoken)]
        if len(places) != len(words_of(text)) or not self._starts.keys() >= set(places):
            raise TeacherError(f"espeak-ng did not read {text!r} as {spoken!r}")
        loud = np.flatnonzero(np.abs(samples) > LOUD)
        inner = [self._starts[place] / 1000 for place in places[1:]]
        first, last = loud[0] / self._rate, loud[-1] / self._rate
        return _trimmed(
            samples, self._rate, list(zip([first, *inner], [*inner, last], strict=True))
        )

    def _receive(self, wave: Any, count: int, events: Any) -> int:
        if count > 0:
            pcm = np.ctypeslib.as_array(wave, (count,))
            self._chunks.append(pcm.astype(np.float32) / _FULL_SCALE)
        index = 0
        while events[index].type != _EVENT_END:
            if events[index].type == _EVENT_WORD:
                # a list may carry stale events at its end: the first of a place is the true one
                self._starts.setdefault(events[index].text_position, events[index].audio_position)
            index += 1
        return 0


def pinyin(text: str) -> str:
    """Return the syllables of a Mandarin text with tone digits 1 ... 5, marks kept."""
    marks = str.maketrans("，。？！", ",.?!")
    parts = re.findall(r"[\u4e00-\u9fff]|[^\u4e00-\u9fff]+", text)
    syllables: list[str] = lazy_pinyin(
        text,
        style=Style.TONE3,
        neutral_tone_with_five=True,
        tone_sandhi=True,
        errors=lambda other: other.translate(marks),
    )
    for place in (place for place, part in enumerate(parts) if part == "一"):
        after = parts[place + 1] if place + 1 < len(parts) else ""
        before = parts[place - 1] if place else ""
        if not after.isalpha() or {before, after} & _COUNTING:
            syllables[place] = "yi1"
        else:
            syllables[place] = "yi2" if syllables[place + 1].endswith("4") else "yi4"
    # a mark that stands alone would be read by its name
    return re.sub(r" (?=[,.?!])", "", " ".join(syllables))
