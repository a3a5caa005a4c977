"""Network: the Llama of the checkpoint written out in PyTorch over one paged KV pool.

The residual stream, norms, softmax and heads are float32; matrix products, keys and values are in
the weights' type. Letters in shapes: B rows, T positions, H hidden size, A heads, D head size.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from .config import GPTConfig
from .torch_ops import KeysValues, Operations, Rotary, in_order, rotate
from .torch_weights import Weights


class Network:
    """Weights plus pool; knows blocks and positions, not sequences."""

    def __init__(
        self, weights: Weights, gpt: GPTConfig, ops: Operations, num_blocks: int, block_size: int
    ) -> None:
        self.gpt = gpt
        self.device = weights.device
        self._weights = weights
        self._ops = ops
        self._dtype = weights.dtype
        self._rotary = _rotary_tables(gpt, self.device)
        # Not filled, so that on CPU memory is committed only as positions are written.
        shape = (gpt.num_layers, 2, num_blocks, gpt.num_heads, block_size, gpt.head_dim)
        pool = torch.empty(shape, dtype=self._dtype, device=self.device)
        self._pool = [KeysValues(*layer) for layer in pool]

    def decode(self, inputs: Tensor, tables: Tensor, positions: Tensor) -> Tensor:
        """Compute one position of each row.

        Args:
            inputs: (B, H) float32 embeddings.
            tables: (B, blocks per row) int32.
            positions: (B,) int32; -1 is padding.

        Returns:
            (B, H) float32 hidden states after the final norm.
        """

        def attend(layer: int, qkv: Tensor) -> Tensor:
            return self._ops.decode_attention(
                qkv, self._pool[layer], tables, positions, self._rotary
            )

        return self._hidden(inputs, attend)

    def prefill(self, inputs: Tensor, blocks: Tensor, start: int) -> Tensor:
        """Compute positions start ... start + T - 1 of one sequence.

        Args:
            inputs: (T, H) float32 embeddings.
            blocks: (N,) int64, the sequence's blocks; those before `start` are filled.
            start: first position.

        Returns:
            (T, H) float32 hidden states after the final norm.
        """
        gpt, end = self.gpt, start + len(inputs)
        block_size = self._pool[0].keys.shape[2]
        at = torch.arange(start, end, device=inputs.device)
        slots, offsets = blocks[at // block_size], at % block_size
        used = blocks[: -(-end // block_size)]
        cos, sin = self._rotary.cos[start:end, None], self._rotary.sin[start:end, None]
        is_visible = torch.arange(end, device=inputs.device) <= at[:, None]

        def attend(layer: int, qkv: Tensor) -> Tensor:
            query, key, value = qkv.view(-1, 3, gpt.num_heads, gpt.head_dim).unbind(dim=1)
            pool = self._pool[layer]
            pool.keys[slots, :, offsets] = rotate(key, cos, sin).to(self._dtype)
            pool.values[slots, :, offsets] = value
            keys, values = (in_order(part, used)[None, :, :end] for part in pool)
            query = rotate(query, cos, sin).to(self._dtype).transpose(0, 1)[None]
            merged = F.scaled_dot_product_attention(query, keys, values, attn_mask=is_visible)
            return merged[0].transpose(0, 1).flatten(1)

        return self._hidden(inputs, attend)

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the (B, H) float32 inputs of (B, C) codes, summed in the order of the codebooks.

        The order and the type are those of Embeddings.codes, so the bits are too.
        """
        tables = self._weights.code_embedding
        rows = tables[0][tokens[:, 0]]
        for codebook in range(1, len(tables)):
            rows = rows + tables[codebook][tokens[:, codebook]]
        return rows

    def code_logits(self, hidden: Tensor) -> Tensor:
        """Return (B, C * codes) float32 logits of all codebooks for (B, H) hidden states."""
        return F.linear(hidden, self._weights.code_head)

    def text_logits(self, hidden: Tensor) -> Tensor:
        """Return (B, V) float32 logits of the text head for (B, H) hidden states."""
        return F.linear(hidden, self._weights.text_head)

    def _hidden(self, inputs: Tensor, attend: Callable[[int, Tensor], Tensor]) -> Tensor:
        """Run the layers over rows; `attend` maps a layer and its qkv rows to merged heads."""
        eps = self.gpt.rms_norm_eps
        residual, delta = inputs.clone(), None
        for index, layer in enumerate(self._weights.layers):
            normed = self._ops.add_rms_norm(residual, delta, layer.input_norm, eps, self._dtype)
            delta = F.linear(attend(index, F.linear(normed, layer.qkv)), layer.output)
            normed = self._ops.add_rms_norm(residual, delta, layer.mlp_norm, eps, self._dtype)
            delta = F.linear(self._ops.gated_silu(F.linear(normed, layer.gate_up)), layer.down)
        return self._ops.add_rms_norm(residual, delta, self._weights.norm, eps, torch.float32)


def _rotary_tables(gpt: GPTConfig, device: torch.device) -> Rotary:
    """Return cosine and sine in float32 of angles in float64."""
    half = gpt.head_dim // 2
    frequency = gpt.rope_theta ** -(torch.arange(half, dtype=torch.float64) / half)
    angle = torch.outer(torch.arange(gpt.max_position_embeddings, dtype=torch.float64), frequency)
    return Rotary(angle.cos().float().to(device), angle.sin().float().to(device))
