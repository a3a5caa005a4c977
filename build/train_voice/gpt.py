"""The token model in torch: embeddings, a Llama whose attention can be looked at, heads, a cache.

Attributes are named as the published files name their tensors. Letters in shapes: B rows,
N positions, H hidden size, A heads, D head size, V codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from layout import GptSizes
from torch import Tensor, nn

INITIAL_RANGE = 0.02


class RmsNorm(nn.Module):
    """x / rms(x) · w."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self._epsilon = epsilon

    def forward(self, value: Tensor) -> Tensor:
        """Return the normed value."""
        return F.rms_norm(value, self.weight.shape, self.weight, self._epsilon)


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosine and sine (…, N, D) of positions."""

    cos: Tensor
    sin: Tensor

    @classmethod
    def of(cls, positions: Tensor, head_dim: int, theta: float) -> Rotation:
        """Return the rotation of positions (…, N)."""
        half = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
        angle = positions[..., None].float() * theta**-half
        angle = torch.cat([angle, angle], dim=-1)
        return cls(angle.cos(), angle.sin())

    def turn(self, heads: Tensor) -> Tensor:
        """Return (B, A, N, D) rotated; pairs are (j, j + D/2)."""
        first, second = heads.chunk(2, dim=-1)
        return heads * self.cos + torch.cat([-second, first], dim=-1) * self.sin


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, sizes: GptSizes) -> None:
        super().__init__()
        hidden, width = sizes.hidden_size, sizes.attention_size
        self._heads = sizes.num_heads
        self.q_proj = nn.Linear(hidden, width, bias=False)
        self.k_proj = nn.Linear(hidden, width, bias=False)
        self.v_proj = nn.Linear(hidden, width, bias=False)
        self.o_proj = nn.Linear(width, hidden, bias=False)

    def project(self, rows: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor, Tensor]:
        """Return query, key and value (B, A, N, D) of (B, N, H)."""
        batch, length, _ = rows.shape

        def heads(projection: nn.Linear) -> Tensor:
            projected: Tensor = projection(rows)
            return projected.view(batch, length, self._heads, -1).transpose(1, 2)

        query, key = rotation.turn(heads(self.q_proj)), rotation.turn(heads(self.k_proj))
        return query, key, heads(self.v_proj)

    def merge(self, mixed: Tensor) -> Tensor:
        """Return (B, N, H) of (B, A, N, D)."""
        batch, _, length, _ = mixed.shape
        result: Tensor = self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))
        return result


class Mlp(nn.Module):
    """Down(SiLU(Gate(x)) · Up(x))."""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the layer's output."""
        result: Tensor = self.down_proj(F.silu(self.gate_proj(rows)) * self.up_proj(rows))
        return result


class Layer(nn.Module):
    """Attention and MLP, each behind a norm and beside a residual."""

    def __init__(self, sizes: GptSizes) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(sizes.hidden_size, sizes.rms_norm_eps)
        self.self_attn = Attention(sizes)
        self.post_attention_layernorm = RmsNorm(sizes.hidden_size, sizes.rms_norm_eps)
        self.mlp = Mlp(sizes.hidden_size, sizes.intermediate_size)


class Cache:
    """Keys and values of rows of different lengths."""

    def __init__(self, sizes: GptSizes, rows: int, positions: int) -> None:
        shape = (sizes.num_layers, rows, sizes.num_heads, positions, sizes.head_dim)
        self.keys, self.values = torch.zeros(shape), torch.zeros(shape)


class Llama(nn.Module):
    """Input embeddings (B, N, H) -> hidden states (B, N, H) after the final norm."""

    def __init__(self, sizes: GptSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.num_layers))
        self.norm = RmsNorm(sizes.hidden_size, sizes.rms_norm_eps)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                is_output = name.endswith(("o_proj.weight", "down_proj.weight"))
                shrink = (2 * sizes.num_layers) ** 0.5 if is_output else 1.0
                nn.init.normal_(parameter, std=2 * INITIAL_RANGE / shrink)

    def forward(
        self, embeds: Tensor, watched: Sequence[tuple[int, int]] = (), cache: Cache | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Run whole rows; what is behind a row's end changes nothing before it.

        Args:
            embeds: (B, N, H)
            watched: (layer, head) whose attention is returned.
            cache: is filled from position 0.

        Returns:
            The hidden states, and of each watched head the log of its attention (B, N, N).
        """
        length = embeds.shape[1]
        rotation = self._rotation(torch.arange(length))
        rows, attention = embeds, []
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        for index, layer in enumerate(self._layers()):
            normed = layer.input_layernorm(rows)
            query, key, value = layer.self_attn.project(normed, rotation)
            for _, head in (pair for pair in watched if pair[0] == index):
                scores = query[:, head] @ key[:, head].transpose(1, 2) * key.shape[-1] ** -0.5
                attention.append(scores.masked_fill(future, -torch.inf).log_softmax(dim=-1))
            if cache is not None:
                cache.keys[index, :, :, :length] = key
                cache.values[index, :, :, :length] = value
            mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
            rows = rows + layer.self_attn.merge(mixed)
            rows = rows + layer.mlp(layer.post_attention_layernorm(rows))
        hidden: Tensor = self.norm(rows)
        return hidden, attention

    def step(self, embeds: Tensor, cache: Cache, positions: Tensor) -> Tensor:
        """Run one more position of each row: (B, H) at `positions` (B,) -> hidden states (B, H)."""
        rotation = self._rotation(positions[:, None, None])
        rows = embeds[:, None]
        row_numbers = torch.arange(len(rows))
        num_seen = int(positions.max()) + 1
        seen = (torch.arange(num_seen) <= positions[:, None])[:, None, None]
        for index, layer in enumerate(self._layers()):
            normed = layer.input_layernorm(rows)
            query, key, value = layer.self_attn.project(normed, rotation)
            cache.keys[index, row_numbers, :, positions] = key[:, :, 0]
            cache.values[index, row_numbers, :, positions] = value[:, :, 0]
            keys, values = cache.keys[index, :, :, :num_seen], cache.values[index, :, :, :num_seen]
            mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=seen)
            rows = rows + layer.self_attn.merge(mixed)
            rows = rows + layer.mlp(layer.post_attention_layernorm(rows))
        hidden: Tensor = self.norm(rows)
        return hidden[:, 0]

    def _layers(self) -> list[Layer]:
        return cast("list[Layer]", list(self.layers))

    def _rotation(self, positions: Tensor) -> Rotation:
        return Rotation.of(positions, self.sizes.head_dim, self.sizes.rope_theta)


class Embed(nn.Module):
    """Embeddings and heads of text and codes; the heads are plain here, export splits norms off."""

    def __init__(self, sizes: GptSizes, constant_codebooks: Sequence[int]) -> None:
        super().__init__()
        hidden, codes = sizes.hidden_size, sizes.num_audio_tokens
        self.emb_text = nn.Embedding(sizes.num_text_tokens, hidden)
        self.emb_code = nn.ModuleList(
            nn.Embedding(codes, hidden) for _ in range(sizes.num_codebooks)
        )
        self.head_text = nn.Linear(hidden, sizes.num_text_tokens, bias=False)
        self.head_code = nn.ModuleList(
            nn.Linear(hidden, codes, bias=False) for _ in range(sizes.num_codebooks)
        )
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=hidden**-0.5)
        for codebook in constant_codebooks:
            # what is never said in training must not disturb when a recording says it
            nn.init.zeros_(self.emb_code[codebook].get_parameter("weight"))

    def embed_codes(self, codes: Tensor) -> Tensor:
        """Return (…, H) of codes (…, 4)."""
        parts = [table(codes[..., i]) for i, table in enumerate(self.emb_code)]
        return torch.stack(parts).sum(dim=0)


class TokenModel(nn.Module):
    """The Llama with its embeddings and heads."""

    def __init__(self, sizes: GptSizes, constant_codebooks: Sequence[int] = ()) -> None:
        super().__init__()
        self.llama = Llama(sizes)
        self.embed = Embed(sizes, constant_codebooks)

    @property
    def sizes(self) -> GptSizes:
        """Sizes of the network."""
        return self.llama.sizes

    def embed_prompts(self, ids: Tensor, is_speaker: Tensor, speakers: Tensor) -> Tensor:
        """Return the embeddings (B, N, H) of text ids.

        Args:
            ids: (B, N)
            is_speaker: (B, N) bool, where a row's speaker stands.
            speakers: (B, H)
        """
        rows: Tensor = self.embed.emb_text(ids)
        return torch.where(is_speaker[..., None], speakers[:, None], rows)
