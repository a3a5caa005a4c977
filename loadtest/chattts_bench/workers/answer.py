"""The child's half of the benchmark's protocol: one JSON command a line in, one JSON answer out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

Command = Callable[..., Mapping[str, Any]]


def answer(commands: Mapping[str, Command]) -> None:
    """Answer commands from standard input until it ends.

    A line is `{"command": NAME, ...}`; the other keys are the command's keyword arguments.
    Standard output is kept for answers: what libraries print goes to standard error.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        arguments = json.loads(line)
        reply = commands[arguments.pop("command")](**arguments)
        answers.write(json.dumps(reply) + "\n")
        answers.flush()
