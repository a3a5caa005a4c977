"""Run the build command inside the test process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from build_repository import main
from conftest import TINY_CHECKPOINT


def run(repository: Path, checkpoint: Path = TINY_CHECKPOINT, *options: str) -> int:
    return main(["--checkpoint", str(checkpoint), "--output", str(repository), *options])


def read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
