"""Settings of config.pbtxt and facts of checkpoint.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chattts_pipeline.settings import Checkpoint, Settings

PARAMETERS = {
    "max_text_characters": "5000",
    "max_streams": "64",
    "parallel_segments": "2",
    "max_segment_characters": "120",
    "low_latency_lookahead_steps": "12",
    "low_latency_first_steps": "8",
}


def test_settings_are_read_and_tritons_own_keys_ignored() -> None:
    settings = Settings.from_parameters({**PARAMETERS, "EXECUTION_ENV_PATH": "/env"})
    assert settings == Settings(5000, 64, 2, 120, 12, 8)
    assert (settings.metrics, settings.log_sampling, settings.log_text) == (True, 1.0, False)


def test_what_is_counted_and_logged_is_read() -> None:
    wanted = {"metrics": "false", "log_sampling": "0.25", "log_text": "true"}
    settings = Settings.from_parameters(PARAMETERS | wanted)
    assert (settings.metrics, settings.log_sampling, settings.log_text) == (False, 0.25, True)


@pytest.mark.parametrize(
    ("text", "seconds"), [("auto", None), (" auto ", None), ("0", 0), ("7", 7)]
)
def test_the_length_of_joined_sentences_is_read(text: str, seconds: int | None) -> None:
    settings = Settings.from_parameters(PARAMETERS | {"segment_seconds": text})
    assert settings.segment_seconds == seconds


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"max_stream": "1"}, "parameter max_stream: unknown; allowed: max_text_characters"),
        ({"max_streams": "0"}, "parameter max_streams: '0' is not a whole number of at least 1"),
        ({"max_streams": "many"}, "parameter max_streams: 'many' is not"),
        ({"max_segment_characters": "5"}, "parameter max_segment_characters: '5' is not"),
        ({"low_latency_first_steps": "0"}, "parameter low_latency_first_steps: '0' is not"),
        ({"segment_seconds": "-1"}, "parameter segment_seconds: '-1' is not a whole number"),
        ({"metrics": "yes"}, "parameter metrics: 'yes' is neither true nor false"),
        ({"log_sampling": "1.5"}, "parameter log_sampling: '1.5' is outside 0 ... 1"),
        ({"log_sampling": "nan"}, "parameter log_sampling: 'nan' is outside 0 ... 1"),
        ({"log_sampling": "some"}, "parameter log_sampling: 'some' is outside 0 ... 1"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(changed: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings.from_parameters({**PARAMETERS, **changed})


def test_a_missing_parameter_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="parameter max_streams: missing"):
        Settings.from_parameters({k: v for k, v in PARAMETERS.items() if k != "max_streams"})


def test_the_checkpoint_file_of_a_build_is_read(tiny_repository: Path) -> None:
    checkpoint = Checkpoint.from_file(tiny_repository / "chattts/1/weights/checkpoint.json")
    assert (checkpoint.hidden_size, checkpoint.sample_rate) == (64, 24000)
    assert len(checkpoint.special_tokens) == 50


@pytest.mark.parametrize("content", ["[]", '{"format": 2}', '{"format": 1, "checkpoint": "x"}'])
def test_another_file_is_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "checkpoint.json"
    path.write_text(json.dumps(json.loads(content)), encoding="utf-8")
    with pytest.raises(ValueError, match=r"checkpoint\.json"):
        Checkpoint.from_file(path)
