"""The ear of the tests: the recognizer of the evaluation, with the domain of the voice that ships.

Any word may follow any other, so it is not told the answers.
"""

from __future__ import annotations

from conftest import DATA, DEMO_CHECKPOINT
from train_voice.recognizer import EVALUATION_FOLDER, Ear

SENTENCES = (DATA / "ear_sentences.txt").read_text(encoding="utf-8").splitlines()
"""Which the voice that ships says without a word error: who hears less has broken something."""


def demo_ear() -> Ear:
    """Return an ear for the voice that ships; a thread needs its own."""
    return Ear(DEMO_CHECKPOINT / EVALUATION_FOLDER)
