"""The health check asks both models, and one that does not answer costs nobody else a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from chattts_pipeline.audio import FloatArray
from chattts_pipeline.errors import SpeechError
from chattts_pipeline.health import MAX_CHECKS, Health
from chattts_pipeline.services import Tensors, TokenChunk
from chattts_pipeline.streaming import VocoderChunk, VocoderSizes

DEADLINE_S = 10.0
SIZES = VocoderSizes(context_steps=3, samples_per_step=4, hidden_size=2, state_size=5)


class FakeTokens:
    def __init__(self) -> None:
        self.asked = 0
        self.answers = threading.Event()
        self.answers.set()

    def generate(self, inputs: Tensors) -> Iterator[TokenChunk]:
        raise AssertionError("a health check generates nothing")

    def cancel(self, request_id: str) -> None:
        self.asked += 1
        assert self.answers.wait(DEADLINE_S)


class FakeVocoder:
    def __init__(self) -> None:
        self.error: SpeechError | None = None
        self.chunks: list[VocoderChunk] = []

    def decode(self, chunk: VocoderChunk) -> tuple[FloatArray, FloatArray]:
        self.chunks.append(chunk)
        if self.error:
            raise self.error
        return np.zeros(len(chunk.mask) * SIZES.samples_per_step, np.float32), chunk.state


def checked(health: Health) -> SpeechError | None:
    """Run one check; return what it failed with."""
    results: queue.Queue[SpeechError | None] = queue.Queue()

    def check() -> None:
        try:
            health.ask()
        except SpeechError as error:
            results.put(error)
        else:
            results.put(None)

    health.submit(check)
    return results.get(timeout=DEADLINE_S)


def test_both_models_are_asked_for_nothing_much() -> None:
    tokens, vocoder = FakeTokens(), FakeVocoder()
    health = Health(tokens, vocoder, SIZES)
    assert checked(health) is None
    health.close()
    assert tokens.asked == 1
    (chunk,) = vocoder.chunks
    assert chunk.hidden.shape == (SIZES.chunk_steps, 2)
    assert not chunk.mask.any()
    assert chunk.state.shape == (5,)


def test_a_failing_model_fails_the_check_and_the_next_one_is_made() -> None:
    vocoder = FakeVocoder()
    health = Health(FakeTokens(), vocoder, SIZES)
    vocoder.error = SpeechError("INTERNAL", "broken")
    assert checked(health) is vocoder.error
    vocoder.error = None
    assert checked(health) is None
    health.close()


def test_checks_that_wait_for_a_silent_model_are_bounded() -> None:
    tokens = FakeTokens()
    tokens.answers.clear()
    health = Health(tokens, FakeVocoder(), SIZES)
    for _ in range(MAX_CHECKS):
        health.submit(health.ask)
    with pytest.raises(SpeechError, match="wait for a model") as refused:
        health.submit(health.ask)
    assert refused.value.code == "UNAVAILABLE"
    tokens.answers.set()
    health.close()
    assert tokens.asked == MAX_CHECKS
