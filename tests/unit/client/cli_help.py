"""The help texts in docs/cli.md: as they are there, and as they are.

python tests/unit/client/cli_help.py    # puts the help as it is into docs/cli.md
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CLIENT = ROOT / "client"
DOCS = ROOT / "docs" / "cli.md"
COMMANDS = ("say", "batch", "normalize", "voices", "models", "health", "bench", "doctor")
_BLOCK = re.compile(
    r"(?<=```text\n)Usage: chattts (\[OPTIONS\] COMMAND|\w+).*?(?=\n```)", re.DOTALL
)


def help_text(*command: str, width: int = 80) -> str:
    """What --help prints into a pipe, without spaces at the ends of lines."""
    environment = {**os.environ, "COLUMNS": str(width), "PYTHONPATH": str(CLIENT)}
    done = subprocess.run(
        [sys.executable, "-m", "chattts_client", *command, "--help"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def documented() -> dict[str, str]:
    """Command to its help in the documentation; the empty one is the application's."""
    return {_command(block): block[0] for block in _BLOCK.finditer(_read())}


def _read() -> str:
    return DOCS.read_text(encoding="utf-8")


def _command(block: re.Match[str]) -> str:
    return "" if block[1].startswith("[") else block[1]


if __name__ == "__main__":
    renewed = _BLOCK.sub(lambda block: help_text(*_command(block).split()), _read())
    DOCS.write_text(renewed, encoding="utf-8")
