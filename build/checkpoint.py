"""Read a checkpoint directory in the published layout: sizes from its files, tensors as float32.

`Checkpoint.open` looks only at the headers and refuses what does not fit together; the tensors are
loaded part by part, so that the published gigabyte is never in memory twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import layout
import numpy as np
import numpy.typing as npt
from layout import DvaeSizes, GptSizes, Shapes, StackSizes, VocosSizes
from safetensors import SafetensorError, safe_open

Array = npt.NDArray[np.float32]
Tensors = Mapping[str, Array]

FLOAT_TYPES = ("F16", "F32")


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message names the file and what is wrong in it."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint whose headers were read and found consistent."""

    root: Path
    name: str
    """The directory's name, for reports."""
    is_untrained: bool
    """True when the marker file says that the weights mean nothing."""
    gpt: GptSizes
    decoder: StackSizes
    dvae: DvaeSizes
    vocos: VocosSizes

    @classmethod
    def open(cls, root: Path) -> Checkpoint:
        """Read the headers of the checkpoint at `root`.

        Raises:
            CheckpointError: a file or tensor is missing, superfluous, or has another shape.
        """
        missing = [file for file in required_files() if not (root / file).is_file()]
        if missing:
            raise CheckpointError(f"{root}: no checkpoint there, {', '.join(missing)} missing")
        gpt = _gpt_sizes(root / layout.CONFIG_FILE)
        shapes = {part: _read_shapes(root, part) for part in layout.TENSOR_FILES}
        found = cls(
            root=root,
            name=root.resolve().name,
            is_untrained=(root / layout.UNTRAINED_FILE).exists(),
            gpt=gpt,
            decoder=_stack_sizes(shapes["Decoder"], "Decoder", "decoder."),
            dvae=_dvae_sizes(shapes["DVAE"]),
            vocos=_vocos_sizes(shapes["Vocos"]),
        )
        found._check(shapes)
        return found

    @property
    def num_mels(self) -> int:
        """Mel bins between Decoder or DVAE and Vocos."""
        return self.vocos.num_mels

    @property
    def context_steps(self) -> int:
        """Steps on each side that a sample of the vocoder chain depends on."""
        return layout.context_steps(self.decoder.num_layers, self.vocos.num_layers)

    def load(self, part: str) -> dict[str, Array]:
        """Return the tensors of one file (a key of `layout.TENSOR_FILES`) as float32.

        Raises:
            CheckpointError: a value is infinite or not a number.
        """
        path = self.root / layout.TENSOR_FILES[part]
        tensors: dict[str, Array] = {}
        with _opened(path) as file:
            for name in file.keys():  # noqa: SIM118 - the handle is not iterable
                if name == layout.UNUSED_GPT_TENSOR:
                    continue
                value: Array = file.get_tensor(name).astype(np.float32, copy=False)
                if not np.isfinite(value).all():
                    raise CheckpointError(f"{path}: tensor {name} holds infinite or NaN values")
                tensors[name] = value
        return tensors

    def _check(self, shapes: Mapping[str, Shapes]) -> None:
        expected = {
            "Decoder": layout.decoder_tensors(self.decoder, self.num_mels),
            "DVAE": layout.dvae_tensors(self.dvae),
            "Embed": layout.embed_tensors(self.gpt),
            "Vocos": layout.vocos_tensors(self.vocos),
            "gpt": layout.gpt_tensors(self.gpt),
        }
        for part, wanted in expected.items():
            _compare(self.root / layout.TENSOR_FILES[part], wanted, shapes[part])
        halves = (("Decoder", self.decoder.input_channels, self.gpt.hidden_size),)
        for part, channels, features in halves:
            if channels * layout.FRAMES_PER_STEP != features:
                path = self.root / layout.TENSOR_FILES[part]
                raise CheckpointError(
                    f"{path}: decoder.conv_in.0.weight takes {channels} channels, "
                    f"half of hidden_size {features} is needed"
                )
        quantised = self.dvae.encoder.output_channels
        if self.dvae.decoder.input_channels * layout.FRAMES_PER_STEP != quantised:
            path = self.root / layout.TENSOR_FILES["DVAE"]
            raise CheckpointError(
                f"{path}: decoder.conv_in.0.weight takes {self.dvae.decoder.input_channels} "
                f"channels, half of the quantiser's {quantised} is needed"
            )


def required_files() -> list[str]:
    """Return the files every checkpoint has, relative to its root."""
    return [layout.CONFIG_FILE, *layout.TENSOR_FILES.values(), layout.TOKENIZER_FILE]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="numpy") as file:
            yield file
    except SafetensorError as error:
        raise CheckpointError(f"{path}: not a readable safetensors file ({error})") from error


def _read_shapes(root: Path, part: str) -> Shapes:
    path = root / layout.TENSOR_FILES[part]
    shapes: Shapes = {}
    with _opened(path) as file:
        for name in file.keys():  # noqa: SIM118 - the handle is not iterable
            if part == "gpt" and name == layout.UNUSED_GPT_TENSOR:
                continue
            view = file.get_slice(name)
            if view.get_dtype() not in FLOAT_TYPES:
                raise CheckpointError(
                    f"{path}: tensor {name} is {view.get_dtype()}, allowed: {FLOAT_TYPES}"
                )
            shapes[name] = tuple(view.get_shape())
    return shapes


def _compare(path: Path, wanted: Shapes, found: Shapes) -> None:
    for name, shape in wanted.items():
        if name not in found:
            raise CheckpointError(f"{path}: tensor {name} {list(shape)} is missing")
        if found[name] != shape:
            raise CheckpointError(
                f"{path}: tensor {name} is {list(found[name])}, expected {list(shape)}"
            )
    extra = sorted(set(found) - set(wanted))
    if extra:
        raise CheckpointError(f"{path}: unknown tensor {extra[0]} ({len(extra)} in all)")


def _shape(shapes: Shapes, part: str, name: str, rank: int) -> tuple[int, ...]:
    path = layout.TENSOR_FILES[part]
    if name not in shapes:
        raise CheckpointError(f"{path}: tensor {name} is missing")
    if len(shapes[name]) != rank:
        raise CheckpointError(f"{path}: tensor {name} is {list(shapes[name])}, not {rank}-D")
    return shapes[name]


def _count_layers(shapes: Shapes, part: str, prefix: str) -> int:
    pattern = re.compile(re.escape(prefix) + r"(\d+)\.")
    found = {int(match[1]) for name in shapes if (match := pattern.match(name))}
    if not found:
        raise CheckpointError(f"{layout.TENSOR_FILES[part]}: no tensor {prefix}0.* found")
    return max(found) + 1


def _stack_sizes(shapes: Shapes, part: str, prefix: str) -> StackSizes:
    first = _shape(shapes, part, f"{prefix}conv_in.0.weight", 3)
    second = _shape(shapes, part, f"{prefix}conv_in.2.weight", 3)
    return StackSizes(
        input_channels=first[1],
        bottleneck=first[0],
        width=second[0],
        inner=_shape(shapes, part, f"{prefix}decoder_block.0.pwconv1.weight", 2)[0],
        output_channels=_shape(shapes, part, f"{prefix}conv_out.weight", 3)[0],
        num_layers=_count_layers(shapes, part, f"{prefix}decoder_block."),
    )


def _dvae_sizes(shapes: Shapes) -> DvaeSizes:
    first = _shape(shapes, "DVAE", "downsample_conv.0.weight", 3)
    return DvaeSizes(
        num_mels=first[1],
        dim=first[0],
        encoder=_stack_sizes(shapes, "DVAE", "encoder."),
        decoder=_stack_sizes(shapes, "DVAE", "decoder."),
    )


def _vocos_sizes(shapes: Shapes) -> VocosSizes:
    embed = _shape(shapes, "Vocos", "backbone.embed.weight", 3)
    return VocosSizes(
        num_mels=embed[1],
        width=embed[0],
        inner=_shape(shapes, "Vocos", "backbone.convnext.0.pwconv1.weight", 2)[0],
        num_layers=_count_layers(shapes, "Vocos", "backbone.convnext."),
    )


def _gpt_sizes(path: Path) -> GptSizes:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path}: not valid JSON ({error})") from error
    fixed = {
        "hidden_act": "silu",
        "rope_scaling": None,
        "attention_bias": False,
        "mlp_bias": False,
        "num_vq": layout.NUM_CODEBOOKS,
        "num_audio_tokens": layout.NUM_AUDIO_TOKENS,
        "num_key_value_heads": config.get("num_attention_heads"),
    }
    for key, value in fixed.items():
        if config.get(key, value) != value:
            raise CheckpointError(f"{path}: {key} is {config[key]!r}, only {value!r} is supported")
    try:
        return _sizes_from_config(config)
    except KeyError as error:
        raise CheckpointError(f"{path}: {error.args[0]} is missing") from error


def _sizes_from_config(config: Mapping[str, Any]) -> GptSizes:
    heads = int(config["num_attention_heads"])
    hidden = int(config["hidden_size"])
    return GptSizes(
        hidden_size=hidden,
        intermediate_size=int(config["intermediate_size"]),
        num_layers=int(config["num_hidden_layers"]),
        num_heads=heads,
        head_dim=int(config.get("head_dim") or hidden // heads),
        num_codebooks=layout.NUM_CODEBOOKS,
        num_audio_tokens=layout.NUM_AUDIO_TOKENS,
        num_text_tokens=int(config["num_text_tokens"]),
        max_position_embeddings=int(config["max_position_embeddings"]),
        rms_norm_eps=float(config["rms_norm_eps"]),
        rope_theta=float(config["rope_theta"]),
    )
