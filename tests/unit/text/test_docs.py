"""docs/text.md: its examples are said as it says, and its tables are complete."""

from __future__ import annotations

import re

import pytest
from chattts_text import OPTION_NAMES
from chattts_text.notes import MESSAGES
from chattts_text.offline import prepare
from conftest import ROOT

TEXT = (ROOT / "docs" / "text.md").read_text(encoding="utf-8")
_ROWS = TEXT.split("<!-- examples -->")[1].split("\n\n")[0].splitlines()
EXAMPLES = [re.fullmatch(r"\| `(.*)` \| (.*) \|", row) for row in _ROWS if row.startswith("| `")]


@pytest.mark.parametrize("row", EXAMPLES)
def test_the_example_is_said_so(row: re.Match[str] | None) -> None:
    assert row is not None
    written, said = (cell.replace("\\|", "|") for cell in row.groups())
    assert prepare(written).spoken == said


def test_every_switch_and_every_warning_is_told() -> None:
    assert len(EXAMPLES) > 10
    rows = set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE))
    assert {*OPTION_NAMES, *MESSAGES} <= rows
    for code, message in MESSAGES.items():
        assert f"| `{code}` | {message} |" in TEXT
