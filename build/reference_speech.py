"""The way from hidden states or codes to a waveform in plain NumPy.

Shapes: T steps, F mel frames (2 per step), S samples (512 T - 256, at 24 kHz).
"""

from __future__ import annotations

from typing import Any

import layout
import numpy as np
import numpy.typing as npt
import reference_ops as ops
from checkpoint import Array, Tensors
from istft_graph import MAX_MAGNITUDE
from layout import HOP, N_FFT, NUM_BINS
from vocoder_graph import RESIDUAL_SCALE, code_values

Integers = npt.NDArray[np.integer[Any]]


def hidden_to_mel(hidden: Array, decoder: Tensors, num_layers: int) -> Array:
    """Return the log-mel (F, mels) of hidden states (T, H), by Decoder.safetensors."""
    return _decode(hidden, decoder, num_layers)


def codes_to_mel(codes: Integers, dvae: Tensors, num_layers: int) -> Array:
    """Return the log-mel (F, mels) of codes (T, 4), by the decoder of DVAE.safetensors."""
    table = code_values()
    groups = []
    for group in range(layout.GROUPS):
        value = np.zeros((len(codes), layout.DIGITS), np.float32)
        for residual in range(layout.RESIDUALS):
            scale = np.float32(RESIDUAL_SCALE**residual)
            value = value + scale * table[codes[:, group * layout.RESIDUALS + residual]]
        prefix = f"vq_layer.quantizer.rvqs.{group}.project_out."
        groups.append(ops.linear(value, dvae, prefix))
    return _decode(np.concatenate(groups, axis=1), dvae, num_layers)


def _decode(features: Array, tensors: Tensors, num_layers: int) -> Array:
    # a step's two frames are the two halves of its channels
    frames = features.reshape(layout.FRAMES_PER_STEP * len(features), -1)
    value = ops.stack(frames, tensors, "decoder.", num_layers)
    mel = ops.conv(value, tensors, "out_conv.", layout.EDGE_KERNEL // 2)
    return mel * tensors["coef"].reshape(-1)


def mel_to_wave(mel: Array, vocos: Tensors, num_layers: int) -> Array:
    """Return the waveform (256 (F - 1),) of a log-mel (F, mels)."""
    value = ops.conv(mel, vocos, "backbone.embed.", layout.BLOCK_KERNEL // 2)
    value = ops.layer_norm(value, vocos, "backbone.norm.")
    for layer in range(num_layers):
        value = ops.block(value, vocos, f"backbone.convnext.{layer}.", "gamma", 1)
    value = ops.layer_norm(value, vocos, "backbone.final_layer_norm.")
    return _inverse_stft(ops.linear(value, vocos, "head.out."), vocos["head.istft.window"])


def _inverse_stft(head: Array, window: Array) -> Array:
    magnitude = np.minimum(np.exp(head[:, :NUM_BINS]), MAX_MAGNITUDE)
    phase = head[:, NUM_BINS:]
    spectrum = magnitude * (np.cos(phase) + 1j * np.sin(phase))
    frames = np.fft.irfft(spectrum, N_FFT, axis=1) * window
    total = np.zeros(HOP * (len(head) - 1) + N_FFT)
    envelope = np.zeros_like(total)
    for index, frame in enumerate(frames):
        span = slice(HOP * index, HOP * index + N_FFT)
        total[span] += frame
        envelope[span] += np.square(window, dtype=np.float64)
    inner = slice(N_FFT // 2, len(total) - N_FFT // 2)
    return (total[inner] / envelope[inner]).astype(np.float32)
