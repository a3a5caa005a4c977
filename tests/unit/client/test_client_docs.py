"""docs/client.md says what the source says."""

from __future__ import annotations

import re

import chattts_client
from chattts_client._exceptions import error_table
from conftest import ROOT

GUIDE = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "client" / "examples"


def errors_as_markdown() -> str:
    rows = ["| error | when | codes | retryable | hint |", "|---|---|---|---|---|"]
    for row in error_table():
        codes = ", ".join(row.codes)
        retryable = "yes" if row.retryable else "no"
        rows.append(f"| `{row.name}` | {row.when} | {codes} | {retryable} | {row.hint} |")
    return "\n".join(rows)


def test_the_table_of_errors_is_the_sources() -> None:
    found = re.search(r"<!-- errors: .*? -->\n(.*?)\n<!-- end of errors -->", GUIDE, re.DOTALL)
    assert found, "the marks around the table are gone"
    assert found[1] == errors_as_markdown(), f"the table should be:\n{errors_as_markdown()}"


def test_every_public_error_is_in_the_table() -> None:
    public = {
        name
        for name in chattts_client.__all__
        if issubclass(getattr(chattts_client, name), chattts_client.ChatTTSError)
    }
    assert {row.name for row in error_table()} == public - {"ChatTTSError"}


def test_every_method_of_the_client_is_explained() -> None:
    methods = {name for name in vars(chattts_client.ChatTTSClient) if not name.startswith("_")}
    assert not {name for name in methods if not re.search(rf"\b{name}\b", GUIDE)}


def test_every_example_is_listed_once() -> None:
    listed = re.findall(r"\]\(\.\./client/examples/(\w+\.py)\)", GUIDE)
    assert sorted(listed) == sorted(path.name for path in EXAMPLES.glob("*.py"))
