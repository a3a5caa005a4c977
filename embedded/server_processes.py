"""The processes of a server: which there are, how they start, and how all of them end.

Only for a process with a single thread, which is their parent or adopts them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_REAP_LIMIT_S = 10.0
_REAP_POLL_S = 0.01


def is_alive(pid: int) -> bool:
    """Tell whether a process with this id runs; one that only waits to be reaped does not."""
    state = state_and_parent(pid)
    return state is not None and state[0] not in "ZX"


def children(parent: int) -> list[int]:
    """Return the children of a process, those that have ended and are not reaped too."""
    found = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    return [pid for pid in found if (state := state_and_parent(pid)) and state[1] == parent]


def state_and_parent(pid: int) -> tuple[str, int] | None:
    """Return state letter and parent of a process, None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
    except (OSError, ValueError):
        return None
    return state, int(parent)


def command_line(pid: int) -> list[str]:
    """Return the words of a process's command; none once it has ended."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return []
    return words.split("\0")[:-1]


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def start_server(
    command: Sequence[str],
    environment: Mapping[str, str],
    working_directory: str | None,
    log_file: str | None,
) -> subprocess.Popen[bytes]:
    """Start it in a session of its own, so that its stubs can be killed as a group.

    It gets SIGTERM when this process dies, however it dies.

    Args:
        command: program and arguments.
        environment: all of it.
        working_directory: None: this process's.
        log_file: gets stdout and stderr of server and stubs, appended; None: this process's.
    """
    with open(log_file, "ab") if log_file else contextlib.nullcontext() as log:
        return subprocess.Popen(
            command,
            cwd=working_directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT if log else None,
            start_new_session=True,
            # safe here: this process has one thread
            preexec_fn=lambda: _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),
        )


def reap_orphans(server: subprocess.Popen[bytes]) -> None:
    """Reap adopted processes that have ended, but not the server."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid == server.pid:
            return
        os.waitpid(ended.si_pid, 0)


def end_server(server: subprocess.Popen[bytes]) -> int:
    """Kill and reap it with all its descendants.

    Returns:
        Its exit code, 128 + N where signal N ended it.
    """
    os.killpg(server.pid, signal.SIGKILL)  # not reaped yet, so the id is still its own
    code = server.wait()
    deadline = time.monotonic() + _REAP_LIMIT_S
    while time.monotonic() < deadline:
        try:
            is_none_ready = os.waitpid(-1, os.WNOHANG) == (0, 0)
        except ChildProcessError:
            break
        if is_none_ready:
            for pid in children(os.getpid()):  # adopted, from sessions of their own
                os.kill(pid, signal.SIGKILL)
            time.sleep(_REAP_POLL_S)
    return code if code >= 0 else 128 - code


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")
