"""The stand-in for the onnxruntime backend, as the server runs it."""

from __future__ import annotations

import os

import psutil
from launcher import EmbeddedServer

VOCODER_NICE = 5
"""The parameter `nice` in chattts_vocoder/config.pbtxt."""


def own_priorities() -> dict[str, int]:
    """Return the niceness of each model's process below this one."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        command = process.cmdline()
        for model in ("chattts_gpt", "chattts_vocoder"):
            if "stub" in command[0] and any(model in argument for argument in command):
                found[model] = os.getpriority(os.PRIO_PROCESS, process.pid)
    return found


def test_the_vocoder_gives_way_to_the_token_model(tiny_server: EmbeddedServer) -> None:
    inherited = os.getpriority(os.PRIO_PROCESS, 0)
    assert own_priorities() == {
        "chattts_gpt": inherited,
        "chattts_vocoder": min(19, inherited + VOCODER_NICE),
    }
