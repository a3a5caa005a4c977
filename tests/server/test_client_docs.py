"""The snippets of docs/client.md run one after another, against a server with the small voice."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT
from launcher import EmbeddedServer
from snippets import on, snippets

GUIDE = ROOT / "docs" / "client.md"


def test_the_guides_snippets_run(
    demo_server: EmbeddedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "guide"}
    for index, code in enumerate(snippets(GUIDE, "python")):
        exec(compile(on(demo_server, code), f"block {index}", "exec", dont_inherit=True), names)
    client = names["client"]
    client.close()  # type: ignore[attr-defined]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("True ")
    assert printed[-1].startswith("InvalidRequestError INVALID_ARGUMENT voice voice: 'nobody'")
    assert [line for line in printed if line in ("True", "False")][-2:] == ["False", "True"]
    assert (tmp_path / "train.wav").stat().st_size > 24_000
