"""The last tuning: Decoder and Vocos on what the finished token model really gives them.

The token model stays as it is. The Decoder sees its hidden states after its own guesses, and Vocos
sees the Decoder's mel beside the teachers'.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from layout import FRAMES_PER_STEP, HOP
from torch import Tensor

from train_voice.codec_training import VOCOS_FRAMES, noisy
from train_voice.dvae import mel_loss
from train_voice.features import LogMel
from train_voice.gpt import TokenModel, mixed_precision
from train_voice.modules import Decoder
from train_voice.speech_data import SpeechData
from train_voice.token_data import Batch, TokenData
from train_voice.token_training import decoder_mels, hidden_of, teacher_mels, with_guesses
from train_voice.training import Draws, Trainee, optimizer_of, scalar, update
from train_voice.vocos import VocosTraining

PREDICTED_SHARE = 0.6
"""Crops that Vocos gets from the Decoder; the others are the teachers' mels."""


class Finishing:
    """Decoder and Vocos, and one step of their last tuning."""

    def __init__(
        self,
        model: TokenModel,
        decoder: Decoder,
        vocos: VocosTraining,
        data: TokenData,
        speech: SpeechData,
        batch_tokens: int,
    ) -> None:
        self._model, self._decoder, self._vocos = model, decoder, vocos
        self._data, self._speech, self._batch_tokens = data, speech, batch_tokens
        self._log_mel = LogMel()
        self._optimizer = optimizer_of(decoder)
        self.trainee = Trainee({"decoder": decoder}, [self._optimizer]).joined(vocos.trainee)

    def step(self, draws: Draws) -> Mapping[str, float]:
        """Take one step of both."""
        batch = self._data.draw(self._batch_tokens, draws.rng)
        with torch.no_grad(), mixed_precision():
            fed = with_guesses(self._model, batch, draws.rng)
            hidden, _ = hidden_of(self._model, batch, fed, ())
        made, mask = decoder_mels(self._decoder, hidden, batch)
        wanted = teacher_mels(batch.items, self._speech, self._log_mel, batch.codes.shape[1])
        loss = mel_loss(made, wanted * mask)
        update(loss, (self._decoder, self._optimizer))
        mels, waves = self._crops(batch, made.detach(), wanted, draws.rng)
        return {"decoder": scalar(loss), **self._vocos.step(mels, waves, adversarial=True)}

    def _crops(
        self, batch: Batch, made: Tensor, wanted: Tensor, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return mels (B, M, F) and the waveforms that they stand for, from random places."""
        mels, waves = [], []
        for row, item in enumerate(batch.items):
            num_frames = FRAMES_PER_STEP * len(item.words)
            start = int(rng.integers(max(1, num_frames - VOCOS_FRAMES + 1)))
            source = made if rng.random() < PREDICTED_SHARE else noisy(wanted)
            mel = source[row, :, start : start + VOCOS_FRAMES]
            if mel.shape[1] == VOCOS_FRAMES:
                count = HOP * (VOCOS_FRAMES - 1)
                mels.append(mel)
                waves.append(self._speech.wave(item.spoken, HOP * start, count))
        return torch.stack(mels), torch.stack(waves)
