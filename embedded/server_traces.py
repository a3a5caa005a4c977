"""What a supervised server leaves on disk, under names that carry its supervisor's process id.

A later start can tell by that id what the dead left from what lives.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from server_processes import is_alive

SHARED_MEMORY = Path("/dev/shm")

_OWN_NAME = re.compile(r"chattts-server-(\d+)-(\d+)-")


def run_name(pid: int) -> str:
    """Return the prefix of everything that the server supervised by process `pid` leaves on disk.

    The pid namespace is part of it: where containers share /dev/shm, ids of one mean nothing in
    another.
    """
    namespace = os.stat("/proc/self/ns/pid").st_ino
    return f"chattts-server-{namespace}-{pid}-"


def private_directory(pid: int) -> Path:
    """Return the folder of the server supervised by process `pid`: backends, log, drain file."""
    return Path(tempfile.gettempdir()) / f"{run_name(pid)}files"


def remove_shared_memory(pid: int) -> None:
    """Unlink the shared-memory regions of the server supervised by process `pid`."""
    for region in SHARED_MEMORY.glob(f"{run_name(pid)}*"):
        region.unlink(missing_ok=True)


def remove_traces(pid: int) -> None:
    """Remove all files of the server supervised by process `pid`; it must be dead."""
    remove_shared_memory(pid)
    shutil.rmtree(private_directory(pid), ignore_errors=True)


def remove_stale_traces() -> None:
    """Remove the files of this user's earlier servers whose supervisor was killed."""
    for pid in sorted(supervisors_on_disk()):
        if not is_alive(pid):
            remove_traces(pid)


def supervisors_on_disk() -> set[int]:
    """Return the supervisors of this user and pid namespace that files on disk are named after."""
    own_namespace = str(os.stat("/proc/self/ns/pid").st_ino)
    found = set()
    for folder in (SHARED_MEMORY, Path(tempfile.gettempdir())):
        for path in folder.glob("chattts-server-*"):
            match = _OWN_NAME.match(path.name)
            if match and match[1] == own_namespace and _owner(path) == os.geteuid():
                found.add(int(match[2]))
    return found


def _owner(path: Path) -> int | None:
    """Return the user id of a file's owner, None if its server has just removed it."""
    try:
        return path.stat().st_uid
    except FileNotFoundError:
        return None
