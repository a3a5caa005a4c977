"""The convolution stacks of the published layout in torch: Decoder, DVAE and Vocos use them.

Attributes are named so that `state_dict` has the published names. Letters in shapes: B rows,
T steps, F mel frames (2 per step), C channels, M mel bins.
"""

from __future__ import annotations

import torch.nn.functional as F
from layout import (
    BLOCK_KERNEL,
    DOWN_KERNEL,
    EDGE_KERNEL,
    FRAMES_PER_STEP,
    HOP,
    N_FFT,
    NORM_EPS,
    NUM_BINS,
    STACK_DILATION,
    DvaeSizes,
    StackSizes,
    VocosSizes,
)
from make_checkpoint import hann_window
from torch import Tensor, complex, from_numpy, istft, nn, ones

LAYER_SCALE = 0.2
MAX_MAGNITUDE = 100.0


class Block(nn.Module):
    """A ConvNeXt block of (B, C, F)."""

    def __init__(self, width: int, inner: int, dilation: int, scale: str) -> None:
        super().__init__()
        pad = BLOCK_KERNEL // 2 * dilation
        self._scale = scale
        self.register_parameter(scale, nn.Parameter(LAYER_SCALE * ones(width)))
        self.dwconv = nn.Conv1d(
            width, width, BLOCK_KERNEL, padding=pad, dilation=dilation, groups=width
        )
        self.norm = nn.LayerNorm(width, eps=NORM_EPS)
        self.pwconv1 = nn.Linear(width, inner)
        self.pwconv2 = nn.Linear(inner, width)

    def forward(self, value: Tensor) -> Tensor:
        """Return the block's output, of the same shape."""
        inner = self.norm(self.dwconv(value).transpose(1, 2))
        inner = self.pwconv2(F.gelu(self.pwconv1(inner)))
        result: Tensor = value + (inner * self.get_parameter(self._scale)).transpose(1, 2)
        return result


class Stack(nn.Module):
    """Bottleneck, blocks, output: (B, input channels, F) -> (B, output channels, F)."""

    def __init__(self, sizes: StackSizes) -> None:
        super().__init__()
        edge = EDGE_KERNEL // 2
        self.conv_in = nn.Sequential(
            nn.Conv1d(sizes.input_channels, sizes.bottleneck, EDGE_KERNEL, padding=edge),
            nn.GELU(),
            nn.Conv1d(sizes.bottleneck, sizes.width, EDGE_KERNEL, padding=edge),
        )
        self.decoder_block = nn.ModuleList(
            Block(sizes.width, sizes.inner, STACK_DILATION, "weight")
            for _ in range(sizes.num_layers)
        )
        self.conv_out = nn.Conv1d(sizes.width, sizes.output_channels, 1, bias=False)

    def forward(self, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the stack's output; `mask` (B, 1, F) is 1 where frames exist.

        With a mask every convolution sees zeros beyond a row's end, as it does where rows end.
        """
        if mask is None:
            value = self.conv_in(value)
        else:
            inner = F.gelu(self.conv_in[0](value * mask))
            value = self.conv_in[2](inner * mask) * mask
        for block in self.decoder_block:
            value = block(value)
            if mask is not None:
                value = value * mask
        result: Tensor = self.conv_out(value)
        return result


def frames(steps: Tensor) -> Tensor:
    """Return (B, C / 2, 2 T) of (B, C, T): a step's two frames are the halves of its channels."""
    rows, channels, count = steps.shape
    halves = steps.reshape(rows, FRAMES_PER_STEP, channels // FRAMES_PER_STEP, count)
    return halves.permute(0, 2, 3, 1).reshape(rows, channels // FRAMES_PER_STEP, -1)


class Decoder(nn.Module):
    """Hidden states -> log-mel; also the second half of the DVAE."""

    coef: Tensor

    def __init__(self, sizes: StackSizes, num_mels: int) -> None:
        super().__init__()
        self.register_buffer("coef", ones(1, num_mels, 1))
        self.decoder = Stack(sizes)
        self.out_conv = nn.Conv1d(
            sizes.output_channels, num_mels, EDGE_KERNEL, padding=EDGE_KERNEL // 2, bias=False
        )

    def forward(self, steps: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the log-mel (B, M, 2 T) of (B, C, T); `mask` (B, 1, 2 T)."""
        value = self.decoder(frames(steps), mask)
        mel: Tensor = self.out_conv(value if mask is None else value * mask)
        return mel * self.coef


class Downsample(nn.Sequential):
    """Normalised log-mel (B, M, F) -> (B, C, F // 2)."""

    def __init__(self, sizes: DvaeSizes) -> None:
        edge, dim = EDGE_KERNEL // 2, sizes.dim
        super().__init__(
            nn.Conv1d(sizes.num_mels, dim, EDGE_KERNEL, padding=edge),
            nn.GELU(),
            nn.Conv1d(dim, dim, DOWN_KERNEL, stride=FRAMES_PER_STEP, padding=edge),
            nn.GELU(),
        )


class Backbone(nn.Module):
    """The blocks of Vocos: log-mel (B, M, F) -> (B, F, C)."""

    def __init__(self, sizes: VocosSizes) -> None:
        super().__init__()
        width = sizes.width
        self.embed = nn.Conv1d(sizes.num_mels, width, BLOCK_KERNEL, padding=BLOCK_KERNEL // 2)
        self.norm = nn.LayerNorm(width, eps=NORM_EPS)
        self.convnext = nn.ModuleList(
            Block(width, sizes.inner, 1, "gamma") for _ in range(sizes.num_layers)
        )
        self.final_layer_norm = nn.LayerNorm(width, eps=NORM_EPS)

    def forward(self, mel: Tensor) -> Tensor:
        """Return one vector per frame."""
        value = self.norm(self.embed(mel).transpose(1, 2)).transpose(1, 2)
        for block in self.convnext:
            value = block(value)
        result: Tensor = self.final_layer_norm(value.transpose(1, 2))
        return result


class Head(nn.Module):
    """Magnitude and phase of each frame, and the inverse STFT of them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, 2 * NUM_BINS)
        self.window = from_numpy(hann_window())

    def forward(self, value: Tensor) -> Tensor:
        """Return the waveforms (B, 256 (F - 1)) of (B, F, C)."""
        magnitude, phase = self.out(value).transpose(1, 2).chunk(2, dim=1)
        magnitude = magnitude.exp().clamp(max=MAX_MAGNITUDE)
        spectrum = complex(magnitude * phase.cos(), magnitude * phase.sin())
        return istft(spectrum, N_FFT, HOP, window=self.window)


class Vocos(nn.Module):
    """Log-mel (B, M, F) -> waveform (B, 256 (F - 1))."""

    def __init__(self, sizes: VocosSizes) -> None:
        super().__init__()
        self.backbone = Backbone(sizes)
        self.head = Head(sizes.width)

    def forward(self, mel: Tensor) -> Tensor:
        """Return the waveforms of log-mels."""
        wave: Tensor = self.head(self.backbone(mel))
        return wave
