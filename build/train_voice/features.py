"""Log-mel features in torch, the same numbers as `reference_encoder.log_mel`.

Letters in shapes: B rows, S samples, F mel frames, M mel bins.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from layout import HOP, N_FFT, SAMPLE_RATE
from make_checkpoint import NUM_MELS, hann_window, mel_filters
from reference_encoder import LOG_FLOOR
from torch import Tensor

TARGET_FLOOR = math.log(1e-2)
"""What lies below is silence to the decoders: they need not learn the noise of silence."""


class LogMel:
    """Waveforms (B, S) -> log-mel (B, M, S // 256 + 1), natural logarithm of magnitudes."""

    def __init__(self) -> None:
        self.window = torch.from_numpy(hann_window())
        self.filters = torch.from_numpy(mel_filters(NUM_MELS))

    def __call__(self, waves: Tensor) -> Tensor:
        """Return the log-mel of waveforms of at least 513 samples, floored at 1e-5."""
        spectrum = torch.stft(
            waves, N_FFT, HOP, window=self.window, pad_mode="reflect", return_complex=True
        )
        mel = self.filters.T @ spectrum.abs()
        return torch.log(mel.clamp(min=LOG_FLOOR))


def target(mel: Tensor) -> Tensor:
    """Return a log-mel with the floor of the decoders' targets."""
    return mel.clamp(min=TARGET_FLOOR)


def speech_mel(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the log-mel (F, M) of a waveform (S,), with that floor; at least 0.1 s of it."""
    padded = np.pad(samples, (0, max(0, SAMPLE_RATE // 10 - len(samples))))
    return np.asarray(target(_log_mel()(torch.from_numpy(padded)[None]))[0].T.numpy())


@cache
def _log_mel() -> LogMel:
    return LogMel()
