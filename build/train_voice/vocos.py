"""How Vocos is trained: spectra at three resolutions, the mel, and later a discriminator's opinion.

The spectral losses alone leave a buzz, since they say little about phase. The discriminator looks
at complex spectra, where a wrong phase shows.

Letters in shapes: B rows, S samples, F mel frames, M mel bins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train_voice.features import LogMel
from train_voice.modules import Vocos
from train_voice.training import Trainee, mixed_precision, scalar

RESOLUTIONS = (2048, 512, 160)
"""STFT frames of the spectral loss, in samples."""
DISCRIMINATED = (1024, 400)
"""STFT frames that the discriminators look at."""
MEL_WEIGHT = 2.0
ADVERSARIAL_WEIGHT = 0.1
FEATURE_WEIGHT = 0.2
DISCRIMINATED_ROWS = 5
"""Rows of a batch that the discriminators see: they cost more than Vocos itself."""
_SMALLEST = 1e-4
SLOPE = 0.1


class Discriminator(nn.Module):
    """Says of each place of a spectrum how much it looks like speech."""

    def __init__(self, n_fft: int) -> None:
        super().__init__()
        self._n_fft = n_fft
        self.register_buffer("window", torch.hann_window(n_fft), persistent=False)
        shapes = [(2, 16, (7, 3)), (16, 24, (5, 3)), (24, 32, (5, 3))]
        self.layers = nn.ModuleList(
            nn.Conv2d(inputs, outputs, kernel, stride=(2, 1), padding=(kernel[0] // 2, 1))
            for inputs, outputs, kernel in shapes
        )
        self.layers.append(nn.Conv2d(32, 32, 3, padding=1))
        self.output = nn.Conv2d(32, 1, 3, padding=1)

    def forward(self, waves: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the opinion and the inner values on waveforms (B, S)."""
        window = self.get_buffer("window")
        spectrum = torch.stft(
            waves, self._n_fft, self._n_fft // 4, window=window, return_complex=True
        )
        # loud and quiet parts count alike, the phase stays
        value = torch.view_as_real(spectrum).permute(0, 3, 1, 2)
        value = value / (value.square().sum(dim=1, keepdim=True) + _SMALLEST) ** 0.35
        inner = []
        with mixed_precision():
            for layer in self.layers:
                value = F.leaky_relu(layer(value), SLOPE)
                inner.append(value)
            opinion: Tensor = self.output(value).float()
        return opinion, inner


def spectral_loss(made: Tensor, wanted: Tensor) -> Tensor:
    """Return the distance of the magnitude spectra of two waveforms (B, S)."""
    total = torch.zeros(())
    for n_fft in RESOLUTIONS:
        first, second = _magnitude(made, n_fft), _magnitude(wanted, n_fft)
        total = total + torch.linalg.norm(second - first) / torch.linalg.norm(second)
        total = total + F.l1_loss(first.log(), second.log())
    return total / len(RESOLUTIONS)


def _magnitude(waves: Tensor, n_fft: int) -> Tensor:
    window = torch.hann_window(n_fft)
    spectrum = torch.stft(waves, n_fft, n_fft // 4, window=window, return_complex=True)
    # not abs(): its gradient at zero is not a number
    return torch.view_as_real(spectrum).square().sum(dim=-1).clamp(min=_SMALLEST**2).sqrt()


class VocosTraining:
    """Vocos and its discriminators."""

    def __init__(self, vocos: Vocos, log_mel: LogMel) -> None:
        self.vocos, self._log_mel = vocos, log_mel
        self._judges = nn.ModuleList(Discriminator(n_fft) for n_fft in DISCRIMINATED)
        self.trainee = Trainee(
            {"vocos": vocos, "judges": self._judges}, rate_factors={"judges": 0.5}
        )

    def step(self, mel: Tensor, waves: Tensor, adversarial: bool) -> Mapping[str, float]:
        """Take one step towards `waves`.

        Args:
            mel: (B, M, F) log-mel, as the vocoder will get it.
            waves: (B, 256 (F - 1)) what it should sound like.
            adversarial: whether the discriminators take part.
        """
        made = self.vocos(mel)
        spectral = spectral_loss(made, waves)
        mel_distance = F.l1_loss(self._log_mel(made), self._log_mel(waves))
        loss = spectral + MEL_WEIGHT * mel_distance
        losses = {"spectral": scalar(spectral), "mel": scalar(mel_distance)}
        if adversarial:
            few_made, few_real = made[:DISCRIMINATED_ROWS], waves[:DISCRIMINATED_ROWS]
            losses["judge"] = self._train_judges(few_made.detach(), few_real)
            opinion, features = self._opinion(few_made, few_real)
            loss = loss + ADVERSARIAL_WEIGHT * opinion + FEATURE_WEIGHT * features
            losses |= {"opinion": scalar(opinion), "features": scalar(features)}
        self.trainee.update(loss, "vocos")
        return losses

    def _train_judges(self, made: Tensor, real: Tensor) -> float:
        loss = torch.zeros(())
        for judge in self._judges:
            loss = loss + F.relu(1 - judge(real)[0]).mean() + F.relu(1 + judge(made)[0]).mean()
        self.trainee.update(loss, "judges")
        return scalar(loss)

    def _opinion(self, made: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        opinion, features = torch.zeros(()), torch.zeros(())
        for judge in self._judges:
            verdict, inner = judge(made)
            with torch.no_grad():
                _, wanted = judge(real)
            opinion = opinion - verdict.mean()
            features = features + _mean(map(F.l1_loss, inner, wanted))
        return opinion, features


def _mean(values: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(values)).mean()
