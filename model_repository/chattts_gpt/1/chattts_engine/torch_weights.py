"""Read gpt.safetensors and embeddings.safetensors into the shapes that torch_network multiplies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from .config import GPTConfig


@dataclass(frozen=True, slots=True, eq=False)
class LayerWeights:
    """One layer; H hidden size, A heads, D head size, I intermediate size."""

    input_norm: Tensor
    """(H,) float32"""
    qkv: Tensor
    """(3 * A * D, H) queries, keys and values."""
    output: Tensor
    """(H, A * D)"""
    mlp_norm: Tensor
    """(H,) float32"""
    gate_up: Tensor
    """(2 * I, H)"""
    down: Tensor
    """(H, I)"""


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The network. Norms, heads and tables stay float32; the rest is in the type asked for."""

    layers: list[LayerWeights]
    norm: Tensor
    """(H,)"""
    code_head: Tensor
    """(C * A, H) for C codebooks of A codes."""
    text_head: Tensor
    """(V, H)"""
    code_embedding: Tensor
    """(C, A, H)"""

    @property
    def device(self) -> torch.device:
        """Where the tensors lie."""
        return self.norm.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of what is multiplied in the layers."""
        return self.layers[0].qkv.dtype


def load_weights(folder: Path, gpt: GPTConfig, device: str, dtype: torch.dtype) -> Weights:
    """Read the weights folder.

    Raises:
        ValueError: the tensors are not those of gpt_config.json.
    """
    path = folder / "gpt.safetensors"
    tensors: dict[str, Tensor] = load_file(path)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if shapes != _expected_shapes(gpt):
        wrong = sorted(name for name, _ in shapes.items() ^ _expected_shapes(gpt).items())
        raise ValueError(f"{path}: does not fit gpt_config.json at {wrong[0]}; build it again")

    def joined(prefix: str, *names: str) -> Tensor:
        parts = [tensors[f"{prefix}{name}_proj.weight"] for name in names]
        return torch.cat(parts).to(device, dtype)

    def kept(name: str) -> Tensor:
        return tensors[f"{name}.weight"].float().to(device)

    layers = []
    for layer in (f"layers.{index}." for index in range(gpt.num_layers)):
        layers.append(
            LayerWeights(
                input_norm=kept(f"{layer}input_layernorm"),
                qkv=joined(f"{layer}self_attn.", "q", "k", "v"),
                output=joined(f"{layer}self_attn.", "o"),
                mlp_norm=kept(f"{layer}post_attention_layernorm"),
                gate_up=joined(f"{layer}mlp.", "gate", "up"),
                down=joined(f"{layer}mlp.", "down"),
            )
        )
    return Weights(
        layers=layers,
        norm=kept("norm"),
        code_head=torch.cat([kept(f"head_code.{index}") for index in range(gpt.num_codebooks)]),
        text_head=kept("head_text"),
        code_embedding=_code_embedding(folder / "embeddings.safetensors", device),
    )


def _code_embedding(path: Path, device: str) -> Tensor:
    with safe_open(path, framework="pt") as file:
        table: Tensor = file.get_tensor("emb_code")
    return table.to(device)


def _expected_shapes(gpt: GPTConfig) -> dict[str, tuple[int, ...]]:
    hidden, attention = gpt.hidden_size, gpt.num_heads * gpt.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "norm.weight": (hidden,),
        "head_text.weight": (gpt.num_text_tokens, hidden),
    }
    for codebook in range(gpt.num_codebooks):
        shapes[f"head_code.{codebook}.weight"] = (gpt.num_audio_tokens, hidden)
    for layer in range(gpt.num_layers):
        prefix = f"layers.{layer}."
        shapes |= {f"{prefix}self_attn.{name}_proj.weight": (attention, hidden) for name in "qkv"}
        shapes[f"{prefix}self_attn.o_proj.weight"] = (hidden, attention)
        for name in ("gate", "up"):
            shapes[f"{prefix}mlp.{name}_proj.weight"] = (gpt.intermediate_size, hidden)
        shapes[f"{prefix}mlp.down_proj.weight"] = (hidden, gpt.intermediate_size)
        for name in ("input", "post_attention"):
            shapes[f"{prefix}{name}_layernorm.weight"] = (hidden,)
    return shapes
