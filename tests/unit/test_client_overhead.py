"""How loadtest/client_overhead.py sums up, and that its bare request is the client's."""

from __future__ import annotations

import pytest
from chattts_client._grpc_messages import infer_message
from chattts_client._protocol import speech_request
from client_overhead import CALLERS, Load, bare_request, summary


def rounds(sync_cpu_s: float = 0.04, async_wall_s: float = 1.01) -> list[dict[str, Load]]:
    one = {
        "sync": Load(wall_s=1.02, own_cpu_s=sync_cpu_s, outside_percent=8.0),
        "async": Load(wall_s=async_wall_s, own_cpu_s=0.02, outside_percent=7.0),
        "bare": Load(wall_s=1.0, own_cpu_s=0.01, outside_percent=6.0),
    }
    return [one] * 3


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)


def test_figures_are_in_percent() -> None:
    found = summary(rounds())
    assert found["sync_over_bare_percent"] == pytest.approx(2.0)
    assert found["async_over_bare_percent"] == pytest.approx(1.0)
    assert found["bare_processor_percent"] == pytest.approx(0.5)
    assert [found[f"{name}_outside_percent"] for name in CALLERS] == [8.0, 7.0, 6.0]


def test_the_worse_client_and_the_worse_figure_decide() -> None:
    assert summary(rounds())["target_is_met"]
    assert not summary(rounds(sync_cpu_s=0.064))["target_is_met"]
    assert not summary(rounds(async_wall_s=1.031))["target_is_met"]


def test_the_bare_request_asks_for_the_same_speech() -> None:
    bare = bare_request(5, 192)
    options = {"seed": 5, "min_new_tokens": 192, "max_new_tokens": 192}
    text = bare.raw_input_contents[0][4:].decode()
    own = infer_message(speech_request(text, options, stream=True))

    def tensors(message: object) -> dict[str, tuple[str, bytes]]:
        pairs = zip(message.inputs, message.raw_input_contents, strict=True)  # type: ignore[attr-defined]
        return {tensor.name: (tensor.datatype, raw) for tensor, raw in pairs}

    assert tensors(bare).items() <= tensors(own).items()
