"""The small process between the launcher and tritonserver: nothing is left behind when either ends.

The launcher starts this file as a script and keeps the writing end of its standard input. The
first line is the job (JSON, see `Job`); a later "stop" line drains the server, "kill" ends it at
once, and end of file means that the launcher died, however it died: then the server is drained.
Standard output gets two lines: the server's process id and, when it has ended, its exit code.
Only after an order or end of file are the files removed, so that the log can be read until then.
Their names carry this process's id: a later start can tell what the dead left from what lives.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
STOP = b"stop\n"
KILL = b"kill\n"

_STDIN, _STDOUT = 0, 1
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_ORDER_BYTES = 64
_REAP_LIMIT_S = 10.0
_OWN_NAME = re.compile(r"chattts-server-(\d+)-(\d+)-")


@dataclass(frozen=True)
class Job:
    """What the launcher asks for."""

    command: list[str]
    """The server's command line."""
    environment: dict[str, str]
    """Its whole environment."""
    working_directory: str
    """An empty folder: the stubs import from it first."""
    log_file: str
    """Receives stdout and stderr of server and stubs, appended."""
    drain_limit_s: float
    """Seconds from SIGTERM to SIGKILL."""


def run_name(pid: int) -> str:
    """Return the prefix of everything that the server guarded by process `pid` leaves on disk.

    The pid namespace is part of it: where containers share /dev/shm, ids of one mean nothing in
    another.
    """
    namespace = os.stat("/proc/self/ns/pid").st_ino
    return f"chattts-server-{namespace}-{pid}-"


def private_directory(pid: int) -> Path:
    """Return the folder that holds the backends, the log and the empty working directory."""
    return Path(tempfile.gettempdir()) / f"{run_name(pid)}files"


def remove_shared_memory(pid: int) -> None:
    """Unlink the shared-memory regions of the server guarded by process `pid`."""
    for region in SHARED_MEMORY.glob(f"{run_name(pid)}*"):
        region.unlink(missing_ok=True)


def remove_traces(pid: int) -> None:
    """Remove all files of the server guarded by process `pid`; it must be dead."""
    remove_shared_memory(pid)
    shutil.rmtree(private_directory(pid), ignore_errors=True)


def remove_stale_traces() -> None:
    """Remove the files of this user's earlier servers whose guard was killed."""
    for pid in sorted(guard_pids_on_disk()):
        if not is_alive(pid):
            remove_traces(pid)


def guard_pids_on_disk() -> set[int]:
    """Return the guards of this user and pid namespace that files on disk are named after."""
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


def is_alive(pid: int) -> bool:
    """Tell whether a process with this id runs; one that only waits to be reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def _die_with_guard() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _start(job: Job) -> subprocess.Popen[bytes]:
    """Start the server in a session of its own, so that its stubs can be killed as a group."""
    with open(job.log_file, "ab") as log:
        return subprocess.Popen(
            job.command,
            cwd=job.working_directory,
            env=job.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # safe here: this process has one thread
            preexec_fn=_die_with_guard,
        )


def _signals_as_bytes() -> int:
    """Turn termination signals into bytes on a pipe; return its reading end."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reading


def _readable(descriptors: list[int], deadline: float | None) -> list[int]:
    """Wait for readable descriptors; return none of them when the deadline passed."""
    limit = None if deadline is None else max(0.0, deadline - time.monotonic())
    return select.select(descriptors, [], [], limit)[0]


def _wait_for_end(server: subprocess.Popen[bytes], drain_limit_s: float, signals: int) -> bool:
    """Wait until the server has ended, passing on orders; return whether there was one."""
    ended = os.pidfd_open(server.pid)
    watched = [ended, signals, _STDIN]
    deadline: float | None = None
    is_ordered = False
    while True:
        ready = _readable(watched, deadline)
        if ended in ready:
            return is_ordered
        orders = b"".join(os.read(fd, _ORDER_BYTES) for fd in ready)
        if _STDIN in ready and not orders:
            watched.remove(_STDIN)
        if KILL in orders or not ready:
            os.killpg(server.pid, signal.SIGKILL)
            deadline = None
        elif not is_ordered:
            server.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + drain_limit_s
        is_ordered = True


def _end_group(server: subprocess.Popen[bytes]) -> int:
    """Kill what is left of the server's session and reap it; return the server's exit code."""
    os.killpg(server.pid, signal.SIGKILL)  # not reaped yet, so the id is still its own
    code = server.wait()
    deadline = time.monotonic() + _REAP_LIMIT_S
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)
        except ChildProcessError:
            break
    return code


def _tell_launcher(number: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(_STDOUT, b"%d\n" % number)


def _serve(job: Job, signals: int) -> int:
    """Run the server until it ends and an order has come; return its exit code."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    server = _start(job)
    _tell_launcher(server.pid)
    is_ordered = _wait_for_end(server, job.drain_limit_s, signals)
    code = _end_group(server)
    remove_shared_memory(os.getpid())
    code = code if code >= 0 else 128 - code
    _tell_launcher(code)
    if not is_ordered:
        _readable([signals, _STDIN], None)
    return code


def main() -> int:
    """Serve one job; return the server's exit code, 128 + N where signal N ended it."""
    signals = _signals_as_bytes()
    try:
        with open(_STDIN, "rb", buffering=0, closefd=False) as orders:
            line = orders.readline()
        if line in (b"", STOP, KILL):
            return 0
        return _serve(Job(**json.loads(line)), signals)
    finally:
        remove_traces(os.getpid())


if __name__ == "__main__":
    sys.exit(main())
