"""One request of the pipeline, the models around it scripted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
from chattts_pipeline.errors import SpeechError
from chattts_pipeline.pacing import LowLatency
from chattts_pipeline.request import SpeechRequest
from chattts_pipeline.segment import SpeechPlan
from chattts_pipeline.services import Services, Tensors, TokenChunk
from chattts_pipeline.speech import Speech
from chattts_pipeline.streaming import VocoderChunk, VocoderSizes
from chattts_text import Segment as TextSegment
from chattts_voices import Voice

Array = np.ndarray[Any, Any]
P = 4
RATE = P * 100
CONTEXT_STEPS = 3
CHUNK_STEPS = 4
DEADLINE_S = 10.0
NO_HIDDEN = np.zeros((0, 0), np.float32)
NO_CODES = np.zeros((0, 4), np.int32)


def chunk(
    steps: Sequence[float] = (), reason: str = "", ids: Sequence[int] = (), num_retries: int = 0
) -> TokenChunk:
    hidden = np.array(steps, np.float32)[:, None] if steps else NO_HIDDEN
    codes = np.repeat(hidden.astype(np.int32) % 625, 4, axis=1) if steps else NO_CODES
    return TokenChunk(hidden, codes, np.array(ids, np.int32), reason, 3, num_retries, 2.0)


def steps(segment: int, num_steps: int = 40) -> list[float]:
    return [segment * 1000.0 + step for step in range(num_steps)]


def samples(values: Sequence[float]) -> Array:
    return np.repeat(np.array(values, np.float32), P)[: P * len(values) - P // 2]


class FakeTokens:
    """Plays a script per prompt text; a cancelled request ends with "cancelled"."""

    def __init__(self, scripts: Mapping[str, Sequence[TokenChunk | Exception]]) -> None:
        self.scripts = scripts
        self.requests: list[dict[str, Any]] = []
        self.cancelled: list[str] = []
        self.running = 0
        self.most_running = 0
        self.holding = threading.Event()
        self.released = threading.Event()
        self.released.set()
        self._lock = threading.Lock()

    def generate(self, inputs: Tensors) -> Iterator[TokenChunk]:
        request = {name: array[0] if len(array) == 1 else array for name, array in inputs.items()}
        prompt = request["prompt"].decode()
        with self._lock:
            self.requests.append(request)
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        try:
            for event in next(self.scripts[key] for key in self.scripts if key in prompt):
                if not self.released.is_set():
                    self.holding.set()
                    self.released.wait(DEADLINE_S)
                if request["id"].decode() in self.cancelled:
                    yield chunk(reason="cancelled")
                    return
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            with self._lock:
                self.running -= 1

    def cancel(self, request_id: str) -> None:
        self.cancelled.append(request_id)
        self.released.set()


class FakeVocoder:
    """Repeats each step's value P times, R steps late; its state is the steps to come."""

    error: SpeechError | None = None

    def decode(self, chunk: VocoderChunk) -> tuple[Array, Array]:
        if self.error:
            raise self.error
        steps = np.concatenate([chunk.state, chunk.hidden[:, 0]])
        return np.repeat(steps[:-CONTEXT_STEPS], P), steps[-CONTEXT_STEPS:]


class FakeCaller:
    def __init__(self) -> None:
        self.pieces: list[Array] = []
        self.metadata: list[dict[str, Any]] = []
        self.finals: list[bool] = []
        self.has_gone = False

    def is_cancelled(self) -> bool:
        assert True not in self.finals, "looked after the final response"
        return self.has_gone

    def send(self, samples: Array, metadata: Mapping[str, Any], is_final: bool) -> None:
        self.pieces.append(samples)
        self.metadata.append(dict(metadata))
        self.finals.append(is_final)

    @property
    def audio(self) -> Array:
        return np.concatenate(self.pieces)


class Stage:
    """One request and the models around it."""

    def __init__(self, scripts: Mapping[str, Sequence[TokenChunk | Exception]]) -> None:
        self.tokens = FakeTokens(scripts)
        self.vocoder = FakeVocoder()
        self.caller = FakeCaller()
        self.parallel_segments = 2
        self.pauses_ms: Sequence[int] = ()
        """Of the first segments."""
        self.readers = ThreadPoolExecutor(8)

    def speech(self, *texts: str, voice: Voice | None = None, **fields: Any) -> Speech:
        plan = SpeechPlan(
            request=SpeechRequest(text=" ".join(texts), **fields),
            segments=tuple(
                TextSegment(text, 0, 0, 0.0, pause_ms)
                for text, pause_ms in zip_longest(texts, self.pauses_ms, fillvalue=0)
            ),
            voice=voice or Voice(""),
            seed=7,
            request_id="mine",
            speech_id="unique",
        )
        services = Services(
            self.tokens,
            self.vocoder,
            self.readers,
            VocoderSizes(CONTEXT_STEPS, P, 1, CONTEXT_STEPS, CHUNK_STEPS),
            lambda ids: " ".join(f"w{index}" for index in ids),
            self.parallel_segments,
            sample_rate=RATE,
            low_latency=LowLatency(lookahead_steps=2, first_steps=4),
            cancel_poll_s=lambda: 0.01,
        )
        return Speech(plan, services, self.caller, {"model_version": "1"}, time.monotonic())

    def speak(self, *texts: str, **fields: Any) -> FakeCaller:
        speech = self.speech(*texts, **fields)
        try:
            speech.run()
        finally:
            speech.drain()
        assert self.tokens.running == 0
        return self.caller

    def error(self, *texts: str, **fields: Any) -> SpeechError:
        with pytest.raises(SpeechError) as caught:
            self.speak(*texts, **fields)
        assert True not in self.caller.finals
        return caught.value


def script(segment: int, num_steps: int = 40, reason: str = "eos") -> list[TokenChunk]:
    values = steps(segment, num_steps)
    parts = [values[start : start + 6] for start in range(0, num_steps, 6)]
    return [*(chunk(part) for part in parts), chunk(reason=reason)]
