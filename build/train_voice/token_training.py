"""How the token model learns to speak, and the Decoder with it.

Four things make so small a model speak after little training on a CPU:

- one attention head of two layers is told which word is being spoken (the teacher knows when);
- after a while its own guesses replace part of the codes it is fed, else it leans on perfect pasts
  that it never has when it speaks;
- the first steps of words count more, the second residual stage is a constant (see `dvae`);
- the Decoder learns the mel from the hidden states at the same time and helps to shape them.

Now and then it copies text in mode text, so that the refine pass returns what it was given.

Letters in shapes: B rows, N positions, T steps, H hidden size, P positions that count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from layout import FRAMES_PER_STEP, HOP, NUM_CODEBOOKS, SAMPLES_PER_STEP
from torch import Tensor

from train_voice.copy_task import CopyTask
from train_voice.dvae import COARSE, mel_loss
from train_voice.features import LogMel, target
from train_voice.gpt import TokenModel
from train_voice.modules import Decoder
from train_voice.speech_data import SpeechData
from train_voice.token_data import END, NO_WORD, Batch, Item, TokenData
from train_voice.training import Draws, Trainee, mixed_precision, scalar

SPEECH_HEAD, COPY_HEAD = 0, 1
GUIDED_LAYERS = (1, 3)
GUIDED_WEIGHT = 0.3
FINE = tuple(codebook for codebook in range(NUM_CODEBOOKS) if codebook not in COARSE)
FINE_WEIGHT = 0.1
FINE_EVERY = 4
"""Of so many positions one teaches the constant codebooks."""
MEL_EVERY = 4
"""Steps of which one trains the Decoder."""
MEL_WEIGHT = 0.5
COPY_EVERY = 8
"""Steps of which one copies text instead of speaking."""
MOST_PASSES = 6
"""A guess is made of guesses, so many times at most: of the truth alone it would know too much."""
REPLACED = 1.6
"""A row's part of codes that guesses replace is drawn up to here; from 1 on it is all of them."""
TEMPERATURES = (0.25, 0.75)


class TokenTraining:
    """The token model, the Decoder, and one step of their training."""

    def __init__(
        self,
        model: TokenModel,
        decoder: Decoder,
        data: TokenData,
        speech: SpeechData,
        batch_tokens: int,
        sampling_from: int,
    ) -> None:
        self._model, self._decoder = model, decoder
        self._data, self._speech = data, speech
        self._batch_tokens, self._sampling_from = batch_tokens, sampling_from
        self._log_mel = LogMel()
        self._copy = CopyTask(data, model)
        layers = [layer for layer in GUIDED_LAYERS if layer < model.sizes.num_layers]
        self._watched = [(layer, SPEECH_HEAD) for layer in layers]
        self._copy_watched = [(layer, COPY_HEAD) for layer in layers]
        self.trainee = Trainee({"model": model, "decoder": decoder})

    def step(self, draws: Draws) -> Mapping[str, float]:
        """Take one step."""
        with mixed_precision():
            if draws.step % COPY_EVERY == COPY_EVERY - 1:
                loss, losses = self._copy.loss(self._batch_tokens, draws.rng, self._copy_watched)
            else:
                loss, losses = self._speak(draws)
        self.trainee.update(loss)
        return losses

    def _speak(self, draws: Draws) -> tuple[Tensor, dict[str, float]]:
        batch = self._data.draw(self._batch_tokens, draws.rng)
        fed = batch.codes
        if draws.step >= self._sampling_from:
            fed = with_guesses(self._model, batch, draws.rng)
        hidden, attention = hidden_of(self._model, batch, fed, self._watched)
        loss, losses = code_loss(self._model, hidden, batch)
        guided = guided_loss(attention, batch)
        losses["guided"] = scalar(guided)
        loss = loss + GUIDED_WEIGHT * guided
        if draws.step % MEL_EVERY == 0:
            made, mask = decoder_mels(self._decoder, hidden, batch)
            wanted = teacher_mels(batch.items, self._speech, self._log_mel, batch.codes.shape[1])
            mel = mel_loss(made, wanted * mask)
            loss = loss + MEL_WEIGHT * mel
            losses["mel"] = scalar(mel)
        return loss, losses


def with_guesses(model: TokenModel, batch: Batch, rng: np.random.Generator) -> Tensor:
    """Return the batch's codes (B, T, 4), of which the model's own guesses replace some."""
    guesses = batch.codes
    for _ in range(int(rng.integers(MOST_PASSES)) + 1):
        guesses = _guesses(model, batch, guesses, rng)
    share = torch.from_numpy(rng.uniform(0, REPLACED, len(batch.items))).float()
    replaced = torch.rand(batch.aligned.shape) < share[:, None]
    return torch.where(replaced[..., None], guesses, batch.codes)


@torch.no_grad()
def _guesses(model: TokenModel, batch: Batch, fed: Tensor, rng: np.random.Generator) -> Tensor:
    """Return what the model says at each step (B, T, 4) after the codes it is fed."""
    hidden, _ = hidden_of(model, batch, fed, ())
    guesses = batch.codes.clone()
    low, high = TEMPERATURES
    for codebook in COARSE:
        logits = model.embed.head_code[codebook](hidden[:, :-1])
        chances = (logits[..., :END].float() / rng.uniform(low, high)).softmax(dim=-1)
        # torch.multinomial would take a fifth of a step
        below = chances.cumsum(dim=-1) < torch.rand(*chances.shape[:2], 1)
        guesses[..., codebook] = below.sum(dim=-1).clamp(max=END - 1)
    return guesses


def decoder_mels(decoder: Decoder, hidden: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the Decoder's mel (B, M, 2 T) of hidden states (B, T + 1, H), 0 behind a row's end.

    And its mask (B, 1, 2 T).
    """
    exists = torch.arange(hidden.shape[1] - 1) < batch.lengths[:, None]
    mask = exists.repeat_interleave(FRAMES_PER_STEP, dim=1)[:, None].float()
    mel: Tensor = decoder(hidden[:, :-1].transpose(1, 2), mask)
    return mel * mask, mask


def hidden_of(
    model: TokenModel, batch: Batch, fed: Tensor, watched: Sequence[tuple[int, int]]
) -> tuple[Tensor, list[Tensor]]:
    """Return the hidden states (B, T + 1, H) that say each step's codes and then the end.

    Args:
        model: the token model.
        batch: prompts and lengths.
        fed: (B, T, 4) codes that the model is fed.
        watched: (layer, head) whose attention is returned too.

    Returns:
        The hidden states, and the log attention (B, T + 1, N) of each watched head.
    """
    prompts = model.embed_prompts(batch.ids, batch.is_speaker, batch.speakers)
    codes = model.embed.embed_codes(fed)
    rows, steps, hidden_size = codes.shape
    embeds = torch.zeros(rows, prompts.shape[1] + steps, hidden_size)
    embeds[:, : prompts.shape[1]] = prompts
    places = batch.prompt_lengths[:, None] + torch.arange(steps)
    embeds = embeds.scatter(1, places[..., None].expand(-1, -1, hidden_size), codes)
    hidden, attention = model.llama(embeds, watched)
    saying = batch.prompt_lengths[:, None] - 1 + torch.arange(steps + 1)
    row_numbers = torch.arange(rows)[:, None]
    return hidden[row_numbers, saying], [each[row_numbers, saying] for each in attention]


def code_loss(model: TokenModel, hidden: Tensor, batch: Batch) -> tuple[Tensor, dict[str, float]]:
    """Return the cross-entropy of hidden states (B, T + 1, H), and its parts for the log."""
    counts = batch.weights > 0
    chosen, weights = hidden[counts], batch.weights[counts]
    wanted = targets(batch)[counts]
    total, losses = torch.zeros(()), {}
    for codebook in COARSE:
        logits = model.embed.head_code[codebook](chosen)
        each = F.cross_entropy(logits, wanted[:, codebook], reduction="none")
        total = total + (each * weights).sum() / weights.sum()
        losses[f"code_{codebook}"] = scalar(each.mean())
    for codebook in FINE:
        logits = model.embed.head_code[codebook](chosen[::FINE_EVERY])
        each = F.cross_entropy(logits, wanted[::FINE_EVERY, codebook])
        total = total + FINE_WEIGHT * each
        losses["fine"] = scalar(each)
    return total, losses


def targets(batch: Batch) -> Tensor:
    """Return the codes (B, T + 1, 4) to be said, the end token behind each row's last step."""
    codes = F.pad(batch.codes, (0, 0, 0, 1))
    is_end = torch.arange(codes.shape[1]) == batch.lengths[:, None]
    return codes.masked_fill(is_end[..., None], END)


def guided_loss(attention: Sequence[Tensor], batch: Batch) -> Tensor:
    """Return how far the watched heads look elsewhere than at the word that is spoken.

    Args:
        attention: (B, T + 1, N) log attention of each head.
        batch: where to look.
    """
    is_word = batch.aligned != NO_WORD
    places = batch.aligned.clamp(min=0)[..., None]
    losses = [-each[:, :-1].gather(2, places)[..., 0][is_word].mean() for each in attention]
    return torch.stack(losses).mean()


def teacher_mels(items: Sequence[Item], speech: SpeechData, log_mel: LogMel, steps: int) -> Tensor:
    """Return the teachers' log-mels (B, M, 2 `steps`), with the targets' floor.

    Each item has so many frames that its steps are covered; what is behind its end is silence.
    """
    count = steps * SAMPLES_PER_STEP
    waves = torch.stack([speech.wave(item.spoken, 0, count) for item in items])
    return target(log_mel(waves))[:, :, : count // HOP]
