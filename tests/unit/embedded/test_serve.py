"""What the serve command says about a repository before and after the start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import serve
from server_files import EmbeddedServerError


def write(repository: Path, name: str, content: str = "") -> None:
    path = repository / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def write_checkpoint(repository: Path, version: int, name: str, untrained: bool) -> None:
    checkpoint = {"checkpoint": name, "precision": "int8", "untrained": untrained}
    write(repository, f"chattts/{version}/weights/checkpoint.json", json.dumps(checkpoint))


def test_missing_weights_are_named_with_the_command(tmp_path: Path) -> None:
    write(tmp_path, "chattts_vocoder/config.pbtxt")
    with pytest.raises(EmbeddedServerError) as caught:
        serve.check_built(tmp_path)
    message = str(caught.value)
    assert "chattts_vocoder/1/model.onnx" in message
    assert f"build_repository.py --checkpoint checkpoints/demo --output {tmp_path}" in message


def test_weights_in_a_later_version_are_enough(tmp_path: Path) -> None:
    write(tmp_path, "chattts_vocoder/config.pbtxt")
    write(tmp_path, "chattts_vocoder/2/model.onnx")
    serve.check_built(tmp_path)


def test_repository_of_other_models_is_served_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, "something/config.pbtxt")
    serve.check_built(tmp_path)
    assert serve.checkpoint_line(tmp_path, None) is None


def test_the_served_checkpoint_is_named(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 1, "served", untrained=False)
    write_checkpoint(tmp_path, 2, "next", untrained=True)
    assert serve.checkpoint_line(tmp_path, "1") == "checkpoint served (int8), version 1"


def test_untrained_weights_are_said_loudly(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 1, "random", untrained=True)
    line = serve.checkpoint_line(tmp_path, "1")
    assert line is not None
    assert "UNTRAINED" in line


def test_options_have_the_documented_defaults() -> None:
    arguments = serve.parse([])
    assert (arguments.http_port, arguments.grpc_port, arguments.metrics_port) == (8000, 8001, 8002)
    assert arguments.host == "127.0.0.1"
    assert arguments.log_dir is None
