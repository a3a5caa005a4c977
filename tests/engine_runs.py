"""Run an engine until it is idle and collect what each request got."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from chattts_engine import Engine, GenerationRequest
from numpy.typing import NDArray

Result = tuple[NDArray[np.int32], NDArray[np.float32]]
"""Tokens (T, C) and hidden states (T, H)."""


def run_together(engine: Engine, requests: Sequence[GenerationRequest]) -> dict[str, Result]:
    """Submit all requests at once; return the tokens and hidden states of each."""
    tokens: dict[str, list[Any]] = {request.id: [] for request in requests}
    hidden: dict[str, list[Any]] = {request.id: [] for request in requests}
    for request in requests:
        engine.add_request(request, 0.0)
    while engine.has_unfinished:
        for output in engine.step(0.0):
            if output.token is not None:
                tokens[output.sequence.id].append(output.token)
                hidden[output.sequence.id].append(output.hidden)
    return {name: (np.array(tokens[name]), np.array(hidden[name])) for name in tokens}
