"""Do the models behind the front answer? Found out by asking them, one check at a time.

Knows no Triton. A model whose process hangs never answers, and the thread that has asked it waits
for ever: so the checks have a thread of their own, and few of them may wait for it.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .errors import SpeechError
from .services import TokenModel, Vocoder
from .streaming import VocoderChunk, VocoderSizes

MAX_CHECKS = 8
"""Checks that run or wait: more than the supervisor, the container and a person ask at once."""
NO_REQUEST = "health-check"
"""Id that no request of the token model has."""


class Health:
    """Checks on the token model and the vocoder.

    Args:
        tokens: The token model.
        vocoder: The vocoder.
        sizes: Of the vocoder's tensors.
    """

    def __init__(self, tokens: TokenModel, vocoder: Vocoder, sizes: VocoderSizes) -> None:
        self._tokens = tokens
        self._vocoder = vocoder
        self._sizes = sizes
        self._thread = ThreadPoolExecutor(1, "health")
        self._free = threading.Semaphore(MAX_CHECKS)

    def submit(self, check: Callable[[], None]) -> None:
        """Run `check`, which calls `ask` and answers, on the thread for it.

        Raises:
            SpeechError: UNAVAILABLE; too many checks have not ended.
        """
        if not self._free.acquire(blocking=False):
            raise SpeechError("UNAVAILABLE", f"{MAX_CHECKS} health checks wait for a model")
        self._thread.submit(self._run, check)

    def ask(self) -> None:
        """Make each model behind do as little as it can: cancel nothing, decode silence.

        Raises:
            SpeechError: One of them has failed.
        """
        sizes = self._sizes
        self._tokens.cancel(NO_REQUEST)
        self._vocoder.decode(
            VocoderChunk(
                hidden=np.zeros((sizes.chunk_steps, sizes.hidden_size), np.float32),
                mask=np.zeros(sizes.chunk_steps, np.float32),
                state=np.zeros(sizes.state_size, np.float32),
            )
        )

    def close(self) -> None:
        """Wait for the check that runs."""
        self._thread.shutdown(wait=True)

    def _run(self, check: Callable[[], None]) -> None:
        try:
            check()
        finally:
            self._free.release()
