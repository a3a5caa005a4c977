"""One request being spoken: segments through the token model, chunks through the vocoder.

Knows no Triton. One thread runs `Speech.run`; each segment that is in the token model has a reader
thread, and all of them put their chunks into one queue. At most `parallel_segments` segments are
started and not yet spoken, so what is buffered is bounded by their steps; a segment starts when the
one before has its first chunk, so at most one call per request waits for a slot of the token model.
"""

import contextlib
import queue
import time
from collections.abc import Mapping
from concurrent.futures import wait
from typing import Any

import numpy as np

from .audio import FloatArray
from .errors import SpeechError
from .low_latency import LowLatencyStream
from .outcome import Progress
from .pacing import Pace
from .quality import Reason, joined
from .segment import Segment, SpeechPlan
from .services import Caller, Services, TokenChunk
from .streaming import AudioStream, SegmentStream, VocoderChunk

CANCEL_REPEAT_S = 0.5
"""How often a cancel is sent again: one may overtake the call that it is meant for."""


class Speech:
    """Speaks one request.

    Args:
        plan: What to speak.
        services: Models and threads.
        caller: Who gets the audio.
        final_metadata: Entries of the final response that no request changes.
        received_at: Monotonic time in seconds from which deadline and timings count.
    """

    def __init__(
        self,
        plan: SpeechPlan,
        services: Services,
        caller: Caller,
        final_metadata: Mapping[str, Any],
        received_at: float,
    ) -> None:
        def expiry(milliseconds: int) -> float | None:
            return received_at + milliseconds / 1000 if milliseconds else None

        expires_at = expiry(plan.request.deadline_ms)
        self._plan = plan
        self._services = services
        self._pace = Pace(
            services.low_latency,
            services.vocoder_sizes,
            services.sample_rate,
            speed=plan.request.options.speed,
        )
        self._segments = [
            Segment(plan, index, services, self._new_stream(), expires_at)
            for index in range(len(plan.segments))
        ]
        for segment in self._segments[:1]:
            segment.queue_expires_at = expiry(plan.request.queue_deadline_ms)
        self._caller = caller
        self._final_metadata = final_metadata
        self._received_at = received_at
        self._first_audio_at: float | None = None
        self._events: queue.SimpleQueue[tuple[Segment, TokenChunk | Exception]]
        self._events = queue.SimpleQueue()
        self._num_started = 0
        self._num_samples = 0
        self._unsent: list[FloatArray] = []
        self._has_finished = False
        self._faults: tuple[Reason, ...] | None = None

    def run(self) -> None:
        """Speak until the final response is sent.

        Raises:
            SpeechError: The request failed or its caller has gone; no final response was sent.
        """
        try:
            for segment in self._segments:
                self._start_segments(segment.index)
                while not self._speak(segment):
                    self._wait_for_events()
                    self._start_segments(segment.index)
            if not self._has_finished:
                last = max(0, len(self._segments) - 1)
                self._deliver(np.zeros(0, np.float32), last, is_final=True)
        finally:
            if not self._has_finished:
                self._stop()

    def drain(self) -> None:
        """Wait until no reader thread works for this request any more."""
        readers = {segment.reader for segment in self._segments if segment.reader}
        while wait(readers, timeout=CANCEL_REPEAT_S).not_done:
            self._stop()

    def progress(self) -> Progress:
        """Return how far it is spoken."""
        num_tokens = [segment.stream.num_steps for segment in self._segments]
        mean_batches = [segment.mean_batch for segment in self._segments]
        return Progress(
            voice=self._plan.voice.name,
            seed=self._plan.seed,
            finish_reasons=tuple(segment.finish_reason for segment in self._segments),
            num_tokens=sum(num_tokens),
            mean_batch=float(np.dot(num_tokens, mean_batches)) / max(1, sum(num_tokens)),
            queue_ms=self._queue_ms,
            warnings=tuple(str(warning["code"]) for warning in self._warnings()),
            quality=self._find_faults() if self._faults is None else self._faults,
        )

    def elapsed(self) -> dict[str, float | None]:
        """Return the milliseconds from the request to its first audio, and until now."""
        first = self._first_audio_at
        return {
            "first_audio_ms": None if first is None else self._ms_since(self._received_at, first),
            "total_ms": self._ms_since(self._received_at, time.monotonic()),
        }

    def _new_stream(self) -> AudioStream:
        sizes = self._services.vocoder_sizes
        if self._plan.request.effective_latency == "low":
            return LowLatencyStream(sizes, self._services.low_latency, self._pace)
        return SegmentStream(sizes)

    def _stop(self) -> None:
        for segment in self._segments:
            segment.stop()

    def _start_segments(self, current: int) -> None:
        most = min(len(self._segments), current + self._services.parallel_segments)
        while self._num_started < most:
            if self._num_started and not self._may_follow(self._segments[self._num_started - 1]):
                return
            self._start(self._num_started)
            self._num_started += 1

    def _may_follow(self, before: Segment) -> bool:
        """Say whether the segment after one may start."""
        has_prompt = not self._plan.request.options.carry_over or self._segments[0].finish_reason
        return bool(before.has_begun and has_prompt)

    def _start(self, index: int) -> None:
        segment = self._segments[index]
        # Also if only the wait for the first segment's slot had a deadline.
        segment.is_late = index > 0 and self._segments[index - 1].finish_reason == "deadline"
        if index and self._plan.request.options.carry_over and not segment.is_late:
            segment.audio_prompt = self._segments[0].carry_over()

        def put(event: TokenChunk | Exception) -> None:
            self._events.put((segment, event))

        segment.reader = self._services.readers.submit(segment.read, put)

    def _wait_for_events(self) -> None:
        """Take over what has come, or wait a moment for it: a pace may ask for less by then."""
        self._check_caller()
        timeout_s = self._services.cancel_poll_s()
        with contextlib.suppress(queue.Empty):
            while True:
                segment, event = self._events.get(timeout=timeout_s)
                if isinstance(event, Exception):
                    raise event
                segment.accept(event)
                timeout_s = 0.0

    def _check_caller(self) -> None:
        if self._caller.is_cancelled():
            raise SpeechError("CANCELLED", "the caller cancelled the request")

    def _speak(self, segment: Segment) -> bool:
        """Vocode and deliver what is due; say whether the segment is spoken to its end."""
        stream, is_last_segment = segment.stream, segment.index == len(self._segments) - 1
        while chunk := stream.next_chunk(has_ended=bool(segment.finish_reason)):
            samples = stream.accept(*self._vocode(chunk))
            segment.quality.push(samples)
            end = segment.finish_reason if stream.is_complete else ""
            samples = segment.shape.push(samples, end)
            if len(samples):
                self._deliver(samples, segment.index, is_final=bool(end) and is_last_segment)
        return bool(segment.finish_reason)

    def _vocode(self, chunk: VocoderChunk) -> tuple[FloatArray, FloatArray]:
        started_at = time.monotonic()
        audio, next_state = self._services.vocoder.decode(chunk)
        self._pace.add_call(time.monotonic() - started_at)
        expected = len(chunk.mask) * self._services.vocoder_sizes.samples_per_step
        if audio.shape != (expected,):
            raise SpeechError("INTERNAL", f"vocoder: {audio.shape} samples, not ({expected},)")
        return audio, next_state

    def _deliver(self, samples: FloatArray, segment_index: int, is_final: bool) -> None:
        self._num_samples += len(samples)
        if not self._plan.request.stream:
            self._unsent.append(samples)
            if not is_final:
                return
            samples = np.concatenate(self._unsent)
        self._check_caller()
        if self._first_audio_at is None and len(samples):
            self._first_audio_at = time.monotonic()
        self._has_finished = is_final
        self._caller.send(samples, self._metadata(segment_index, is_final), is_final)
        self._pace.add_sent(len(samples))

    def _metadata(self, segment_index: int, is_final: bool) -> dict[str, Any]:
        metadata = {
            "request_id": self._plan.request_id,
            "segment_index": segment_index,
            "num_segments": len(self._segments),
            "seed": self._plan.seed,
        }
        return metadata | self._summary() if is_final else metadata

    def _summary(self) -> dict[str, Any]:
        options = self._plan.request.options
        self._faults = self._find_faults()
        trimmed_ms = [segment.shape.trimmed_ms for segment in self._segments]
        return {
            "finish_reasons": [segment.finish_reason for segment in self._segments],
            "voice": self._plan.voice.name,
            "text_segments": [segment.text for segment in self._segments],
            "warnings": self._warnings(),
            "quality": list(self._faults),
            "timings": self._timings(),
            "latency": self._plan.request.effective_latency,
            "speed": options.speed,
            "retries": [segment.num_retries for segment in self._segments],
            **({"trimmed_ms": trimmed_ms} if options.trim else {}),
            **self._final_metadata,
        }

    def _timings(self) -> dict[str, float | None]:
        return {
            "queue_ms": self._queue_ms,
            **self.elapsed(),
            "audio_s": round(self._num_samples / self._services.sample_rate, 3),
        }

    @property
    def _queue_ms(self) -> int:
        return self._segments[0].queue_ms if self._segments else 0

    def _find_faults(self) -> tuple[Reason, ...]:
        return joined([segment.faults() for segment in self._segments])

    def _warnings(self) -> list[dict[str, Any]]:
        refine_warnings = [warning for segment in self._segments for warning in segment.warnings]
        return [*self._plan.warnings, *refine_warnings]

    @staticmethod
    def _ms_since(start: float, end: float) -> float:
        return round((end - start) * 1000, 1)
