"""What the serve command says about a repository before and after the start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import serve
from server_files import EmbeddedServerError, free_port


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


def test_a_repository_without_models_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve.main(["--model-repository", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"error: no model in {tmp_path}\n"


def test_a_port_that_is_given_twice_is_refused_by_its_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "something/config.pbtxt")
    port = free_port("127.0.0.1")
    ports = [f"--{name}-port={port}" for name in ("http", "metrics")]
    assert serve.main(["--model-repository", str(tmp_path), *ports]) == 1
    message = f"--http-port and --metrics-port are {port}: each needs its own, or 0"
    assert message in capsys.readouterr().err


def test_options_have_the_documented_defaults() -> None:
    arguments = serve.parse([])
    assert (arguments.http_port, arguments.grpc_port, arguments.metrics_port) == (8000, 8001, 8002)
    assert arguments.host == "127.0.0.1"
    assert arguments.log_dir is None
