"""Code blocks of a document, made to run against a test server."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from launcher import EmbeddedServer


def snippet(document: Path, language: str, containing: str) -> str:
    """Return the one code block of this language that contains a text."""
    (found,) = [block for block in snippets(document, language) if containing in block]
    return found


def snippets(document: Path, language: str) -> list[str]:
    """Return all code blocks of this language."""
    return re.findall(rf"```{language}\n(.*?)```", document.read_text("utf-8"), re.DOTALL)


def on(server: EmbeddedServer, code: str) -> str:
    """Point a snippet at a test server and this interpreter."""
    replacements = {
        "localhost:8001": server.grpc_url,
        "localhost:8000": server.http_url,
        "localhost:8002": server.metrics_url.removeprefix("http://").removesuffix("/metrics"),
        ".venv/bin/python": sys.executable,
        "python3 ": f"{sys.executable} ",
    }
    for old, new in replacements.items():
        code = code.replace(old, new)
    return code
