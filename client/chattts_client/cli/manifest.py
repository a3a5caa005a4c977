"""What a batch has done: `manifest.jsonl`, a line per utterance, written as each one ends."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._files import replacing
from .lines import Line
from .output import to_json

FILE_NAME = "manifest.jsonl"
STANDARD_INPUT = "standard input"
"""The name of an input that need not be the same the next time."""
Entry = dict[str, Any]


class Manifest:
    """Knows which lines need not be spoken again.

    A line is done if its entry has the line's key and its file is there with the size that was
    noted. Entries are appended, so that an interruption loses none; `close` sorts them.
    """

    def __init__(self, folder: Path, source: str) -> None:
        """Read what earlier runs have left; a torn last line counts as absent.

        Args:
            folder: where the files and the manifest are.
            source: the input of this run, as `Entry["input"]` names it.

        Raises:
            OSError: the file cannot be read or written.
        """
        self._source = source
        self.path = folder / FILE_NAME
        self._folder = folder
        self._entries = {entry["name"]: entry for entry in _read(self.path)}
        # NOTE: rewritten first: what is appended must not follow a torn line.
        self._rewrite(list(self._entries.values()))
        self._file = self.path.open("ab", buffering=0)

    def is_done(self, line: Line, file_name: str) -> bool:
        """Whether this very line is there, complete, in a file of this name."""
        entry = self._entries.get(line.name, {})
        if entry.get("key") != line.key or entry.get("file") != file_name:
            return False
        with contextlib.suppress(OSError):
            return bool((self._folder / file_name).stat().st_size == entry["bytes"])
        return False

    def check(self, lines: Sequence[Line]) -> None:
        """Refuse to write over what another input has made; the same input may have changed.

        Raises:
            ValueError: a line has the name of an entry of another input, and says something else.
        """
        for line in lines:
            entry = self._entries.get(line.name, {})
            if "file" not in entry or entry.get("key") == line.key:
                continue
            if self._source == STANDARD_INPUT or entry.get("input") != self._source:
                place = f"line {entry.get('line')} of {entry.get('input', 'an unknown input')}"
                raise ValueError(
                    f"{self._source}, line {line.number}: {self._folder / entry['file']} is that "
                    f"of {place}; take another folder or name, or --overwrite"
                )

    def add(self, line: Line, facts: Entry) -> None:
        """Note how a line has ended; `facts` has `file` and `bytes` if it was spoken.

        Raises:
            OSError: the file cannot be written; its lines are whole all the same.
        """
        entry = {"name": line.name, "line": line.number, "key": line.key, "text": line.text}
        entry |= {"input": self._source, **facts}
        self._entries[line.name] = entry
        content = (to_json(entry) + "\n").encode()
        end = self.path.stat().st_size
        try:
            if self._file.write(content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        except OSError:
            self._file.truncate(end)
            raise

    def close(self, lines: Sequence[Line]) -> None:
        """Leave one entry per line: first those of the input, in its order, then all others.

        On a disk without room they stay as they were appended, which reads the same.
        """
        self._file.close()
        names = {line.name: None for line in lines} | dict.fromkeys(self._entries)
        with contextlib.suppress(OSError):
            self._rewrite([self._entries[name] for name in names if name in self._entries])

    def _rewrite(self, entries: Sequence[Entry]) -> None:
        with replacing(self.path) as file:
            file.write("".join(to_json(entry) + "\n" for entry in entries).encode())


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
