"""The project's ear: an offline recogniser that hears what the server said.

pocketsphinx with its bundled acoustic model, the dictionary of the small voice's domain and a
bigram model of it. It is a word loop, not a list of answers: any word may follow any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pocketsphinx
import soxr
from numpy.typing import NDArray
from train_voice.recognizer import edit_distance

ASR = Path(__file__).parent / "data" / "asr"
RECOGNISER_RATE = 16000


@dataclass(frozen=True, slots=True)
class Score:
    """Word errors over a set of sentences."""

    num_words: int
    num_errors: int

    @property
    def word_accuracy(self) -> float:
        """1 - WER: substitutions, insertions and deletions all count."""
        return 1.0 - self.num_errors / self.num_words


class Ear:
    """Recognises English of the domain."""

    def __init__(self) -> None:
        self._decoder = pocketsphinx.Decoder(
            hmm=pocketsphinx.get_model_path("en-us/en-us"),
            lm=str(ASR / "dom.arpa"),
            dict=str(ASR / "dom.dict"),
            samprate=float(RECOGNISER_RATE),
            loglevel="FATAL",
        )

    def hear(self, samples: NDArray[np.float32], sample_rate: int) -> str:
        """Return the words in (S,) float32 samples."""
        at_rate = soxr.resample(samples, sample_rate, RECOGNISER_RATE)
        pcm = (np.clip(at_rate, -1.0, 1.0) * 32767).astype("<i2").tobytes()
        self._decoder.start_utt()
        self._decoder.process_raw(pcm, full_utt=True)
        self._decoder.end_utt()
        hypothesis = self._decoder.hyp()
        return "" if hypothesis is None else str(hypothesis.hypstr)

    def score(self, heard: Iterable[tuple[str, str]]) -> Score:
        """Count the word errors of (said, heard) pairs."""
        num_words = num_errors = 0
        for said, recognised in heard:
            reference = words(said)
            num_words += len(reference)
            num_errors += edit_distance(reference, words(recognised))
        return Score(num_words, num_errors)


def words(sentence: str) -> list[str]:
    """Split a sentence of the domain into words, without marks."""
    return sentence.replace(",", " ").replace(".", " ").lower().split()
