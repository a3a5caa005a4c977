"""Decide whether a version in a repository is already what a build would write.

The stamp is written last and removed first: a version without one is never taken for complete.
Files are recognised by size and modification time, and by SHA-256 when those moved.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from files import sha256, write_json
from repository import stamp_file

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


def read_stamp(repository: Path, version: int) -> Record:
    """Return the version's stamp, or an empty record."""
    path = repository / stamp_file(version)
    try:
        stamp = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp(repository: Path, version: int, inputs: Record, outputs: Iterable[str]) -> None:
    """Record what the version was built from and the files that were written."""
    record = {"inputs": inputs, "outputs": describe(repository, outputs)}
    write_json(repository / stamp_file(version), record)


def remove_stamp(repository: Path, version: int) -> None:
    """Mark the version as incomplete."""
    (repository / stamp_file(version)).unlink(missing_ok=True)


def is_current(repository: Path, inputs: Record, stamp: Record) -> bool:
    """Return True if the stamp tells the same inputs and every output is as it was written."""
    same = [
        {key: _hashes(value) for key, value in record.items()}
        for record in (inputs, stamp.get("inputs", {}))
    ]
    return same[0] == same[1] and damage(repository, stamp) == ""


def damage(repository: Path, stamp: Record) -> str:
    """Say which file is not as the stamp says and what is wrong with it; "" if all are."""
    outputs = stamp.get("outputs", {})
    if not outputs:
        return "it was never built, or not to its end"
    for name in outputs:
        if not (repository / name).is_file():
            return f"{name} is missing"
    found = _hashes(describe(repository, outputs, outputs))
    changed = [name for name, digest in _hashes(outputs).items() if found[name] != digest]
    return f"{changed[0]} is not as it was built" if changed else ""


def _hashes(value: Any) -> Any:
    """Reduce a record of files to names and hashes; leave anything else alone."""
    if not isinstance(value, dict):
        return value
    return {name: entry["sha256"] for name, entry in value.items()}
