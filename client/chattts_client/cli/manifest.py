"""What a batch has done: `manifest.jsonl`, a line per utterance, written as each one ends."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .lines import Line
from .output import to_json

FILE_NAME = "manifest.jsonl"
Entry = dict[str, Any]


class Manifest:
    """Knows which lines need not be spoken again.

    A line is done if its entry has the line's key and its file is there with the size that was
    noted. Entries are appended, so that an interruption loses none; `close` sorts them.
    """

    def __init__(self, folder: Path) -> None:
        """Read what earlier runs have left; a torn last line counts as absent.

        Raises:
            OSError: the file cannot be read or written.
        """
        self.path = folder / FILE_NAME
        self._folder = folder
        self._entries = {entry["name"]: entry for entry in _read(self.path)}
        # NOTE: rewritten first: what is appended must not follow a torn line.
        self._rewrite(list(self._entries.values()))
        self._file = self.path.open("a", encoding="utf-8")

    def is_done(self, line: Line, file_name: str) -> bool:
        """Whether this very line is there, complete, in a file of this name."""
        entry = self._entries.get(line.name, {})
        if entry.get("key") != line.key or entry.get("file") != file_name:
            return False
        with contextlib.suppress(OSError):
            return bool((self._folder / file_name).stat().st_size == entry["bytes"])
        return False

    def add(self, line: Line, facts: Entry) -> None:
        """Note how a line has ended; `facts` has `file` and `bytes` if it was spoken."""
        entry = {"name": line.name, "line": line.number, "key": line.key, "text": line.text}
        entry |= facts
        self._entries[line.name] = entry
        self._file.write(to_json(entry) + "\n")
        self._file.flush()

    def close(self, lines: Sequence[Line]) -> None:
        """Leave one entry per line that has ended, in the order of the input."""
        self._file.close()
        self._rewrite([self._entries[one.name] for one in lines if one.name in self._entries])

    def _rewrite(self, entries: Sequence[Entry]) -> None:
        part = self.path.with_suffix(".part")
        part.write_text("".join(to_json(entry) + "\n" for entry in entries), encoding="utf-8")
        os.replace(part, self.path)


def _read(path: Path) -> list[Entry]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return []
    entries = []
    for line in lines:
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                entries.append(entry)
    return entries
