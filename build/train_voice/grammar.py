"""Sentences from templates: `{slot}` is filled by one of the slot's phrases, at random.

A phrase may have slots itself. A generator draws from one seed, so the same seed gives the same
sentences everywhere.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_SLOT = re.compile(r"\{(\w+)\}")

Maker = Callable[[random.Random], str]
"""Makes one phrase, for what no list can hold: numbers, times, dates."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """Templates and what may stand in their slots."""

    templates: Sequence[str]
    held_out: Sequence[str]
    """Templates of which no sentence is trained on; their words all occur in the others."""
    slots: Mapping[str, Sequence[str]]
    makers: Mapping[str, Maker]

    def fill(self, template: str, rng: random.Random) -> str:
        """Return one sentence of a template.

        Raises:
            KeyError: a slot that neither `slots` nor `makers` has.
        """
        while match := _SLOT.search(template):
            phrase = self._phrase(match[1], rng)
            template = template[: match.start()] + phrase + template[match.end() :]
        return template

    def _phrase(self, slot: str, rng: random.Random) -> str:
        maker = self.makers.get(slot)
        return maker(rng) if maker else rng.choice(self.slots[slot])
