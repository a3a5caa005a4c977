"""Errors of child models."""

from __future__ import annotations

import pytest
from chattts_pipeline.errors import child_error


@pytest.mark.parametrize(
    ("message", "code", "shown"),
    [
        ("UNAVAILABLE: queue is full", "UNAVAILABLE", "queue is full"),
        ("INVALID_ARG: prompt: too long", "INVALID_ARG", "prompt: too long"),
        ("Failed, message: CANCELLED: gone", "CANCELLED", "gone"),
        ("Model 'm' is not ready.", "UNAVAILABLE", "m is not ready; try again in a few seconds"),
        (
            "Stub process 'm_0_0' is not healthy.",
            "UNAVAILABLE",
            "m has died or hangs; try again in a few seconds",
        ),
        ("Server not ready", "UNAVAILABLE", "the server is starting or stopping; try again in 1 s"),
        ("out of memory", "INTERNAL", "m: out of memory"),
    ],
)
def test_the_code_is_read_from_the_message(message: str, code: str, shown: str) -> None:
    error = child_error("m", message)
    assert (error.code, error.message) == (code, shown)
