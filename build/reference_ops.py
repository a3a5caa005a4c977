"""The layers of the model in plain NumPy, channel-last, float32; written to be read.

Shapes: F frames, C channels, N rows. Inputs are never changed.
"""

from __future__ import annotations

import math

import layout
import numpy as np
from checkpoint import Array, Tensors

_erf = np.frompyfunc(math.erf, 1, 1)


def gelu(value: Array) -> Array:
    """Return the exact GELU, x * (1 + erf(x / sqrt 2)) / 2."""
    erf = _erf(value.astype(np.float64) / math.sqrt(2)).astype(np.float32)
    result: Array = value * (1 + erf) / 2
    return result


def silu(value: Array) -> Array:
    """Return x * sigmoid(x)."""
    result: Array = value / (1 + np.exp(-value))
    return result


def softmax(value: Array) -> Array:
    """Return the softmax over the last axis; -inf entries become 0."""
    shifted = np.exp(value - value.max(axis=-1, keepdims=True))
    result: Array = shifted / shifted.sum(axis=-1, keepdims=True)
    return result


def rms_norm(value: Array, weight: Array, epsilon: float) -> Array:
    """Return w * x / sqrt(mean(x^2) + epsilon) over the last axis."""
    mean = np.mean(np.square(value), axis=-1, keepdims=True)
    result: Array = weight * (value / np.sqrt(mean + np.float32(epsilon)))
    return result


def layer_norm(value: Array, tensors: Tensors, prefix: str) -> Array:
    """Return the affine LayerNorm over the last axis."""
    centred = value - value.mean(axis=-1, keepdims=True)
    variance = np.mean(np.square(centred), axis=-1, keepdims=True)
    normed = centred / np.sqrt(variance + np.float32(layout.NORM_EPS))
    result: Array = normed * tensors[f"{prefix}weight"] + tensors[f"{prefix}bias"]
    return result


def linear(value: Array, tensors: Tensors, prefix: str) -> Array:
    """Return x W^T + b."""
    return value @ tensors[f"{prefix}weight"].T + tensors[f"{prefix}bias"]


def conv(
    value: Array, tensors: Tensors, prefix: str, pad: int, stride: int = 1, dilation: int = 1
) -> Array:
    """Convolve (F, C) with `prefix`weight (outputs, C, taps), or (C, 1, taps) depthwise.

    `pad` zero frames are added at both ends; the bias is optional.
    """
    weight = tensors[f"{prefix}weight"]
    taps = weight.shape[2]
    padded = np.pad(value, ((pad, pad), (0, 0)))
    length = (len(padded) - (taps - 1) * dilation - 1) // stride + 1
    is_depthwise = weight.shape[1] == 1 and value.shape[1] > 1
    total = np.zeros((length, weight.shape[0]), np.float32)
    for tap in range(taps):
        seen = padded[tap * dilation :][: (length - 1) * stride + 1 : stride]
        matrix = weight[:, :, tap]
        total += seen * matrix[:, 0] if is_depthwise else seen @ matrix.T
    return total + tensors[f"{prefix}bias"] if f"{prefix}bias" in tensors else total


def block(value: Array, tensors: Tensors, prefix: str, scale: str, dilation: int) -> Array:
    """Return one ConvNeXt block of (F, C): depthwise, norm, two linear layers, scale, residual."""
    pad = layout.BLOCK_KERNEL // 2 * dilation
    inner = conv(value, tensors, f"{prefix}dwconv.", pad, dilation=dilation)
    inner = layer_norm(inner, tensors, f"{prefix}norm.")
    inner = gelu(linear(inner, tensors, f"{prefix}pwconv1."))
    inner = linear(inner, tensors, f"{prefix}pwconv2.")
    return value + inner * tensors[f"{prefix}{scale}"]


def stack(value: Array, tensors: Tensors, prefix: str, num_layers: int) -> Array:
    """Return one convolution stack of (F, input channels): Decoder, DVAE encoder or decoder."""
    edge = layout.EDGE_KERNEL // 2
    value = gelu(conv(value, tensors, f"{prefix}conv_in.0.", edge))
    value = conv(value, tensors, f"{prefix}conv_in.2.", edge)
    for layer in range(num_layers):
        name = f"{prefix}decoder_block.{layer}."
        value = block(value, tensors, name, "weight", layout.STACK_DILATION)
    return conv(value, tensors, f"{prefix}conv_out.", 0)
