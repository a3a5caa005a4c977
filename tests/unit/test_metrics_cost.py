"""What loadtest/metrics_cost.py compares, and how it sums up."""

from __future__ import annotations

from pathlib import Path

import pytest
from chattts_pipeline.settings import Settings
from conftest import ROOT
from google.protobuf import text_format
from metrics_cost import Load, copy_without, median_and_range, summary
from tritonclient.grpc import model_config_pb2


def parameters(repository: Path, model: str) -> dict[str, str]:
    text = (repository / model / "config.pbtxt").read_text(encoding="utf-8")
    config = text_format.Parse(text, model_config_pb2.ModelConfig())
    return {key: value.string_value for key, value in config.parameters.items()}


def test_the_copy_differs_in_the_switches_alone(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for model in ("chattts", "chattts_gpt"):
        (source / model).mkdir(parents=True)
        config = ROOT / "model_repository" / model / "config.pbtxt"
        (source / model / "config.pbtxt").write_bytes(config.read_bytes())
    copy = copy_without(source, tmp_path / "copy")
    settings = Settings.from_parameters(parameters(copy, "chattts"))
    assert (settings.metrics, settings.log_sampling) == (False, 0.0)
    for model, keys in (("chattts", {"metrics", "log_sampling"}), ("chattts_gpt", {"metrics"})):
        before, after = parameters(source, model), parameters(copy, model)
        assert {key for key in before if before[key] != after[key]} == keys


def test_losses_are_in_percent_of_the_server_without() -> None:
    rounds = [(Load(99.0, 0.102), Load(100.0, 0.1)), (Load(97.0, 0.101), Load(100.0, 0.1))] * 5
    found = summary(rounds)
    assert found["throughput_lost_percent"] == pytest.approx(2.0)
    assert found["processor_time_more_percent"] == pytest.approx(1.5)
    low, high = found["throughput_lost_percent_range"]
    assert 1.0 <= low <= 2.0 <= high <= 3.0


def test_a_median_of_equal_values_has_no_range() -> None:
    assert median_and_range([3.0] * 8) == (3.0, 3.0, 3.0)
