"""The model configurations are the contract: client, configurations and documentation agree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from chattts_client import _protocol
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

ROOT = Path(__file__).parents[2]
REPOSITORY = ROOT / "model_repository"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
CONFIGS = sorted(REPOSITORY.glob("*/config.pbtxt"))
SPEECH_MODELS = [_protocol.STREAMING_MODEL, _protocol.UNARY_MODEL]
TABLE_START, TABLE_END = "<!-- chattts-inputs -->", "<!-- /chattts-inputs -->"


class Row(NamedTuple):
    """One input as a reader of the documentation sees it."""

    type: str
    """Data type and shape, such as INT32[1]."""
    default: str


def parse(path: Path) -> Any:
    return text_format.Parse(path.read_text(encoding="utf-8"), model_config_pb2.ModelConfig())


def config_of(model: str) -> Any:
    return parse(REPOSITORY / model / "config.pbtxt")


def kserve_name(data_type: int) -> str:
    name = model_config_pb2.DataType.Name(data_type).removeprefix("TYPE_")
    return "BYTES" if name == "STRING" else str(name)


def datatypes(tensors: Iterable[Any]) -> dict[str, str]:
    return {tensor.name: kserve_name(tensor.data_type) for tensor in tensors}


def comments(path: Path) -> dict[str, str]:
    """Tensor or parameter name to the comment above it."""
    found, lines = {}, []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("#"):
            lines.append(line.strip().lstrip("# "))
        elif match := re.match(r'\s*\{ (?:name|key): "(\w+)"', line):
            found[match.group(1)] = " ".join(lines)
            lines = []
        else:
            lines = []
    return found


def configured_rows(model: str) -> dict[str, Row]:
    """The inputs of a model as the documentation has to list them."""
    remarks = comments(REPOSITORY / model / "config.pbtxt")
    rows = {}
    for tensor in config_of(model).input:
        default = re.search(r"Default: ([^,]+?)(?:,.*)?\.$", remarks[tensor.name])
        kind = f"{kserve_name(tensor.data_type)}[{', '.join(str(size) for size in tensor.dims)}]"
        rows[tensor.name] = Row(kind, default.group(1) if default else "")
    return rows


def documented_rows(markdown: str) -> dict[str, Row]:
    """Read the table between the markers: columns name, type and default, in any order."""
    assert markdown.count(TABLE_START) == markdown.count(TABLE_END) == 1, "markers are missing"
    table = markdown.split(TABLE_START)[1].split(TABLE_END)[0]
    header, _, *lines = [cells(line) for line in table.strip().splitlines()]
    records = [dict(zip(header, line, strict=True)) for line in lines]
    rows = {each["name"]: Row(each["type"], each["default"]) for each in records}
    assert len(rows) == len(records), "an input is listed twice"
    return rows


def cells(line: str) -> list[str]:
    return [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.parent.name)
def test_a_configuration_parses_and_is_complete(path: Path) -> None:
    config = parse(path)
    assert config.name == path.parent.name
    assert config.backend
    assert config.input
    assert config.output
    assert config.instance_group


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.parent.name)
def test_every_tensor_and_parameter_has_a_comment(path: Path) -> None:
    config, remarks = parse(path), comments(path)
    names = {tensor.name for tensor in [*config.input, *config.output]}
    if path.parent.name != "chattts_vocoder":  # its parameter is the backend's own
        names |= set(config.parameters)
    assert {name for name in names if not remarks.get(name)} == set()


@pytest.mark.parametrize("model", ["chattts", "chattts_gpt", "chattts_unary"])
def test_only_the_first_input_is_required(model: str) -> None:
    first, *others = config_of(model).input
    assert all(tensor.optional for tensor in others)
    assert first.optional == (model == "chattts_gpt")  # `cancel` stands alone there


@pytest.mark.parametrize("model", ["chattts", "chattts_unary"])
def test_every_optional_input_states_its_default(model: str) -> None:
    rows = configured_rows(model)
    without = {name for name, row in rows.items() if not row.default}
    assert without <= {"text", "stream", "options"}


def test_only_streaming_models_are_decoupled() -> None:
    decoupled = {
        path.parent.name for path in CONFIGS if parse(path).model_transaction_policy.decoupled
    }
    assert decoupled == {"chattts", "chattts_gpt"}


def test_single_instance_models_have_no_queue_policy() -> None:
    for path in CONFIGS:
        batching = parse(path).dynamic_batching
        assert not batching.HasField("default_queue_policy"), path
        assert not batching.priority_levels, path


@pytest.mark.parametrize("model", SPEECH_MODELS)
def test_the_client_knows_every_input_and_output(model: str) -> None:
    config = config_of(model)
    assert datatypes(config.input) == dict(_protocol.INPUTS)
    assert datatypes(config.output) == dict(_protocol.OUTPUTS)
    assert all(list(tensor.dims) == [1] for tensor in config.input)


def test_both_speech_models_say_the_same_about_their_inputs() -> None:
    streaming, unary = (configured_rows(model) for model in SPEECH_MODELS)
    assert streaming | {"stream": unary["stream"]} == unary


def test_the_documented_inputs_are_the_configured_ones() -> None:
    documented = documented_rows(ARCHITECTURE.read_text(encoding="utf-8"))
    configured = configured_rows("chattts")
    # `options` is the one default that the configuration leaves to the reader: no switches.
    configured["options"] = configured["options"]._replace(default="{}")
    assert documented == configured


def test_the_table_reader_reads_a_table() -> None:
    markdown = f"""Inputs:
{TABLE_START}
| name | meaning | type | default |
|---|---|---|---|
| `text` | what to say | BYTES[1] | |
| `top_k` | candidates | INT32[1] | `20` |
{TABLE_END}
"""
    assert documented_rows(markdown) == {
        "text": Row("BYTES[1]", ""),
        "top_k": Row("INT32[1]", "20"),
    }


def test_the_table_reader_insists_on_its_markers() -> None:
    with pytest.raises(AssertionError, match="markers are missing"):
        documented_rows("# Architecture")
