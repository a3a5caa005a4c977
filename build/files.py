"""Write files so that a reader sees either the old file or the whole new one, and hash them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHUNK_BYTES = 1 << 20
INTERRUPTED = 128 + signal.SIGINT
"""Exit status of a command that Ctrl-C ended."""


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move_into_place(source: Path, target: Path) -> None:
    """Rename a finished file over `target` (same file system), creating the target's folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(source, target)
    sync_folder(target.parent)


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside `target`; on success sync it and rename it to `target`.

    On any exception, an interrupt included, the temporary file is removed and `target` stays as
    it was.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        move_into_place(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(target: Path, data: bytes) -> None:
    """Write `data` to `target` atomically."""
    with atomic_path(target) as temporary:
        temporary.write_bytes(data)


def create_once(target: Path, data: bytes) -> bool:
    """Write `data` to `target` atomically if nothing is there; of many callers one writes.

    Returns:
        True if this call made the file; False leaves what is there.
    """
    descriptor, name = tempfile.mkstemp(".tmp", f".{target.name}.", target.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
            os.fchmod(descriptor, 0o644)
        # a link, unlike a rename, fails if the name is taken
        os.link(name, target)
    except FileExistsError:
        return False
    finally:
        os.unlink(name)
    sync_folder(target.parent)
    return True


def write_json(target: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object to `target` atomically, UTF-8, readable."""
    write_bytes(target, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode())
