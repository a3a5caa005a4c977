"""English that is read out can be pronounced: each word of the table is in a dictionary of sounds.

A word that no dictionary has is a piece of writing that the rules have left unread ("km", "vs").
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pocketsphinx
import pytest

KINDS = ("en", "latin", "mixed")
"""Kinds of cases that hold English; the others have Latin letters of other languages too."""
FOLDER = Path(__file__).resolve().parents[2] / "data" / "text"
_NAMES = (
    "arques bashrc brulee chattts config covid cuda gigahertz hectopascals json milliamp miz numpy "
    "pip py qwen reais repo wi zeroth"
)
NAMES = frozenset(_NAMES.split())
"""Words that the dictionary lacks and that read as they are written."""

_WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*")


@cache
def _sounds() -> dict[str, str]:
    """Return word to phonemes of the CMU dictionary that the test recognizer brings."""
    path = Path(pocketsphinx.get_model_path("en-us/cmudict-en-us.dict"))
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines if " " in line)


def _spoken_texts() -> list[tuple[str, str]]:
    rows = []
    for path in sorted(path for kind in KINDS for path in FOLDER.glob(f"{kind}_*.tsv")):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            columns = line.split("\t")
            if not line.startswith("#") and len(columns) > 1 and _WORD.search(columns[1]):
                rows.append((f"{path.stem}-{number}", columns[1]))
    return rows


ROWS = _spoken_texts()


@pytest.mark.parametrize("spoken", [text for _, text in ROWS], ids=[name for name, _ in ROWS])
def test_every_latin_word_has_a_sound(spoken: str) -> None:
    unread = [word for word in _WORD.findall(spoken) if not _can_be_read(word.lower())]
    assert not unread


def _can_be_read(word: str) -> bool:
    bare = word.removesuffix("'s")
    return len(bare) == 1 or word in _sounds() or bare in _sounds() or bare in NAMES


def test_the_dictionary_reads_numbers_aloud() -> None:
    assert _sounds()["twenty"].startswith("T W EH N")
