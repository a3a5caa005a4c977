"""What one request for speech came to: kept while it runs, handed over as a whole at its end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .quality import Reason
from .request import SpeechRequest

NO_FINISH_REASON = "none"

# From good to bad; what is not here has not ended by itself.
_FINISH_REASONS = ("eos", "length", "deadline")

# W3C Trace Context: version, trace id, id of the caller's span, flags.
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the speaking of a request has come."""

    voice: str = ""
    """Who speaks."""
    seed: int | None = None
    """None: not planned yet."""
    finish_reasons: tuple[str, ...] = ()
    """Of the segments; empty where one has not ended."""
    num_tokens: int = 0
    """Steps of audio codes that the token model made for it, retries included."""
    mean_batch: float = 0.0
    """Sequences that the token model decoded together, on average over the tokens."""
    queue_ms: int = 0
    """Milliseconds that the first segment waited in the token model."""
    warnings: tuple[str, ...] = ()
    """Codes."""
    quality: tuple[Reason, ...] = ()
    """Faults found in the segments that have ended."""
    is_retried: bool = False
    """It was spoken twice, because of faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One request for speech that has ended."""

    request_id: str
    """The caller's name for it, or a drawn one."""
    trace_id: str
    """Of the caller's trace, 32 hexadecimal digits; empty: none was sent."""
    code: str
    """OK or the error code."""
    request: SpeechRequest | None
    """What was asked; None: it could not be read."""
    progress: Progress
    """How far it was spoken."""
    latency_s: float
    """Seconds from its arrival to its end."""
    first_audio_s: float | None
    """Seconds from its arrival until the first audio was sent; None: none was."""
    audio_s: float
    """Seconds of audio sent."""
    gaps_s: tuple[float, ...]
    """Seconds between pieces of a stream."""
    underrun_s: float
    """Seconds that a listener who began with the first piece would have waited in all."""

    @property
    def mode(self) -> str:
        """One of stream and unary; unary too where it could not be read."""
        return "stream" if self.request and self.request.stream else "unary"

    @property
    def text_len(self) -> int:
        """Characters of the text, as far as known."""
        return len(self.request.text) if self.request else 0

    @property
    def finish_reason(self) -> str:
        """The worst of its segments, of a request that ended OK; or "none"."""
        reasons = self.progress.finish_reasons if self.code == "OK" else ()
        known = [reason for reason in reasons if reason in _FINISH_REASONS]
        return max(known, key=_FINISH_REASONS.index, default=NO_FINISH_REASON)


@dataclass(slots=True)
class RequestRecord:
    """One request for speech from its arrival to its end. One thread at a time."""

    request_id: str
    """The caller's name for it, or a drawn one."""
    trace_id: str
    """Of the caller's trace; empty: none."""
    sample_rate: int
    """Hz."""
    on_end: Callable[[Outcome], None]
    """Takes what it came to, once."""
    received_at: float
    """Monotonic time in seconds."""
    clock: Callable[[], float] = time.monotonic
    """Monotonic seconds."""
    request: SpeechRequest | None = None
    """What was asked, as soon as it is read."""
    progress: Callable[[], Progress] = Progress
    """Says how far it is spoken."""
    _first_sent_at: float | None = None
    _last_sent_at: float = 0.0
    _played_until: float = 0.0
    _audio_s: float = 0.0
    _underrun_s: float = 0.0
    _gaps_s: list[float] = field(default_factory=list)
    _has_ended: bool = False

    def has_sent(self, num_samples: int) -> None:
        """Take note of a piece that was sent just now.

        Args:
            num_samples: Its samples; none: it is no audio.
        """
        if not num_samples:
            return
        now = self.clock()
        if self._first_sent_at is None:
            self._first_sent_at = self._played_until = now
        else:
            self._gaps_s.append(now - self._last_sent_at)
        self._underrun_s += max(0.0, now - self._played_until)
        self._played_until = max(now, self._played_until) + num_samples / self.sample_rate
        self._last_sent_at = now
        self._audio_s += num_samples / self.sample_rate

    def end(self, code: str) -> None:
        """Hand over what it came to; only the first end counts.

        Args:
            code: OK or the error code.
        """
        if self._has_ended:
            return
        self._has_ended = True
        # The speech knows its caller, who knows this record: a cycle would keep its audio until
        # Python looks for cycles.
        progress, self.progress = self.progress(), Progress
        first = self._first_sent_at
        self.on_end(
            Outcome(
                request_id=self.request_id,
                trace_id=self.trace_id,
                code=code,
                request=self.request,
                progress=progress,
                latency_s=self.clock() - self.received_at,
                first_audio_s=None if first is None else first - self.received_at,
                audio_s=self._audio_s,
                gaps_s=tuple(self._gaps_s),
                underrun_s=self._underrun_s,
            )
        )


def trace_id(traceparent: object) -> str:
    """Return the trace id of a W3C `traceparent`; empty where it is none."""
    found = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    return found[1] if found and set(found[1]) != {"0"} else ""
