"""Decide whether a repository is already what a build would write.

The stamp is written last and removed first: a repository without one is never taken for complete.
Files are recognised by size and modification time, and by SHA-256 when those moved.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from files import sha256, write_json

STAMP_FILE = "chattts/1/weights/stamp.json"
BUILD_FOLDER = Path(__file__).resolve().parent

Record = dict[str, Any]


def code_version() -> str:
    """Return a hash over the files of this folder: another build code, another repository."""
    return "-".join(sha256(path)[:8] for path in sorted(BUILD_FOLDER.glob("*.py")))


def describe(root: Path, names: Iterable[str], known: Record | None = None) -> Record:
    """Return size, time and SHA-256 per file, taking the hash from `known` if nothing moved."""
    described: Record = {}
    for name in names:
        state = (root / name).stat()
        entry = {"bytes": state.st_size, "mtime_ns": state.st_mtime_ns}
        old = (known or {}).get(name, {})
        if all(old.get(key) == value for key, value in entry.items()):
            described[name] = old
        else:
            described[name] = {**entry, "sha256": sha256(root / name)}
    return described


def read_stamp(repository: Path) -> Record:
    """Return the repository's stamp, or an empty record."""
    path = repository / STAMP_FILE
    try:
        stamp = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(repository: Path, inputs: Record, outputs: Iterable[str]) -> None:
    """Record what the repository was built from and the files that were written."""
    write_json(
        repository / STAMP_FILE, {"inputs": inputs, "outputs": describe(repository, outputs)}
    )


def remove_stamp(repository: Path) -> None:
    """Mark the repository as incomplete."""
    (repository / STAMP_FILE).unlink(missing_ok=True)


def is_current(repository: Path, inputs: Record, stamp: Record) -> bool:
    """Return True if the stamp tells the same inputs and every output is as it was written."""
    same = [
        {key: _hashes(value) for key, value in record.items()}
        for record in (inputs, stamp.get("inputs", {}))
    ]
    outputs = stamp.get("outputs", {})
    if same[0] != same[1] or not outputs:
        return False
    if not all((repository / name).is_file() for name in outputs):
        return False
    return bool(_hashes(describe(repository, outputs, outputs)) == _hashes(outputs))


def _hashes(value: Any) -> Any:
    """Reduce a record of files to names and hashes; leave anything else alone."""
    if not isinstance(value, dict):
        return value
    return {name: entry["sha256"] for name, entry in value.items()}
