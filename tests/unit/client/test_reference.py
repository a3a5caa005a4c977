"""The reference that `make docs` writes covers every public name, and says nothing is wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import chattts_client
from conftest import ROOT


def test_the_reference_builds_without_warnings_and_has_every_public_name(tmp_path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    command = re.search(r"\$\(BIN\)/python (.* -m pdoc .*) --output-directory api-docs", makefile)
    assert command
    done = subprocess.run(
        [sys.executable, *command[1].split(), "--output-directory", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warn" not in done.stderr
    page = (tmp_path / "chattts_client.html").read_text(encoding="utf-8")
    documented = set(re.findall(r'<section id="(\w+)">', page))
    assert set(chattts_client.__all__) <= documented
    for client in ("ChatTTSClient", "AsyncChatTTSClient"):
        methods = {name for name in vars(getattr(chattts_client, client)) if name[0] != "_"}
        assert {f"{client}.{name}" for name in methods} <= set(
            re.findall(r'<div id="([\w.]+)" class="classattr">', page)
        )
