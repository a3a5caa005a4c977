"""TorchRunner: the network written out in float32 PyTorch over one paged KV pool; any device.

The readable reference: Llama as the checkpoint defines it, keys and values found through block
tables. A decode step computes its sequences one after the other, because a matrix product (and the
vectorised tail of SiLU) rounds a row differently beside other rows; so a row's bits cannot depend
on its neighbours, and a batch of B costs B single rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as SequenceOf
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor

from .config import EngineConfig, GPTConfig
from .sequence import Sequence


class TorchRunner:
    """A Runner over gpt.safetensors.

    Raises:
        ValueError: the file's tensors are not those of gpt_config.json.
    """

    def __init__(
        self, weights: Path, gpt: GPTConfig, config: EngineConfig, device: str = "cpu"
    ) -> None:
        if config.num_threads:
            torch.set_num_threads(config.num_threads)  # of the whole process
        self._gpt = gpt
        self._device = device
        self._weights = _load_weights(weights / "gpt.safetensors", gpt, device)
        self._code_head = torch.cat([self._weights[name] for name in _code_heads(gpt)])
        self._cos, self._sin = (table.to(device) for table in _rotary_tables(gpt))
        self._block_offsets = torch.arange(config.block_size, device=device)
        # Keys and values of a token lie in its slot: block * block_size + offset in the block.
        # Not filled, so that the operating system commits memory only as slots are written.
        num_slots = config.pool_blocks() * config.block_size
        self._pool = torch.empty(
            (gpt.num_layers, 2, num_slots, gpt.num_heads, gpt.head_dim),
            dtype=torch.float32,
            device=device,
        )

    def prefill(
        self, sequence: Sequence, inputs: NDArray[np.float32], start: int
    ) -> NDArray[np.float32]:
        """See Runner."""
        return self._forward(sequence.block_table, start, inputs)

    def decode(
        self, sequences: SequenceOf[Sequence], inputs: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """See Runner."""
        rows = [
            self._forward(sequence.block_table, sequence.num_computed_tokens, row[None])
            for sequence, row in zip(sequences, inputs, strict=True)
        ]
        return np.concatenate(rows)

    def release(self, sequence: Sequence) -> None:
        """See Runner. Nothing to do: a block's next owner overwrites what it reads."""

    def code_logits(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """See Runner."""
        logits = self._logits(hidden, self._code_head)
        return logits.reshape(len(hidden), self._gpt.num_codebooks, self._gpt.num_audio_tokens)

    def text_logits(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """See Runner."""
        return self._logits(hidden, self._weights["head_text.weight"])

    def _logits(self, hidden: NDArray[np.float32], head: Tensor) -> NDArray[np.float32]:
        """Return the (N, V) products of (N, H) hidden states, one by one, with a (V, H) head."""
        with torch.inference_mode():
            rows = [head @ torch.tensor(row, device=self._device) for row in hidden]
            logits: NDArray[np.float32] = torch.stack(rows).cpu().numpy()
        return logits

    def _forward(
        self, block_table: SequenceOf[int], start: int, inputs: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Compute T positions of one sequence from `start` on; keep their keys and values.

        Args:
            block_table: blocks that hold positions 0 ... start + T - 1 and maybe more.
            start: position of the first input; those before it are in the pool.
            inputs: (T, H) embeddings.

        Returns:
            (T, H) hidden states after the final norm.
        """
        with torch.inference_mode():
            end = start + len(inputs)
            slots = self._slots(block_table)[:end]
            rotary = self._cos[start:end, None], self._sin[start:end, None]
            rows = torch.tensor(inputs, device=self._device)
            for layer in range(self._gpt.num_layers):
                prefix = f"layers.{layer}."
                normed = self._norm(rows, f"{prefix}input_layernorm")
                rows = rows + self._attention(normed, layer, slots, rotary)
                normed = self._norm(rows, f"{prefix}post_attention_layernorm")
                rows = rows + self._mlp(normed, f"{prefix}mlp.")
            hidden: NDArray[np.float32] = self._norm(rows, "norm").cpu().numpy()
        return hidden

    def _slots(self, block_table: SequenceOf[int]) -> Tensor:
        """Return the slots of a table's blocks, in order of position."""
        blocks = torch.tensor(block_table, device=self._device)
        return (blocks[:, None] * len(self._block_offsets) + self._block_offsets).flatten()

    def _attention(
        self, rows: Tensor, layer: int, slots: Tensor, rotary: tuple[Tensor, Tensor]
    ) -> Tensor:
        """Attend from the T last of L positions to all that are not later: (T, H) to (T, H)."""
        shape = (len(rows), self._gpt.num_heads, self._gpt.head_dim)
        query, key, value = (
            self._project(rows, f"layers.{layer}.self_attn.{name}_proj").view(shape)
            for name in "qkv"
        )
        keys, values = self._pool[layer]
        keys[slots[-len(rows) :]] = _rotate(key, *rotary)
        values[slots[-len(rows) :]] = value
        merged = _attend(_rotate(query, *rotary), keys[slots], values[slots])
        return self._project(merged.flatten(1), f"layers.{layer}.self_attn.o_proj")

    def _mlp(self, rows: Tensor, prefix: str) -> Tensor:
        gate = F.silu(self._project(rows, f"{prefix}gate_proj"))
        return self._project(gate * self._project(rows, f"{prefix}up_proj"), f"{prefix}down_proj")

    def _norm(self, rows: Tensor, name: str) -> Tensor:
        scale = (rows.square().mean(dim=-1, keepdim=True) + self._gpt.rms_norm_eps).rsqrt()
        return rows * scale * self._weights[f"{name}.weight"]

    def _project(self, rows: Tensor, name: str) -> Tensor:
        return F.linear(rows, self._weights[f"{name}.weight"])


def _attend(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Return (T, heads, D) for queries (T, heads, D) at the end of L positions (L, heads, D)."""
    scores = torch.einsum("tad,lad->atl", query, keys) / math.sqrt(query.shape[-1])
    is_later = torch.ones(scores.shape[1:], dtype=torch.bool, device=scores.device).triu(
        len(keys) - len(query) + 1
    )
    probs = scores.masked_fill(is_later, -math.inf).softmax(dim=-1)
    return torch.einsum("atl,lad->tad", probs, values)


def _rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (j, j + D/2) of (T, heads, D) by the angles of (T, 1, D/2) tables."""
    first, second = heads.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _rotary_tables(gpt: GPTConfig) -> tuple[Tensor, Tensor]:
    """Return cosine and sine, (max_position_embeddings, D/2) float32, of angles in float64."""
    half = gpt.head_dim // 2
    frequency = gpt.rope_theta ** -(torch.arange(half, dtype=torch.float64) / half)
    angle = torch.outer(torch.arange(gpt.max_position_embeddings, dtype=torch.float64), frequency)
    return angle.cos().float(), angle.sin().float()


def _code_heads(gpt: GPTConfig) -> list[str]:
    return [f"head_code.{codebook}.weight" for codebook in range(gpt.num_codebooks)]


def _load_weights(path: Path, gpt: GPTConfig, device: str) -> dict[str, Tensor]:
    """Read the tensors, checked against the sizes of the config."""
    tensors: dict[str, Tensor] = load_file(path, device=device)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if shapes != _expected_shapes(gpt):
        wrong = sorted(name for name, _ in shapes.items() ^ _expected_shapes(gpt).items())
        raise ValueError(f"{path}: does not fit gpt_config.json at {wrong[0]}; build it again")
    return tensors


def _expected_shapes(gpt: GPTConfig) -> dict[str, tuple[int, ...]]:
    hidden, attention = gpt.hidden_size, gpt.num_heads * gpt.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "norm.weight": (hidden,),
        "head_text.weight": (gpt.num_text_tokens, hidden),
        **dict.fromkeys(_code_heads(gpt), (gpt.num_audio_tokens, hidden)),
    }
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
