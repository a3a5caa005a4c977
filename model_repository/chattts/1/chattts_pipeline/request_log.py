"""RequestLog: one line of JSON per request for speech that has ended.

A line begins with PREFIX, whatever else is written to the same stream, and never holds what was
said, unless the operator wants that.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from .outcome import Outcome

EVENT = "chattts_request"
PREFIX = f'{{"event": "{EVENT}"'


class RequestLog:
    """Writes outcomes.

    Args:
        write: Takes one line with its end.
        facts: The last entries of every line.
        sampling: Share of the requests that ended OK that are written, 0 ... 1; others always are.
        has_text: Write the texts too.
        draw: Returns numbers in 0 <= x < 1.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        facts: Mapping[str, Any],
        sampling: float = 1.0,
        has_text: bool = False,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._write = write
        self._facts = facts
        self._sampling = sampling
        self._has_text = has_text
        self._draw = draw

    def take(self, outcome: Outcome) -> None:
        """Write one request that has ended."""
        if outcome.code == "OK" and self._draw() >= self._sampling:
            return
        entry = {**_entry(outcome), **self._facts}
        if self._has_text and outcome.request:
            entry["text"] = outcome.request.text
        self._write(json.dumps(entry, ensure_ascii=True) + "\n")


def _entry(outcome: Outcome) -> dict[str, Any]:
    request, progress, first = outcome.request, outcome.progress, outcome.first_audio_s
    return {
        "event": EVENT,
        "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        "id": outcome.request_id,
        "trace_id": outcome.trace_id,
        "code": outcome.code,
        "finish_reasons": list(progress.finish_reasons),
        "mode": outcome.mode if request else "",
        "priority": request.priority if request else None,
        "voice": progress.voice,
        "seed": progress.seed,
        "text_len": outcome.text_len,
        "tokens": progress.num_tokens,
        "audio_s": round(outcome.audio_s, 3),
        "latency_s": round(outcome.latency_s, 4),
        "first_audio_s": None if first is None else round(first, 4),
        "queue_ms": progress.queue_ms,
        "underrun_s": round(outcome.underrun_s, 4),
        "mean_batch": round(progress.mean_batch, 1),
        "warnings": sorted(set(progress.warnings)),
        "quality": list(progress.quality),
        "retried": progress.is_retried,
    }
