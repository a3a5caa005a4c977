"""An offline ear: pocketsphinx with its own acoustic model and the language model of the domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pocketsphinx
import soxr
from layout import SAMPLE_RATE

from train_voice.corpus import words_of

EVALUATION_FOLDER = "evaluation"
"""Folder of a checkpoint with what an ear needs."""
MODEL_FILE, DICTIONARY_FILE = "domain.arpa", "domain.dict"
LANGUAGE_WEIGHT = 4.0
"""How much the language model counts; its default (6.5) hears the model's sentences in others."""
RATE = 16_000
"""Hz that the acoustic model wants."""


def acoustic_model() -> str:
    """Return the folder of the bundled American English model."""
    return str(pocketsphinx.get_model_path("en-us/en-us"))


def pronouncing_dictionary() -> Path:
    """Return the bundled dictionary."""
    return Path(pocketsphinx.get_model_path("en-us/cmudict-en-us.dict"))


class Recognizer:
    """Hears English of the domain; every utterance is heard as the first one.

    Args:
        folder: with the language model and the dictionary.
    """

    def __init__(self, folder: Path) -> None:
        self._options = {
            "hmm": acoustic_model(),
            "lm": str(folder / MODEL_FILE),
            "dict": str(folder / DICTIONARY_FILE),
            "samprate": float(RATE),
            "lw": LANGUAGE_WEIGHT,
            "fwdflatlw": LANGUAGE_WEIGHT + 1,
            "bestpathlw": LANGUAGE_WEIGHT + 1,
            "loglevel": "FATAL",
        }
        self._decoder = pocketsphinx.Decoder(**self._options)
        self._start = self._decoder.get_cmn(False)

    def hear(self, samples: npt.NDArray[np.float32], sample_rate: int) -> str:
        """Return the words in (S,) samples."""
        at_rate = soxr.resample(samples, sample_rate, RATE)
        pcm = (np.clip(at_rate, -1, 1) * 32767).astype("<i2").tobytes()
        # the decoder adapts to what it heard; a result must not depend on the order
        self._decoder.set_cmn(self._start)
        self._decoder.start_utt()
        self._decoder.process_raw(pcm, full_utt=True)
        self._decoder.end_utt()
        hypothesis = self._decoder.hyp()
        return "" if hypothesis is None else str(hypothesis.hypstr)


@dataclass(frozen=True, slots=True)
class WordScore:
    """Word errors over a set of sentences."""

    num_words: int
    num_errors: int

    @property
    def accuracy(self) -> float:
        """1 - WER: substitutions, insertions and deletions all count."""
        return 1 - self.num_errors / max(1, self.num_words)


def score(
    pairs: Sequence[tuple[str, str]], homophones: Mapping[str, str] | None = None
) -> WordScore:
    """Count the word errors of (said, heard) pairs.

    Args:
        pairs: of texts.
        homophones: see `read_homophones`.
    """
    same = homophones or {}

    def spoken(text: str) -> list[str]:
        return [same.get(word, word) for word in words_of(text)]

    errors = [edit_distance(spoken(said), spoken(heard)) for said, heard in pairs]
    return WordScore(sum(len(words_of(said)) for said, _ in pairs), sum(errors))


def read_homophones(folder: Path) -> dict[str, str]:
    """Return one word for all that sound the same, "no" for "know": no ear tells them apart.

    Args:
        folder: with the dictionary.
    """
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    for line in (folder / DICTIONARY_FILE).read_text(encoding="utf-8").splitlines():
        entry, _, phones = line.partition(" ")
        word = entry.split("(")[0]
        found.setdefault(word, first.setdefault(phones, word))
    return found


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the fewest substitutions, insertions and deletions between two word lists."""
    row = list(range(len(second) + 1))
    for i, word in enumerate(first, start=1):
        before, row[0] = row[0], i
        for j, other in enumerate(second, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (word != other))
    return row[-1]


class Ear:
    """The recognizer and what it cannot tell apart.

    Args:
        folder: with the language model and the dictionary.
    """

    def __init__(self, folder: Path) -> None:
        self._recognizer, self._homophones = Recognizer(folder), read_homophones(folder)

    def hear(self, samples: npt.NDArray[np.float32], sample_rate: int = SAMPLE_RATE) -> str:
        """Return the words in (S,) samples."""
        return self._recognizer.hear(samples, sample_rate)

    def score(self, pairs: Iterable[tuple[str, str]]) -> WordScore:
        """Count the word errors of (said, heard) pairs."""
        return score(list(pairs), self._homophones)
