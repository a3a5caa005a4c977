"""docs/voices.md describes the file as it is."""

from __future__ import annotations

import json
import re

from conftest import ROOT
from voice_copies import SHIPPED
from voice_samples import prompt_voice

TEXT = (ROOT / "docs" / "voices.md").read_text(encoding="utf-8")
FILE = TEXT.split("## The file")[1].split("\n## ")[0]


def test_the_table_has_every_field_and_no_other() -> None:
    shipped = json.loads(next(SHIPPED.glob("*.json")).read_text(encoding="utf-8"))
    fields = set(re.findall(r"^\| `(\w+)` \|", FILE, re.MULTILINE))
    assert fields == shipped.keys() | prompt_voice("anna").keys()


def test_the_example_has_the_fields_of_a_voice_that_ships() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", FILE, re.DOTALL)
    shipped = json.loads(next(SHIPPED.glob("*.json")).read_text(encoding="utf-8"))
    assert list(json.loads(example)) == list(shipped)


def test_the_voices_that_ship_are_named() -> None:
    section = TEXT.split("## The voices that ship")[1]
    assert {path.stem for path in SHIPPED.glob("*.json")} <= set(re.findall(r"`(\w+)`", section))
