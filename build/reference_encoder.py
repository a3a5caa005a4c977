"""The audio-prompt encoder in plain NumPy: waveform -> log-mel -> codes.

This is what `make_voice.py` runs; nothing else needs the encoder. The quantiser is the one in
force when the published weights were made (specification variant A).
"""

from __future__ import annotations

import layout
import numpy as np
import numpy.typing as npt
import reference_ops as ops
from checkpoint import Array, Tensors
from layout import HOP, N_FFT
from vocoder_graph import RESIDUAL_SCALE

LOG_FLOOR = 1e-5
"""Smallest mel magnitude before the logarithm."""
QUANTIZER_RANGE = 2.002
"""A bounded number is this times a tanh before it is rounded to -2 ... 2."""
MIN_SAMPLES = N_FFT // 2 + 1
"""Reflect padding needs more samples than half a window."""


def log_mel(wave: Array, dvae: Tensors) -> Array:
    """Return the log-mel (S // 256 + 1, mels) of a 24 kHz mono waveform (S,) in -1 ... 1.

    Raises:
        ValueError: the waveform has fewer than 513 samples.
    """
    if len(wave) < MIN_SAMPLES:
        raise ValueError(f"wave: {len(wave)} samples, at least {MIN_SAMPLES} are needed")
    prefix = "preprocessor_mel.mel_spec."
    padded = np.pad(wave, N_FFT // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP]
    spectrum = np.fft.rfft(windows * dvae[f"{prefix}spectrogram.window"], axis=1)
    magnitude = np.abs(spectrum).astype(np.float32) @ dvae[f"{prefix}mel_scale.fb"]
    mel: Array = np.log(np.maximum(magnitude, np.float32(LOG_FLOOR)))
    return mel


def downsample(mel: Array, dvae: Tensors) -> Array:
    """Return (T, width) features of a log-mel (F, mels); T = F // 2."""
    pad = layout.EDGE_KERNEL // 2
    value = mel / dvae["coef"].reshape(-1)
    value = ops.gelu(ops.conv(value, dvae, "downsample_conv.0.", pad))
    return ops.gelu(ops.conv(value, dvae, "downsample_conv.2.", pad, stride=layout.FRAMES_PER_STEP))


def features(wave: Array, dvae: Tensors, num_layers: int) -> Array:
    """Return what is quantised of a waveform (S,): (T, groups * width), T = frames // 2."""
    return ops.stack(downsample(log_mel(wave, dvae), dvae), dvae, "encoder.", num_layers)


def encode(wave: Array, dvae: Tensors, num_layers: int) -> npt.NDArray[np.int32]:
    """Return the codes (T, 4) in 0 ... 624 of a 24 kHz mono waveform (S,).

    Raises:
        ValueError: the waveform has fewer than 513 samples.
    """
    groups = np.split(features(wave, dvae, num_layers), layout.GROUPS, axis=1)
    codes = [_quantize(part, dvae, group) for group, part in enumerate(groups)]
    return np.concatenate(codes, axis=1)


def _quantize(part: Array, dvae: Tensors, group: int) -> npt.NDArray[np.int32]:
    """Return the codes (T, residual stages) of one group's features."""
    prefix = f"vq_layer.quantizer.rvqs.{group}.project_in."
    rest = _bound(ops.linear(part, dvae, prefix))
    powers = layout.LEVELS ** np.arange(layout.DIGITS)
    middle = layout.LEVELS // 2
    codes = []
    for residual in range(layout.RESIDUALS):
        scale = np.float32(RESIDUAL_SCALE**residual)
        levels = np.rint(_bound(rest / scale))
        rest = rest - levels / middle * scale
        codes.append((levels + middle).astype(np.int32) @ powers)
    return np.stack(codes, axis=1).astype(np.int32)


def _bound(value: Array) -> Array:
    return np.float32(QUANTIZER_RANGE) * np.tanh(value)
