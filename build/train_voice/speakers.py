"""What the speaker slot holds, in training and afterwards.

One direction of the speaker vector chooses between the two English voices: its sign alone, so any
speaker string is one of them. Mandarin has one voice, whatever the slot holds. Without a speaker a
text has its language's first teacher.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from reference_gpt import normalize_speaker

from train_voice.corpus import TEACHERS

Vector = npt.NDArray[np.float32]
SIDES = {"slt": 1.0, "rms": -1.0}
"""On which side of the direction a teacher's speakers lie."""
NEAREST = 0.01
"""Speakers of training lie at least so far from the border, as a cosine."""
VOICE_COSINE = 0.6
"""How far the named voices lie from it."""
OWN_SHARE, NONE_SHARE = 0.5, 0.2
"""Training items with the voice's own vector, and without a speaker; the rest is random."""


@dataclass(frozen=True, slots=True)
class Voice:
    """A voice that the checkpoint offers."""

    name: str
    language: str
    gender: str
    teacher: str
    description: str


VOICES = (
    Voice("en", "en", "female", "slt", "English, female, taught by the flite voice slt"),
    Voice("en_male", "en", "male", "rms", "English, male, taught by the flite voice rms"),
    Voice("zh", "zh", "male", "cmn", "Mandarin, taught by espeak-ng"),
)


class Speakers:
    """Speaker vectors of one hidden size, drawn from a seed."""

    def __init__(self, hidden_size: int, seed: int) -> None:
        rng = np.random.default_rng([seed, 0x5EA4E5])
        self.size = hidden_size
        self._direction = _unit(rng.standard_normal(hidden_size))
        self.vectors = {
            voice.teacher: self._named(SIDES.get(voice.teacher, 0.0), rng) for voice in VOICES
        }
        """(H,) float16 of each teacher's voice."""

    def draw(self, teacher: str, rng: np.random.Generator) -> Vector | None:
        """Return what an item of a teacher has in its slot: (H,) normalised, or no speaker."""
        is_default = any(teacher == teachers[0] for teachers in TEACHERS.values())
        chance = rng.random()
        if chance < NONE_SHARE and is_default:
            return None
        if chance < NONE_SHARE + OWN_SHARE:
            return self.own(teacher)
        return normalize_speaker(self.random(teacher, rng).astype(np.float16))

    def own(self, teacher: str) -> Vector:
        """Return the normalised vector of a teacher's voice."""
        return normalize_speaker(self.vectors[teacher])

    def random(self, teacher: str, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Return a random vector (H,) of length 1 that stands for a teacher."""
        side = SIDES.get(teacher)
        while True:
            vector = _unit(rng.standard_normal(self.size))
            cosine = float(vector @ self._direction)
            if side is None:
                return vector
            if abs(cosine) >= NEAREST:
                return vector if cosine * side > 0 else -vector

    def _named(self, side: float, rng: np.random.Generator) -> npt.NDArray[np.float16]:
        vector = _unit(rng.standard_normal(self.size))
        across = _unit(vector - (vector @ self._direction) * self._direction)
        cosine = VOICE_COSINE * side
        result = cosine * self._direction + np.sqrt(1 - cosine**2) * across
        # of the length that ordinary speaker strings have: the engine divides by it
        scaled: npt.NDArray[np.float16] = (result * np.sqrt(self.size)).astype(np.float16)
        return scaled


def _unit(vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return vector / np.linalg.norm(vector)
