"""One answer at once, spoken again if the first try has a fault that was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .audio import FloatArray
from .errors import SpeechError
from .outcome import Progress
from .segment import SpeechPlan, derive_seed
from .services import Caller, Services
from .speech import Speech

_RETRY_PASS = 1 << 32
"""Position of the second seed, beyond those of all segments."""
_DROPPED_SEED_BITS = 11
"""A seed of 53 bits survives JSON readers that hold numbers as float64."""


class _Held:
    """The caller of one try: keeps the answer."""

    def __init__(self, caller: Caller) -> None:
        self.is_cancelled = caller.is_cancelled
        self.samples: FloatArray = np.zeros(0, np.float32)
        self.metadata: Mapping[str, Any] = {}

    def send(self, samples: FloatArray, metadata: Mapping[str, Any], is_final: bool) -> None:
        """Take the one response."""
        self.samples, self.metadata = samples, metadata

    @property
    def num_faults(self) -> int:
        """Faults found; a try that ran into the deadline has more than any other."""
        is_cut_off = "deadline" in self.metadata["finish_reasons"]
        return len(self.metadata["quality"]) + 100 * is_cut_off


class RetriedSpeech:
    """Speaks one request of one response. Arguments and errors are those of Speech.

    The second try has a seed that follows from the first one's, so a request with a seed stays
    repeatable. It is sent if it has fewer faults.
    """

    def __init__(
        self,
        plan: SpeechPlan,
        services: Services,
        caller: Caller,
        final_metadata: Mapping[str, Any],
        received_at: float,
    ) -> None:
        self._plan = plan
        self._caller = caller
        self._services = services
        self._final_metadata = final_metadata
        self._received_at = received_at
        self._tries: list[Speech] = []
        self._kept = 0

    def run(self) -> None:
        """See Speech."""
        first = self._speak(self._plan)
        faults = first.metadata["quality"]
        if not faults or "deadline" in first.metadata["finish_reasons"]:
            self._caller.send(first.samples, first.metadata, True)
            return
        seed = derive_seed(self._plan.seed, _RETRY_PASS) >> _DROPPED_SEED_BITS
        retry: dict[str, Any] = {"seed": seed, "first": faults, "second": None, "kept": "first"}
        kept = first
        try:
            # the wait in the queue had its deadline in the first try
            request = replace(self._plan.request, queue_deadline_ms=0)
            second = self._speak(replace(self._plan, request=request, seed=seed))
        except SpeechError as error:
            if error.code == "CANCELLED":
                raise
        else:
            retry["second"] = second.metadata["quality"]
            if second.num_faults < first.num_faults:
                retry["kept"], kept, self._kept = "second", second, 1
        metadata = {**kept.metadata, "seed": self._plan.seed, "quality_retry": retry}
        metadata["timings"] = {**kept.metadata["timings"], **self._tries[-1].elapsed()}
        self._caller.send(kept.samples, metadata, True)

    def drain(self) -> None:
        """See Speech."""
        for one in self._tries:
            one.drain()

    def progress(self) -> Progress:
        """See Speech."""
        all_progress = [one.progress() for one in self._tries] or [Progress()]
        return replace(
            all_progress[min(self._kept, len(all_progress) - 1)],
            seed=self._plan.seed,
            num_tokens=sum(progress.num_tokens for progress in all_progress),
            is_retried=len(all_progress) > 1,
        )

    def _speak(self, plan: SpeechPlan) -> _Held:
        held = _Held(self._caller)
        speech = Speech(plan, self._services, held, self._final_metadata, self._received_at)
        self._tries.append(speech)
        speech.run()
        return held
