"""The first speech of a front: a short text through the models behind it, judged by ourselves.

Knows no Triton.
"""

import faulthandler
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from .audio import FloatArray
from .errors import ServerNotReadyError, SpeechError
from .request import SpeechRequest
from .services import Caller

WARM_UP_STEPS = 24
"""Length of the speech: enough to run the vocoder, a fifth of a second at full size."""

LIMIT_S = 150.0
"""How long the models behind may take to become ready, and then to speak: a little longer than the
120 s that a Python model may take to load (stub-timeout-seconds)."""

HANG_S = LIMIT_S + 10
"""A try that takes longer hangs: a call between two models was lost, and its deadline with it."""

RETRY_S = 0.05
"""Pause between two tries."""

WARM_UP_REQUEST = SpeechRequest(
    text="hello",
    min_new_tokens=WARM_UP_STEPS,
    max_new_tokens=WARM_UP_STEPS,
    seed=0,
    stream=False,
    deadline_ms=int(LIMIT_S * 1000),
)
"""What is spoken, in the default voice."""


@contextmanager
def ending_where_hung(limit_s: float = HANG_S) -> Iterator[None]:
    """End this process, with the stacks of its threads on stderr, if the work takes too long.

    The supervisor sees a process that has died, and starts the server again; one that waits for
    ever it would give 15 minutes.
    """
    faulthandler.dump_traceback_later(limit_s, exit=True, file=sys.__stderr__ or 2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


class Listener:
    """The caller of the warm-up: hears the speech and judges it."""

    def __init__(self) -> None:
        self._samples = np.zeros(0, np.float32)
        self._finish_reasons: list[str] = []

    def is_cancelled(self) -> bool:
        """Never."""
        return False

    def send(self, samples: FloatArray, metadata: Mapping[str, Any], is_final: bool) -> None:
        """Take the one response."""
        self._samples = samples
        self._finish_reasons = metadata["finish_reasons"]

    def judge(self) -> None:
        """Check that what was heard can be speech.

        Raises:
            SpeechError: It did not run to its end, or holds a number that is not finite.
        """
        if self._finish_reasons != ["length"]:
            reasons = ", ".join(self._finish_reasons)
            raise SpeechError("INTERNAL", f"ended by {reasons}, not by its length")
        if not np.isfinite(self._samples).all():
            raise SpeechError("INTERNAL", "the vocoder's samples are not finite numbers")


def warm_up(
    speak: Callable[[Caller], None],
    put_off: Callable[[], None],
    pause: Callable[[float], bool],
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Speak once, as soon as the models behind can.

    Args:
        speak: Speaks WARM_UP_REQUEST to the given caller; raises SpeechError.
        put_off: Called when the server is starting: it takes no calls between its models before all
            of them say that they are ready, this one too.
        pause: Waits for some seconds; says whether to give up.
        clock: Monotonic time in seconds.

    Returns:
        False if `pause` said so.

    Raises:
        SpeechError: The models cannot speak, or are not there in time.
    """
    give_up_at = clock() + LIMIT_S
    while clock() < give_up_at:
        listener = Listener()
        try:
            speak(listener)
        except ServerNotReadyError:
            put_off()
        except SpeechError as error:
            if error.code != "UNAVAILABLE":
                raise
        else:
            listener.judge()
            return True
        if pause(RETRY_S):
            return False
    raise SpeechError("UNAVAILABLE", f"the models behind were not ready after {LIMIT_S:g} s")
