"""The first speech: it waits for the models behind, and is refused if it cannot be speech."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import chattts_pipeline
import numpy as np
import pytest
from chattts_pipeline.errors import ServerNotReadyError, SpeechError
from chattts_pipeline.services import Caller
from chattts_pipeline.warm_up import LIMIT_S, WARM_UP_REQUEST, warm_up

STARTING = ServerNotReadyError()
LOADING = SpeechError("UNAVAILABLE", "chattts_gpt is not ready")
GOOD = [0.0, 0.5, -0.5]

Outcome = SpeechError | Sequence[float]


class Script:
    """Speaks with one outcome after the other, the last one for ever, and counts what it causes.

    A try takes a second of its own clock.
    """

    def __init__(self, *outcomes: Outcome, reason: str = "length", ends_after: int = 10**9) -> None:
        self.time_s = 0.0
        self.num_put_off = 0
        self.pauses: list[float] = []
        self._outcomes = list(outcomes)
        self._reason = reason
        self._ends_after = ends_after

    def speak(self, caller: Caller) -> None:
        self.time_s += 1
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(outcome, SpeechError):
            raise outcome
        assert not caller.is_cancelled()
        metadata = {"finish_reasons": [self._reason]}
        caller.send(np.array(outcome, np.float32), metadata, is_final=True)

    def put_off(self) -> None:
        self.num_put_off += 1

    def pause(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        self.time_s += seconds
        return len(self.pauses) > self._ends_after

    def run(self) -> bool:
        return warm_up(self.speak, self.put_off, self.pause, lambda: self.time_s)


def test_models_that_are_there_are_spoken_through_once() -> None:
    script = Script(GOOD, LOADING)
    assert script.run()
    assert (script.num_put_off, script.pauses) == (0, [])


def test_models_that_load_are_waited_for() -> None:
    script = Script(LOADING, LOADING, GOOD)
    assert script.run()
    assert (script.num_put_off, len(script.pauses)) == (0, 2)


def test_a_server_that_starts_gets_its_answer_before_the_speech() -> None:
    script = Script(STARTING, STARTING, GOOD)
    assert script.run()
    assert (script.num_put_off, len(script.pauses)) == (2, 2)


def test_waiting_has_a_limit() -> None:
    script = Script(LOADING)
    with pytest.raises(SpeechError, match="not ready after 150 s"):
        script.run()
    assert script.time_s == pytest.approx(LIMIT_S, abs=1.1)


def test_waiting_ends_with_the_front() -> None:
    script = Script(STARTING, ends_after=3)
    assert not script.run()


BROKEN: dict[str, tuple[Callable[[], Script], str]] = {
    "not a number": (lambda: Script([0.0, np.nan]), "not finite numbers"),
    "infinite": (lambda: Script([np.inf, 0.0]), "not finite numbers"),
    "too slow": (lambda: Script(GOOD, reason="deadline"), "ended by deadline"),
    "failing": (lambda: Script(SpeechError("INTERNAL", "chattts_vocoder: broken")), "broken"),
}


@pytest.mark.parametrize(("script", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_what_cannot_be_speech_is_refused(script: Callable[[], Script], message: str) -> None:
    with pytest.raises(SpeechError, match=message) as caught:
        script().run()
    assert caught.value.code == "INTERNAL"


def test_the_request_has_a_fixed_length() -> None:
    request: Any = WARM_UP_REQUEST
    assert request.min_new_tokens == request.max_new_tokens
    assert not request.stream


HANGS = """
import threading
from chattts_pipeline.warm_up import ending_where_hung

def wait_for_the_lost_answer():
    threading.Event().wait()

with ending_where_hung(0.1):
    wait_for_the_lost_answer()
"""


def test_a_speech_that_hangs_ends_its_process_and_shows_where() -> None:
    package = Path(chattts_pipeline.__file__).parent.parent
    child = subprocess.run(
        [sys.executable, "-c", HANGS],
        env={"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert child.returncode == 1
    assert "in wait_for_the_lost_answer" in child.stderr
