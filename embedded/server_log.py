"""Read the log of a tritonserver: why did it not start?"""

from __future__ import annotations

import re

_TAIL_LINES = 10
_REASON = re.compile(
    r"""^(?:E\d{4}\s.*?\]\s*"?(?P<server>.+?)"?"""
    r"""|\[libprotobuf\sERROR\s[^]]*\]\s*(?P<config>.+)"""
    r"""|(?P<loader>.*error\swhile\sloading\sshared\slibraries.*)"""
    r"""|error:\s(?P<fatal>.+))$""",
    re.VERBOSE,
)
_CRASH = re.compile(
    r"^terminate called|^Signal \(\d+\) received"
    r"|^supervisor: \S+ the server is killed: process \d+ ",
    re.MULTILINE,
)
_NO_VOICE = "chattts: warm-up failed: "
"""Written by the model `chattts`."""
_NOT_A_REASON = ("CudaDriverHelper has not been initialized", "ERROR: Failed to create instance")
_NOT_IN_TAIL = re.compile(r"\||\+--|I\d{4}\s.*\s(?:server|tritonserver|metrics)\.cc:\d+\]|\s*$")


def failure_reasons(log: str) -> list[str]:
    """Return the error messages of a server log in order, each once, line breaks restored."""
    found: dict[str, None] = {}
    for line in log.splitlines():
        match = _REASON.match(line)
        if match and not any(noise in line for noise in _NOT_A_REASON):
            message = next(group for group in match.groups() if group is not None)
            found[message.replace("\\n", "\n").strip()] = None
    return list(found)


def has_crashed(log: str) -> bool:
    """Whether the server ended by a fault of its own, not by refusing a model."""
    return _CRASH.search(log) is not None


def has_no_voice(log: str) -> bool:
    """Whether all models have loaded, but the first speech through them failed."""
    return _NO_VOICE in log


def explain_failure(log: str) -> str:
    """Return the reasons, one a line, and then the last lines of the log without its tables."""
    reasons = failure_reasons(log) or ["no error in its log"]
    lines = [line for line in log.splitlines() if not _NOT_IN_TAIL.match(line)]
    tail = [f"  {line}" for line in lines[-_TAIL_LINES:]]
    return "\n".join([*reasons, "last lines of its log:", *tail])
