"""Reading a checkpoint: sizes from its files, and an error that names what is wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import layout
import numpy as np
import pytest
from checkpoint import Checkpoint, CheckpointError
from conftest import DEMO_CHECKPOINT, TINY_CHECKPOINT
from make_checkpoint import full_sizes
from safetensors.numpy import load_file, save_file

PUBLISHED_ELEMENTS = {
    "gpt": (182, 213_351_168),
    "Embed": (15, 36_399_234),
    "Decoder": (115, 25_920_740),
    "DVAE": (242, 15_083_472),
    "Vocos": (83, 13_584_998),
}
"""Tensors and elements of the published files."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A checkpoint to break."""
    return Path(shutil.copytree(TINY_CHECKPOINT, tmp_path / "copy"))


def edit(root: Path, part: str, change: Callable[[dict[str, Any]], None]) -> None:
    path = root / layout.TENSOR_FILES[part]
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


def edit_config(root: Path, **values: Any) -> None:
    path = root / layout.CONFIG_FILE
    config = {**json.loads(path.read_text(encoding="utf-8")), **values}
    kept = {key: value for key, value in config.items() if value is not ...}
    path.write_text(json.dumps(kept), encoding="utf-8")


def test_sizes_come_from_the_files() -> None:
    demo = Checkpoint.open(DEMO_CHECKPOINT)
    assert (demo.name, demo.is_untrained) == ("demo", False)
    tokenizer = json.loads((DEMO_CHECKPOINT / layout.TOKENIZER_FILE).read_text(encoding="utf-8"))
    entries = {
        **tokenizer["model"]["vocab"],
        **{t["content"]: 0 for t in tokenizer["added_tokens"]},
    }
    assert demo.gpt.num_text_tokens == len(entries)
    assert (demo.gpt.hidden_size, demo.gpt.num_layers) == (256, 5)
    assert (demo.decoder.width, demo.decoder.num_layers) == (192, 4)
    assert (demo.dvae.encoder.width, demo.dvae.decoder.width) == (128, 160)
    assert (demo.vocos.width, demo.vocos.inner, demo.vocos.num_layers) == (256, 768, 5)


def test_half_precision_is_widened() -> None:
    tensors = Checkpoint.open(DEMO_CHECKPOINT).load("Decoder")
    assert {value.dtype for value in tensors.values()} == {np.dtype(np.float32)}


def test_the_published_sizes_give_the_published_tensors() -> None:
    sizes = full_sizes()
    gpt = layout.gpt_tensors(sizes.gpt)
    gpt[layout.UNUSED_GPT_TENSOR] = (sizes.unused_rows, sizes.gpt.hidden_size)
    shapes = {
        "gpt": gpt,
        "Embed": layout.embed_tensors(sizes.gpt),
        "Decoder": layout.decoder_tensors(sizes.decoder, sizes.vocos.num_mels),
        "DVAE": layout.dvae_tensors(sizes.dvae),
        "Vocos": layout.vocos_tensors(sizes.vocos),
    }
    found = {
        part: (len(names), sum(int(np.prod(shape)) for shape in names.values()))
        for part, names in shapes.items()
    }
    assert found == PUBLISHED_ELEMENTS
    assert layout.context_steps(sizes.decoder.num_layers, sizes.vocos.num_layers) == 52


def test_the_unused_embedding_is_not_loaded(copy: Path) -> None:
    unused = {layout.UNUSED_GPT_TENSOR: np.zeros((32, 64), np.float32)}
    edit(copy, "gpt", lambda tensors: tensors.update(unused))
    assert layout.UNUSED_GPT_TENSOR not in Checkpoint.open(copy).load("gpt")


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("gpt", "layers.1.mlp.up_proj.weight"),
        ("Embed", "emb_code.2.weight"),
        ("Decoder", "decoder.decoder_block.0.dwconv.bias"),
        ("DVAE", "vq_layer.quantizer.rvqs.1.project_out.weight"),
        ("Vocos", "head.istft.window"),
        ("Vocos", "backbone.embed.weight"),
    ],
)
def test_a_missing_tensor_is_named(part: str, name: str, copy: Path) -> None:
    edit(copy, part, lambda tensors: tensors.pop(name))
    with pytest.raises(CheckpointError, match=rf"{layout.TENSOR_FILES[part]}: tensor {name}.*miss"):
        Checkpoint.open(copy)


def test_a_wrong_shape_is_named_with_both_shapes(copy: Path) -> None:
    wrong = {"norm.weight": np.ones(63, np.float32)}
    edit(copy, "gpt", lambda tensors: tensors.update(wrong))
    with pytest.raises(CheckpointError, match=r"norm.weight is \[63\], expected \[64\]"):
        Checkpoint.open(copy)


def test_an_unknown_tensor_is_named(copy: Path) -> None:
    edit(copy, "Vocos", lambda tensors: tensors.update(extra=np.ones(1, np.float32)))
    with pytest.raises(CheckpointError, match="unknown tensor extra"):
        Checkpoint.open(copy)


def test_integer_tensors_are_refused(copy: Path) -> None:
    edit(copy, "Decoder", lambda tensors: tensors.update(coef=np.ones((1, 100, 1), np.int32)))
    with pytest.raises(CheckpointError, match="coef is I32"):
        Checkpoint.open(copy)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_named(value: float, copy: Path) -> None:
    def spoil(tensors: dict[str, Any]) -> None:
        tensors["out_conv.weight"][0, 0, 0] = value

    edit(copy, "Decoder", spoil)
    with pytest.raises(CheckpointError, match=r"out_conv\.weight holds infinite or NaN"):
        Checkpoint.open(copy).load("Decoder")


def test_a_decoder_for_another_hidden_size_is_refused(copy: Path) -> None:
    demo = DEMO_CHECKPOINT / layout.TENSOR_FILES["Decoder"]
    shutil.copy(demo, copy / layout.TENSOR_FILES["Decoder"])
    with pytest.raises(CheckpointError, match="takes 128 channels, half of hidden_size 64"):
        Checkpoint.open(copy)


def test_a_missing_file_is_named(copy: Path) -> None:
    (copy / layout.TENSOR_FILES["DVAE"]).unlink()
    with pytest.raises(CheckpointError, match=r"asset/DVAE\.safetensors missing"):
        Checkpoint.open(copy)


def test_a_broken_file_is_named(copy: Path) -> None:
    path = copy / layout.TENSOR_FILES["Vocos"]
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match=r"Vocos\.safetensors: not a readable"):
        Checkpoint.open(copy)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("num_key_value_heads", 2, "num_key_value_heads is 2, only 4"),
        ("hidden_act", "gelu", "hidden_act is 'gelu', only 'silu'"),
        ("rope_scaling", {"factor": 2}, "rope_scaling"),
        ("num_vq", 8, "num_vq is 8, only 4"),
        ("rope_theta", ..., "rope_theta is missing"),
        ("num_hidden_layers", 4, r"tensor layers\.3\.self_attn\.q_proj\.weight .* is missing"),
        ("num_text_tokens", 200, r"emb_text\.weight is \[223, 64\], expected \[200, 64\]"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(
    key: str, value: Any, message: str, copy: Path
) -> None:
    edit_config(copy, **{key: value})
    with pytest.raises(CheckpointError, match=message):
        Checkpoint.open(copy)


def test_a_configuration_that_is_no_json_is_refused(copy: Path) -> None:
    (copy / layout.CONFIG_FILE).write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match="not valid JSON"):
        Checkpoint.open(copy)
