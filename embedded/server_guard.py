"""The small process between the launcher and tritonserver: nothing is left behind when either ends.

The launcher starts this file as a script and keeps the writing end of its standard input. The
first line is the job (JSON, see `supervisor.Job`); a later "stop" line drains the server, "kill"
ends it at once, and end of file means that the launcher died, however it died: then the server is
drained. Standard output gets a line "started PID" at each start of the server, "well PID" when it
has been found well, and at last "ended CODE". Only after an order or end of file are the files
removed, so that the log can be read until then.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

from server_traces import remove_traces
from supervisor import KILL, STOP, Job, Orders, Supervisor

INTERPRETER_OPTIONS = ("-E", "-s", "-S")
"""For starting this file: nothing but the standard library and the files beside it."""
ENDED = "ended"

_STDIN, _STDOUT = 0, 1


def _tell_launcher(what: str, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(_STDOUT, f"{what} {number}\n".encode())


def _serve(job: Job, orders: Orders) -> int:
    """Serve until an order has come; return the server's exit code."""
    supervisor = Supervisor(job, orders, _tell_launcher)
    code = supervisor.run()
    _tell_launcher(ENDED, code)
    if not supervisor.is_ordered:
        orders.wait([], None)
    return code


def main() -> int:
    """Serve one job; return the server's exit code, 128 + N where signal N ended it."""
    orders = Orders([_STDIN])
    try:
        with open(_STDIN, "rb", buffering=0, closefd=False) as lines:
            line = lines.readline()
        if line in (b"", STOP, KILL):
            return 0
        return _serve(Job(**json.loads(line)), orders)
    finally:
        remove_traces(os.getpid())


if __name__ == "__main__":
    sys.exit(main())
