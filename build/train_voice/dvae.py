"""The DVAE: log-mel -> four codes per step -> log-mel, and how it is trained.

Its two residual stages are both trained, but the token model says only the first: what the second
adds is mostly noise of the quantiser, which a small token model cannot predict. So for half of the
training items the second stage is left out, which is the code ZERO_CODE, "nothing to add".

Letters in shapes: B rows, T steps, F mel frames, M mel bins, G groups.
"""

from __future__ import annotations

import hashlib
from typing import cast

import torch
import torch.nn.functional as F
from layout import (
    DIGITS,
    GROUPS,
    LEVELS,
    NUM_CODEBOOKS,
    NUM_CODES,
    RESIDUALS,
    DvaeSizes,
)
from reference_encoder import QUANTIZER_RANGE
from torch import Tensor, nn
from vocoder_graph import RESIDUAL_SCALE, code_values

from train_voice.modules import Decoder, Downsample, Stack

ZERO_CODE = NUM_CODES // 2
"""The code of the second stage that adds nothing: its four digits are 0."""
COARSE = tuple(range(0, NUM_CODEBOOKS, RESIDUALS))
"""The codebooks of the first stage."""
DROP_FINE = 0.5
_HALF = LEVELS // 2


class Quantizer(nn.Module):
    """The numbers of one group: (B, T, C) -> residual codes and (B, T, C)."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.project_in = nn.Linear(features, DIGITS)
        self.project_out = nn.Linear(DIGITS, features)
        self.register_buffer("table", torch.from_numpy(code_values()), persistent=False)

    def forward(self, value: Tensor, keep_fine: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features that are left, and the codes (B, T, 2).

        Args:
            value: (B, T, C)
            keep_fine: (B, 1, 1), 1 where the second stage counts, else 0.
        """
        rest = _bound(self.project_in(value))
        total = torch.zeros_like(rest)
        codes = []
        for residual in range(RESIDUALS):
            scale = RESIDUAL_SCALE**residual
            soft = _bound(rest / scale)
            digits = torch.round(soft).detach()
            # straight through: the value is rounded, the gradient is the unrounded one's
            stage = (soft + (digits - soft).detach()) / _HALF * scale
            total = total + (stage * keep_fine if residual else stage)
            rest = rest - stage.detach()
            codes.append(self._code(digits))
        return self.project_out(total), torch.stack(codes, dim=-1)

    def values(self, codes: Tensor) -> Tensor:
        """Return the features (B, T, C) of codes (B, T, 2)."""
        table: Tensor = self.get_buffer("table")
        total = sum(RESIDUAL_SCALE**i * table[codes[..., i]] for i in range(RESIDUALS))
        result: Tensor = self.project_out(total)
        return result

    @staticmethod
    def _code(digits: Tensor) -> Tensor:
        powers = torch.tensor([LEVELS**i for i in range(DIGITS)])
        return ((digits.long() + _HALF) * powers).sum(dim=-1)


def _bound(value: Tensor) -> Tensor:
    return QUANTIZER_RANGE * torch.tanh(value)


class Dvae(Decoder):
    """Encoder, quantiser and decoder."""

    def __init__(self, sizes: DvaeSizes) -> None:
        super().__init__(sizes.decoder, sizes.num_mels)
        self.downsample_conv = Downsample(sizes)
        self.encoder = Stack(sizes.encoder)
        features = sizes.encoder.output_channels // GROUPS
        self.rvqs = nn.ModuleList(Quantizer(features) for _ in range(GROUPS))

    def encoder_name(self) -> str:
        """Return a name of what makes its codes: another encoder says others."""
        parameters = (p for module in self._encoder_side() for p in module.parameters())
        digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in parameters))
        return f"encoder {digest.hexdigest()[:12]}"

    def fix_codes(self) -> None:
        """Let only what follows the codes learn further, so that they keep their meaning."""
        for module in self._encoder_side():
            module.requires_grad_(False)

    def _encoder_side(self) -> list[nn.Module]:
        """Return what the codes of a log-mel depend on."""
        projections = [quantizer.project_in for quantizer in self._quantizers()]
        return [self.downsample_conv, self.encoder, *projections]

    def _quantizers(self) -> list[Quantizer]:
        return cast("list[Quantizer]", list(self.rvqs))

    def quantize(self, mel: Tensor, keep_fine: Tensor) -> tuple[Tensor, Tensor]:
        """Return features (B, C, T) and codes (B, T, 4) of a log-mel (B, M, F)."""
        encoded = self.encoder(self.downsample_conv(mel / self.coef)).transpose(1, 2)
        groups = [
            quantizer(part, keep_fine)
            for quantizer, part in zip(self.rvqs, encoded.chunk(GROUPS, dim=2), strict=True)
        ]
        features = torch.cat([values for values, _ in groups], dim=2).transpose(1, 2)
        return features, torch.cat([codes for _, codes in groups], dim=2)

    def encode(self, mel: Tensor) -> Tensor:
        """Return the codes (B, F // 2, 4) of a log-mel (B, M, F)."""
        return self.quantize(mel, torch.ones(len(mel), 1, 1))[1]

    def decode(self, codes: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the log-mel (B, M, 2 T) of codes (B, T, 4)."""
        groups = [
            quantizer.values(part)
            for quantizer, part in zip(self._quantizers(), codes.chunk(GROUPS, dim=2), strict=True)
        ]
        mel: Tensor = self(torch.cat(groups, dim=2).transpose(1, 2), mask)
        return mel


def mel_loss(made: Tensor, wanted: Tensor) -> Tensor:
    """Return the distance of two log-mels (B, M, F): of values, and of changes between frames."""
    change = F.l1_loss(made.diff(dim=2), wanted.diff(dim=2))
    return F.l1_loss(made, wanted) + 0.1 * F.mse_loss(made, wanted) + 0.3 * change


def without_fine(codes: Tensor) -> Tensor:
    """Return codes (..., 4) as the token model says them: the second stages add nothing."""
    kept = torch.full_like(codes, ZERO_CODE)
    kept[..., list(COARSE)] = codes[..., list(COARSE)]
    return kept
