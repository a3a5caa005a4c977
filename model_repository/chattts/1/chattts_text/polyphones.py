"""Characters of several readings: the one that the context asks for is put in place of each.

The context is pypinyin's dictionary of phrases, and a few of ours that it lacks. Only where that
reading is not the character's usual one is a character put there that has it; neutral tones of a
syllable stay, because the model speaks those by itself.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from .aligned import Edit
from .context import Context
from .homophones import readings, syllable, with_reading
from .language import HAN

_HAN_RUN = re.compile(rf"[{HAN}]+")
_NEUTRAL = "5"
_PHRASES = {
    "行长": "háng zhǎng",
    "数了数": "shǔ le shǔ",
    "数一数": "shǔ yī shǔ",
    "还给": "huán gěi",
    "还书": "huán shū",
    "还钱": "huán qián",
    "慢慢地": "màn màn de",
    "为人民": "wèi rén mín",
    "为大家": "wèi dà jiā",
}


def stage(text: str, context: Context) -> Iterable[Edit]:
    """See above."""
    for run in _HAN_RUN.finditer(text):
        for offset, reading in enumerate(_reader()(run[0])):
            character = run[0][offset]
            wanted = syllable(reading)
            if wanted is None or not _differs(character, wanted):
                continue
            spoken = with_reading(wanted, context.vocabulary)
            if spoken:
                position = run.start() + offset
                yield Edit(position, position + 1, spoken, "polyphone")


def _differs(character: str, wanted: str) -> bool:
    """Say whether a reading is one of the character's, but not its usual one."""
    known = readings(character)
    if len(known) < 2 or wanted not in known or wanted == known[0]:
        return False
    return not (wanted.endswith(_NEUTRAL) and wanted[:-1] == known[0][:-1])


@cache
def _reader() -> Callable[[str], list[str]]:
    """Return a function from Han to one reading for each character."""
    from pypinyin import Style, lazy_pinyin, load_phrases_dict

    load_phrases_dict(
        {phrase: [[one] for one in spoken.split()] for phrase, spoken in _PHRASES.items()}
    )

    one_by_one: Any = list  # unknown characters stand for themselves, each for one

    def read(han: str) -> list[str]:
        return lazy_pinyin(han, style=Style.TONE3, neutral_tone_with_five=True, errors=one_by_one)

    return read
