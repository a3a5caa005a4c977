"""Streamed chunks give the one-shot waveform bit for bit, with the real graph of golden/tiny."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import golden
import numpy as np
import onnxruntime
import pytest
import selfcheck
from chattts_bench.lookahead import speak_segment
from chattts_pipeline.streaming import CHUNK_STEPS, SegmentStream, VocoderSizes
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]
P = 512
HIDDEN: Array = golden.TINY_ARRAYS["long_hidden"]
PUBLISHED = VocoderSizes(52, P, 2, 3)
LONG_HIDDEN = np.resize(HIDDEN, (2000, HIDDEN.shape[1]))
WHOLE = 10_000
"""More steps than any segment here: the graph is called once."""


@pytest.fixture(scope="module")
def session(tiny_repository: Path) -> Any:
    path = tiny_repository / "chattts_vocoder/1/model.onnx"
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def sizes(tiny_repository: Path) -> VocoderSizes:
    facts = json.loads((tiny_repository / "chattts/1/weights/checkpoint.json").read_text())
    width, state_size = HIDDEN.shape[1], facts["vocoder_state_size"]
    return VocoderSizes(facts["context_steps"], P, width, state_size)


def stream(hidden: Array, arrivals: list[int], sizes: VocoderSizes, session: Any) -> list[Array]:
    """Speak `hidden` that arrives in the given portions; return the pieces that are not empty."""
    segment = SegmentStream(sizes)
    spoken = speak_segment(segment, session, hidden, arrivals)
    assert segment.is_complete
    assert segment.next_chunk(has_ended=True) is None
    return list(spoken.pieces)


def test_the_streamed_waveform_is_the_golden_one(session: Any, sizes: VocoderSizes) -> None:
    pieces = stream(HIDDEN, [5] * 40, sizes, session)
    golden.assert_close(np.concatenate(pieces), golden.TINY_ARRAYS["long_wav"])


@pytest.mark.parametrize("num_steps", [*range(1, 34), 63, 64, 65])
def test_any_length_streams_to_the_bits_of_its_one_shot_waveform(
    session: Any, sizes: VocoderSizes, num_steps: int
) -> None:
    hidden = HIDDEN[:num_steps]
    streamed = np.concatenate(stream(hidden, [1] * num_steps, sizes, session))
    assert streamed.shape == (sizes.total_samples(num_steps),)
    assert streamed.tobytes() == selfcheck.run_vocoder(session, hidden, WHOLE).tobytes()


@settings(max_examples=25, deadline=None)
@given(
    num_steps=st.integers(1, 160) | st.sampled_from([500, 1000, 1999, 2000]),
    chunk=st.integers(1, 60),
    arrivals=st.lists(st.integers(0, 60), max_size=30),
)
def test_any_schedule_streams_to_the_bits_of_the_one_shot_waveform(
    session: Any, sizes: VocoderSizes, num_steps: int, chunk: int, arrivals: list[int]
) -> None:
    other = VocoderSizes(sizes.context_steps, P, sizes.hidden_size, sizes.state_size, chunk)
    hidden = LONG_HIDDEN[:num_steps]
    streamed = np.concatenate(stream(hidden, arrivals, other, session))
    assert len(streamed) == P * num_steps - P // 2
    assert streamed.tobytes() == selfcheck.run_vocoder(session, hidden, WHOLE).tobytes()


def feed(segment: SegmentStream, num_steps: int, has_ended: bool = False) -> list[int]:
    """Add steps, take all chunks that are due; return how many samples each brought."""
    segment.append(np.ones((num_steps, PUBLISHED.hidden_size), np.float32))
    brought = []
    while chunk := segment.next_chunk(has_ended):
        assert chunk.hidden.shape == (CHUNK_STEPS, PUBLISHED.hidden_size)
        assert np.array_equal(chunk.hidden[:, 0], chunk.mask)
        audio = np.zeros(CHUNK_STEPS * P, np.float32)
        brought.append(len(segment.accept(audio, chunk.state)))
    return brought


def test_the_first_audio_comes_with_the_first_chunk_after_the_context() -> None:
    segment = SegmentStream(PUBLISHED)
    assert PUBLISHED.first_chunk_steps == 4
    assert [feed(segment, 1) for _ in range(76)] == [
        *[[]] * 3,
        [0],
        *[[]] * 23,
        [0],
        *[[]] * 23,
        [0],
        *[[]] * 23,
        [CHUNK_STEPS * P],
    ]


def test_cost_is_flat_from_the_first_chunk_to_the_last() -> None:
    segment = SegmentStream(PUBLISHED)
    brought = [feed(segment, CHUNK_STEPS) for _ in range(100)]
    assert all(len(chunks) == 1 for chunks in brought)
    assert sum(chunks[0] for chunks in brought[3:]) == 97 * CHUNK_STEPS * P
    last = feed(segment, 0, has_ended=True)
    assert len(last) == 3
    assert segment.num_sent == 2400 * P - P // 2


def test_steps_are_forgotten_once_they_are_in_a_chunk() -> None:
    segment = SegmentStream(PUBLISHED)
    feed(segment, 1000)
    kept = sum(len(steps) for steps in segment._waiting)
    assert kept < CHUNK_STEPS


def test_the_configuration_has_the_same_sizes() -> None:
    text = (ROOT / "model_repository/chattts_vocoder/config.pbtxt").read_text()
    dims = dict(re.findall(r'name: "(\w+)" data_type: TYPE_FP32 dims: \[ ([^\]]+) \]', text))
    assert dims == {
        "hidden": f"{CHUNK_STEPS}, -1",
        "mask": f"{CHUNK_STEPS}",
        "state": "-1",
        "audio": f"{CHUNK_STEPS * P}",
        "next_state": "-1",
    }
