"""A caller of chattts_unary who does not wait any longer stops the speech."""

from __future__ import annotations

import time
from typing import Any

import pytest
from launcher import EmbeddedServer
from metrics import read_total
from speech_calls import CallError, unary_grpc

LONG: dict[str, Any] = {"text": "hello world. " * 40, "min_new_tokens": 2048, "seed": 1}
SHORT: dict[str, Any] = {"text": "hello", "max_new_tokens": 60, "seed": 1}
LIMIT_S = 10.0


def test_a_deadline_of_the_call_frees_everything(tiny_server: EmbeddedServer) -> None:
    """Uncancelled, each of them would speak for half a minute."""
    before = unary_grpc(tiny_server, **SHORT)
    for _ in range(6):  # more than chattts_unary has instances
        with pytest.raises(CallError, match="Deadline Exceeded"):
            unary_grpc(tiny_server, timeout_s=0.3, **LONG)
    deadline = time.monotonic() + LIMIT_S
    while read_total(tiny_server, "chattts_running_requests"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    while read_total(tiny_server, "chattts_kv_blocks_used"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    after = unary_grpc(tiny_server, **SHORT)
    assert after.samples.tobytes() == before.samples.tobytes()
