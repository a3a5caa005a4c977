"""The table of cases in tests/data/text: what is written, and what a careful reader would say.

One file per kind. Columns, separated by tabs: input, spoken text, and where needed the switches as
JSON; `\\n`, `\\t` and `\\uXXXX` stand for the characters. Lines that begin with # are comments.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest
import text_vocabulary
from chattts_text import FrontEnd, Switches

FOLDER = Path(__file__).resolve().parents[2] / "data" / "text"
_ESCAPE = re.compile(r"\\(n|t|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})")


class Case(NamedTuple):
    name: str
    text: str
    spoken: str
    switches: Switches


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return {"n": "\n", "t": "\t"}.get(code) or chr(int(code[1:], 16))

    return _ESCAPE.sub(character, text)


def _cases() -> list[Case]:
    cases = []
    for path in sorted(FOLDER.glob("*.tsv")):
        lines = path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, start=1):
            if not line or line.startswith("#"):
                continue
            text, spoken, *options = line.split("\t")
            switches = Switches(**json.loads(options[0])) if options else Switches()
            name = f"{path.stem}-{number}"
            cases.append(Case(name, _unescaped(text), _unescaped(spoken), switches))
    return cases


CASES = _cases()
FRONT_END = text_vocabulary.real_front_end()
REAL_CASES = CASES if FRONT_END else CASES[:1]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_table_is_spoken_as_written_in_it(case: Case) -> None:
    assert _spoken(text_vocabulary.stand_in_front_end(), case) == case.spoken


@pytest.mark.skipif(FRONT_END is None, reason="the published tokenizer is not here")
@pytest.mark.parametrize("case", REAL_CASES, ids=[case.name for case in REAL_CASES])
def test_the_published_vocabulary_speaks_the_table_too(case: Case) -> None:
    assert FRONT_END is not None
    assert _spoken(FRONT_END, case) == case.spoken


def test_the_table_is_large() -> None:
    assert len(CASES) >= 300


def _spoken(front_end: FrontEnd, case: Case) -> str:
    return front_end.prepare(case.text, case.switches).spoken
