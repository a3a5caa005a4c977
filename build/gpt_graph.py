"""Write the GPT and its heads as ONNX graphs, float32 or int8.

The graph is the Llama network between input embeddings and the final norm. Attention is the
ONNX Runtime's GroupQueryAttention with rotary embedding inside; past and present keys and values
are meant to be the same buffer (I/O binding). Everything else works on a (rows, features) view,
and no operator mixes rows: a sequence's numbers do not depend on what it is batched with.

int8: weights are uint8 around 128 with one scale per 64 inputs of each output; MatMulNBits scales
activations the same way, per row and block of 64, so that a row never depends on its neighbours.
Blocks of 128 and more are a little faster, but then the runtime takes other kernels for odd and
even batches, and the bits differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from checkpoint import Array, Tensors
from layout import GptSizes
from onnx_graph import FLOAT, INT8, INT32, MICROSOFT, GraphWriter

Precision = Literal["fp32", "int8", "int8-weights"]
"""int8: linear layers and KV cache; int8-weights: linear layers alone."""

BLOCK = 64
"""Inputs that share a scale."""
ZERO_POINT = 128
MAX_LEVEL = 127
INT8_ACTIVATIONS = 4
"""The accuracy level at which the runtime multiplies integers."""
HEAD_DIM_MULTIPLE = 16
"""GroupQueryAttention refuses other head sizes."""
SMALLEST_MAGNITUDE = np.finfo(np.float32).tiny
"""Stands in for the magnitude of zeros in a scale: any positive number does."""


@dataclass(frozen=True, slots=True)
class KvScales:
    """Steps between two int8 levels of one layer, each (heads, head_dim) float32."""

    key: Array
    value: Array


def quantize_blocks(weight: Array) -> tuple[npt.NDArray[np.uint8], Array]:
    """Quantise an (N, K) weight in blocks along K.

    Returns:
        Levels (N, blocks, 64) uint8 in 1 ... 255 around 128, the last block filled up with 128, and
        scales (N, blocks) float32.
    """
    rows, depth = weight.shape
    padded = np.pad(weight, ((0, 0), (0, -depth % BLOCK)))
    blocks = padded.reshape(rows, -1, BLOCK)
    largest = np.maximum(np.abs(blocks).max(axis=2), SMALLEST_MAGNITUDE * MAX_LEVEL)
    scale = (largest / np.float32(MAX_LEVEL)).astype(np.float32)
    levels = np.rint(blocks / scale[..., None]) + ZERO_POINT
    return levels.astype(np.uint8), scale


def rope_caches(sizes: GptSizes) -> tuple[Array, Array]:
    """Return cosines and sines (positions, head_dim / 2) float32, computed in float64."""
    half = np.arange(0, sizes.head_dim, 2, dtype=np.float64) / sizes.head_dim
    positions = np.arange(sizes.max_position_embeddings, dtype=np.float64)
    angles = positions[:, None] * sizes.rope_theta**-half
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


class _GptWriter:
    """Writes one GPT graph; holds what the layers share."""

    def __init__(
        self,
        sizes: GptSizes,
        tensors: Tensors,
        precision: Precision,
        kv_scales: Sequence[KvScales] | None,
    ) -> None:
        self.sizes = sizes
        self.tensors = tensors
        self.precision = precision
        self.kv_scales = kv_scales
        self.graph = GraphWriter("chattts_gpt")

    def write(self) -> bytes:
        graph, hidden = self.graph, self.sizes.hidden_size
        embeds = graph.input("inputs_embeds", ("batch", "steps", hidden))
        graph.input("seqlens_k", ("batch",), INT32)
        graph.input("total_sequence_length", (), INT32)
        cos, sin = rope_caches(self.sizes)
        graph.constant("cos_cache", cos)
        graph.constant("sin_cache", sin)
        graph.output("hidden", ("batch", "steps", hidden))
        residual = embeds
        normed = graph.node(
            "SimplifiedLayerNormalization",
            [embeds, self._norm("layers.0.input_layernorm.weight")],
            epsilon=self.sizes.rms_norm_eps,
            axis=-1,
        )
        for layer in range(self.sizes.num_layers):
            attended = self._attention(layer, normed)
            after = self._norm(f"layers.{layer}.post_attention_layernorm.weight")
            normed, residual = self._add_and_norm(residual, attended, after)
            last = layer + 1 == self.sizes.num_layers
            after = self._norm(
                "norm.weight" if last else f"layers.{layer + 1}.input_layernorm.weight"
            )
            name = "hidden" if last else ""
            normed, residual = self._add_and_norm(residual, self._mlp(layer, normed), after, name)
        return graph.serialize()

    def _norm(self, name: str) -> str:
        return self.graph.constant(name, self.tensors[name])

    def _add_and_norm(
        self, residual: str, update: str, weight: str, name: str = ""
    ) -> tuple[str, str]:
        """Return the normed sum, called `name` if given, and the sum."""
        total = f"{update}_total"
        normed = name or f"{update}_normed"
        self.graph.nodes(
            "SkipSimplifiedLayerNormalization",
            [residual, update, weight],
            [normed, "", "", total],
            MICROSOFT,
            epsilon=self.sizes.rms_norm_eps,
        )
        return normed, total

    def _attention(self, layer: int, normed: str) -> str:
        graph, sizes = self.graph, self.sizes
        prefix = f"layers.{layer}.self_attn."
        qkv = self._linear(f"{prefix}qkv", normed, [f"{prefix}{name}_proj" for name in "qkv"])
        cache = ("batch", sizes.num_heads, "max_length", sizes.head_dim)
        kind = FLOAT if self.kv_scales is None else INT8
        past = [graph.input(f"past_{name}_{layer}", cache, kind) for name in ("key", "value")]
        present = [
            graph.output(f"present_{name}_{layer}", cache, kind) for name in ("key", "value")
        ]
        lengths = ["seqlens_k", "total_sequence_length"]
        inputs = [qkv, "", "", *past, *lengths, "cos_cache", "sin_cache"]
        quantization: dict[str, Any] = {}
        if self.kv_scales is not None:
            scales = self.kv_scales[layer]
            inputs += ["", "", ""]  # no position ids, bias and sink
            for name, scale in (("key", scales.key), ("value", scales.value)):
                inputs.append(graph.constant(f"{prefix}{name}_scale", scale[None, :, None]))
            quantization = {
                "k_quant_type": "PER_CHANNEL",
                "v_quant_type": "PER_CHANNEL",
                "kv_cache_bit_width": 8,
            }
        output, *_ = graph.nodes(
            "GroupQueryAttention",
            inputs,
            [f"{prefix}output", *present],
            MICROSOFT,
            num_heads=sizes.num_heads,
            kv_num_heads=sizes.num_heads,
            do_rotary=1,
            rotary_interleaved=0,
            **quantization,
        )
        return self._linear(f"{prefix}o", output, [f"{prefix}o_proj"])

    def _mlp(self, layer: int, normed: str) -> str:
        graph, prefix = self.graph, f"layers.{layer}.mlp."
        both = self._linear(f"{prefix}gate_up", normed, [f"{prefix}gate_proj", f"{prefix}up_proj"])
        halves = [f"{both}_gate", f"{both}_up"]
        gate, up = graph.nodes("Split", [both], halves, axis=-1)
        silu = graph.node("Mul", [gate, graph.node("Sigmoid", [gate])])
        return self._linear(f"{prefix}down", graph.node("Mul", [silu, up]), [f"{prefix}down_proj"])

    def _linear(self, name: str, rows: str, weights: list[str]) -> str:
        """Multiply (B, S, K) by the stacked weights; the result is (B, S, N)."""
        stacked = np.concatenate([self.tensors[f"{weight}.weight"] for weight in weights])
        if self.precision == "fp32":
            weight = self.graph.constant(name, stacked.T)
            return self.graph.node("MatMul", [rows, weight], f"{name}_out")
        levels, scale = quantize_blocks(stacked)
        constants = [self.graph.constant(name, levels), self.graph.constant(f"{name}_scale", scale)]
        return self.graph.node(
            "MatMulNBits",
            [rows, *constants],
            f"{name}_out",
            domain=MICROSOFT,
            K=stacked.shape[1],
            N=stacked.shape[0],
            bits=8,
            block_size=BLOCK,
            accuracy_level=INT8_ACTIVATIONS,
        )


def write_gpt(
    sizes: GptSizes,
    tensors: Tensors,
    precision: Precision,
    kv_scales: Sequence[KvScales] | None = None,
) -> bytes:
    """Return the GPT as ONNX bytes.

    Args:
        sizes: the checkpoint's GPT sizes.
        tensors: the tensors of gpt/model.safetensors.
        precision: of the linear layers; norms, attention and the interface stay float32.
        kv_scales: of each layer, for an int8 cache; None for a float32 one.

    Returns:
        A model with the inputs `inputs_embeds` (B, S, H) float32, `seqlens_k` (B,) int32 (index of
        each row's last key), `total_sequence_length` () int32, `past_key_l`, `past_value_l`
        (B, heads, max_length, head_dim) float32 or int8, and the outputs `hidden` (B, S, H) after
        the final norm, `present_key_l`, `present_value_l`.

    Raises:
        ValueError: the head size is no multiple of 16, or the file would be 2 GiB or larger.
    """
    if sizes.head_dim % HEAD_DIM_MULTIPLE:
        raise ValueError(
            f"head_dim: {sizes.head_dim} is no multiple of {HEAD_DIM_MULTIPLE}, "
            "which the runtime's attention needs"
        )
    return _GptWriter(sizes, tensors, precision, kv_scales).write()


def folded_head(embed: Tensors, name: str) -> Array:
    """Return the weight (tokens, H) of head `name` with its weight norm folded in."""
    prefix = f"head_{name}.parametrizations.weight."
    direction = embed[f"{prefix}original1"].astype(np.float64)
    norm = np.linalg.norm(direction, axis=1, keepdims=True)
    folded: Array = (direction * (embed[f"{prefix}original0"] / norm)).astype(np.float32)
    return folded


def write_code_head(sizes: GptSizes, embed: Tensors) -> bytes:
    """Return ONNX bytes: `hidden` (N, H) -> `logits` (N, codebooks, audio tokens), float32."""
    graph = GraphWriter("chattts_code_head")
    heads = [folded_head(embed, f"code.{i}") for i in range(sizes.num_codebooks)]
    weight = graph.constant("weight", np.concatenate(heads).T)
    flat = graph.node("MatMul", [graph.input("hidden", ("rows", sizes.hidden_size)), weight])
    shape = (sizes.num_codebooks, sizes.num_audio_tokens)
    graph.node("Reshape", [flat, graph.integers(-1, *shape)], "logits")
    graph.output("logits", ("rows", *shape))
    return graph.serialize()


def write_text_head(sizes: GptSizes, embed: Tensors) -> bytes:
    """Return ONNX bytes: `hidden` (N, H) -> `logits` (N, text tokens), float32."""
    graph = GraphWriter("chattts_text_head")
    weight = graph.constant("weight", folded_head(embed, "text").T)
    graph.node("MatMul", [graph.input("hidden", ("rows", sizes.hidden_size)), weight], "logits")
    graph.output("logits", ("rows", sizes.num_text_tokens))
    return graph.serialize()
