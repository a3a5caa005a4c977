from __future__ import annotations

from dataclasses import replace

import pytest
from chattts_engine import EngineConfig, TorchOptions


def test_the_configuration_s_own_values_are_the_defaults() -> None:
    parameters = {
        "torch_dtype": "auto",
        "gpu_memory_utilization": "0.85",
        "max_fused_steps": "8",
        "cuda_graph_batch_sizes": "0",
        "max_num_seqs": "3",
    }
    assert TorchOptions.from_parameters(parameters) == TorchOptions()
    assert TorchOptions.from_parameters({}) == TorchOptions()


@pytest.mark.parametrize(
    ("device", "sizes", "wanted"),
    [
        ("cuda:0", "0", [16]),
        ("cpu", "0", [1]),
        ("cuda:0", "8, 1,64", [1, 8, 16]),  # no step holds more than max_num_seqs
        ("cpu", "4", [4]),
    ],
)
def test_batch_sizes(device: str, sizes: str, wanted: list[int]) -> None:
    parameters = {"cuda_graph_batch_sizes": sizes}
    options = replace(TorchOptions.from_parameters(parameters), device=device)
    assert options.sizes(EngineConfig(max_num_seqs=16).max_num_seqs) == wanted


@pytest.mark.parametrize(
    ("device", "dtype", "wanted"),
    [("cpu", "auto", "float32"), ("cuda:0", "auto", "bfloat16"), ("cuda:0", "float16", "float16")],
)
def test_the_data_type_follows_the_device_unless_given(
    device: str, dtype: str, wanted: str
) -> None:
    assert TorchOptions(device, dtype=dtype).dtype_name == wanted


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("torch_dtype", "int8", "torch_dtype: 'int8' is not one of auto, float32"),
        ("gpu_memory_utilization", "0", "gpu_memory_utilization: 0.0 is outside 0 < share <= 1"),
        ("gpu_memory_utilization", "most", "gpu_memory_utilization: cannot read 'most'"),
        ("max_fused_steps", "65", "max_fused_steps: 65 is outside 1 ... 64"),
        ("cuda_graph_batch_sizes", "1,,8", "cuda_graph_batch_sizes: cannot read '1,,8'"),
        ("cuda_graph_batch_sizes", "8,0", "cuda_graph_batch_sizes: 8,0 has a size below 1"),
    ],
)
def test_wrong_parameters_are_refused_by_name(key: str, value: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        TorchOptions.from_parameters({key: value})
