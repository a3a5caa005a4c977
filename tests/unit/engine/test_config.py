from __future__ import annotations

import json
from pathlib import Path

import pytest
from chattts_engine.config import EngineConfig, GPTConfig
from chattts_engine.sampling_params import SamplingParams
from fakes import FAKE_GPT


def test_parameters_become_numbers() -> None:
    config = EngineConfig.from_parameters({"max_num_seqs": "3", "block_size": "32"})
    assert (config.max_num_seqs, config.block_size) == (3, 32)


def test_pool_defaults_to_1024_tokens_per_sequence_and_always_holds_the_longest_one() -> None:
    assert EngineConfig(max_num_seqs=8, block_size=32).pool_blocks() == 256
    assert EngineConfig(max_num_seqs=2, block_size=32).pool_blocks() == 128
    assert EngineConfig(num_kv_blocks=7).pool_blocks() == 7


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("max_seqs", "3", "unknown engine parameter; allowed: .*max_num_seqs"),
        ("max_num_seqs", "many", "max_num_seqs: 'many' is not a whole number"),
        ("max_num_seqs", "0", "max_num_seqs: 0 is outside 1 ... 256"),
        ("block_size", "24", "block_size: 24 is not one of"),
    ],
)
def test_wrong_parameters_are_refused(key: str, value: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        EngineConfig.from_parameters({key: value})


def _raw_gpt_config() -> dict[str, object]:
    names = list(GPTConfig.__dataclass_fields__)
    return {"format": 1, **{name: getattr(FAKE_GPT, name) for name in names}}


def test_gpt_config_reads_what_the_build_writes(tmp_path: Path) -> None:
    path = tmp_path / "gpt_config.json"
    path.write_text(json.dumps(_raw_gpt_config()))
    assert GPTConfig.from_file(path) == FAKE_GPT


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": 2}, "format 2 is not 1"),
        ({"runner": "cuda"}, "runner 'cuda'"),
        ({"precision": "int3"}, "unknown precision"),
    ],
)
def test_gpt_config_of_another_build_is_refused(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    path = tmp_path / "gpt_config.json"
    path.write_text(json.dumps({**_raw_gpt_config(), **change}))
    with pytest.raises(ValueError, match=reason):
        GPTConfig.from_file(path)


def test_gpt_config_names_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "gpt_config.json"
    path.write_text(json.dumps({"format": 1}))
    with pytest.raises(ValueError, match=r"misses checkpoint, untrained"):
        GPTConfig.from_file(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", (0.0,)),
        ("temperature", (float("nan"),)),
        ("temperature", (0.3, 0.3, 0.3, 2.5)),
        ("top_p", 0.0),
        ("top_p", 1.01),
        ("top_p", float("inf")),
        ("top_k", 0),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", float("nan")),
        ("min_new_tokens", -1),
        ("min_new_tokens", 2049),
        ("max_new_tokens", 0),
        ("max_new_tokens", 2049),
        ("seed", -1),
        ("seed", 2**64),
    ],
)
def test_sampling_values_out_of_range_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{field}: "):
        SamplingParams(**{"seed": 1, field: value})  # type: ignore[arg-type]
