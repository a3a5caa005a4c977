"""How loadtest/client_overhead.py sums up, and that its bare request is the client's."""

from __future__ import annotations

import pytest
from chattts_client._grpc_messages import infer_message
from chattts_client._protocol import speech_request
from client_overhead import TARGET_PERCENT, Load, bare_request, summary


def rounds(outside_percent: float) -> list[dict[str, Load]]:
    one = {
        "sync": Load(wall_s=1.02, own_cpu_s=0.102, outside_percent=outside_percent),
        "async": Load(wall_s=1.01, own_cpu_s=0.0505, outside_percent=1.0),
        "bare": Load(wall_s=1.0, own_cpu_s=0.04, outside_percent=0.0),
    }
    return [one] * 3


def test_figures_are_in_percent_and_the_worse_client_decides() -> None:
    found = summary(rounds(2.0))
    assert found["sync_over_bare_percent"] == pytest.approx(2.0)
    assert found["async_over_bare_percent"] == pytest.approx(1.0)
    assert found["sync_processor_percent"] == pytest.approx(10.0)
    assert (found["sync_outside_percent"], found["async_outside_percent"]) == (2.0, 1.0)
    assert found["target_is_met"]
    assert not summary(rounds(TARGET_PERCENT + 0.1))["target_is_met"]


def test_the_bare_request_asks_for_the_same_speech() -> None:
    bare = bare_request(5, 192)
    options = {"seed": 5, "min_new_tokens": 192, "max_new_tokens": 192}
    text = bare.raw_input_contents[0][4:].decode()
    own = infer_message(speech_request(text, options, stream=True))

    def tensors(message: object) -> dict[str, tuple[str, bytes]]:
        pairs = zip(message.inputs, message.raw_input_contents, strict=True)  # type: ignore[attr-defined]
        return {tensor.name: (tensor.datatype, raw) for tensor, raw in pairs}

    assert tensors(bare).items() <= tensors(own).items()
