"""Run a vocoder graph as a busy server does: each call takes another choice of the streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from layout import SAMPLES_PER_STEP

Array = np.ndarray[Any, Any]


def run_in_batches(session: Any, segments: Sequence[Array], chunk_steps: int, seed: int) -> Any:
    """Return the waveform of each segment (T, H); up to 8 at a time, at any positions."""
    random = np.random.default_rng(seed)
    facts = session.get_modelmeta().custom_metadata_map
    states = np.zeros((len(segments), int(facts["state_size"])), np.float32)
    positions = np.zeros(len(segments), int)
    ends = np.array([len(segment) for segment in segments]) + int(facts["context_steps"])
    pieces: list[list[Array]] = [[] for _ in segments]
    while (running := np.flatnonzero(positions < ends)).size:
        rows = random.permutation(running)[: random.integers(1, 9)]
        hidden = np.zeros((len(rows), chunk_steps, segments[0].shape[1]), np.float32)
        mask = np.zeros((len(rows), chunk_steps), np.float32)
        for row, index in enumerate(rows):
            part = segments[index][positions[index] : positions[index] + chunk_steps]
            hidden[row, : len(part)] = part
            mask[row, : len(part)] = 1
        feeds = {"hidden": hidden, "mask": mask, "state": states[rows]}
        audio, states[rows] = session.run(["audio", "next_state"], feeds)
        positions[rows] += chunk_steps
        for row, index in enumerate(rows):
            pieces[index].append(audio[row])
    start = SAMPLES_PER_STEP * int(facts["context_steps"])
    waves = [np.concatenate(parts)[start:] for parts in pieces]
    return [
        wave[: SAMPLES_PER_STEP * len(segment) - SAMPLES_PER_STEP // 2]
        for wave, segment in zip(waves, segments, strict=True)
    ]
