"""The ear of the tests: the recognizer of the evaluation, with the domain of the voice that ships.

Any word may follow any other, so it is not told the answers.
"""

from __future__ import annotations

from conftest import DEMO_CHECKPOINT
from train_voice.held_out import first_set
from train_voice.recognizer import EVALUATION_FOLDER, Ear

SENTENCES = [item.text for item in first_set(DEMO_CHECKPOINT) if item.language == "en"][:24]
"""Some that the voice was not trained on, chosen before anybody heard it say them."""


def demo_ear() -> Ear:
    """Return an ear for the voice that ships; a thread needs its own."""
    return Ear(DEMO_CHECKPOINT / EVALUATION_FOLDER)
