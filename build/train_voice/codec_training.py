"""Trains the DVAE and Vocos on crops of the teachers' speech, and encodes the corpus.

Letters in shapes: B rows, F mel frames, M mel bins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from files import atomic_path
from layout import HOP, SAMPLES_PER_STEP
from torch import Tensor

from train_voice.dvae import DROP_FINE, Dvae, mel_loss, without_fine
from train_voice.features import LogMel, target
from train_voice.modules import Vocos
from train_voice.settings import Settings
from train_voice.speech_data import SpeechData
from train_voice.token_data import CODES_FILE
from train_voice.training import Draws, Trainee, load_module, scalar, train
from train_voice.vocos import VocosTraining

DVAE_STEPS = 56
"""Steps of a crop for the DVAE."""
VOCOS_FRAMES = 82
"""Mel frames of a crop for Vocos."""
MEL_NOISE = 0.05
"""Noise on the teachers' mels that Vocos is fed."""
STATISTICS_CROPS = 64

Say = Callable[[str], None]


def train_dvae(
    folder: Path,
    speech: SpeechData,
    settings: Settings,
    seed: int,
    say: Say,
    *,
    fixed_codes: bool = False,
) -> None:
    """Train the DVAE to the end of its schedule, or, with `fixed_codes`, what follows its codes."""
    log_mel, pool = LogMel(), speech.of("train")
    torch.manual_seed(seed)
    dvae = Dvae(settings.sizes.dvae)
    count = DVAE_STEPS * SAMPLES_PER_STEP
    rng = np.random.default_rng(seed)
    spread = target(log_mel(speech.crops(pool, STATISTICS_CROPS, count, rng))).std(dim=(0, 2))
    dvae.coef.copy_(spread.clamp(min=0.1).view(1, -1, 1))
    if fixed_codes:
        dvae.fix_codes()
    trainee = Trainee({"dvae": dvae})

    def step_once(draws: Draws) -> Mapping[str, float]:
        waves = speech.crops(pool, settings.dvae_rows, count, draws.rng)
        mel = log_mel(waves)[:, :, : count // HOP]
        keep_fine = (torch.rand(len(waves), 1, 1) >= DROP_FINE).float()
        features, codes = dvae.quantize(mel, keep_fine)
        made, wanted = dvae(features), target(mel)
        loss = mel_loss(made, wanted)
        trainee.update(loss)
        distances = (made - wanted).abs().mean(dim=(1, 2)).detach()
        coarse = keep_fine.view(-1) == 0
        return {
            "loss": scalar(loss),
            **({"coarse": scalar(distances[coarse].mean())} if coarse.any() else {}),
            **({"fine": scalar(distances[~coarse].mean())} if (~coarse).any() else {}),
            "codes_used": float(len(torch.bincount(codes[..., 0].flatten()).nonzero())),
        }

    train(folder, trainee, settings.dvae, seed, step_once, say)


def train_vocos(
    folder: Path, dvae_folder: Path, speech: SpeechData, settings: Settings, seed: int, say: Say
) -> None:
    """Train Vocos to the end of its schedule.

    It is fed the teachers' mels, and as often what the DVAE makes of them: what it will get when
    it serves comes from a decoder, and is smoother than a recording's mel.
    """
    log_mel, pool = LogMel(), speech.of("train")
    dvae = Dvae(settings.sizes.dvae)
    load_module(dvae_folder, "dvae", dvae)
    torch.manual_seed(settings.seed)
    training = VocosTraining(Vocos(settings.sizes.vocos), log_mel)
    count = HOP * (VOCOS_FRAMES - 1)

    def step_once(draws: Draws) -> Mapping[str, float]:
        waves = speech.crops(pool, settings.vocos_rows, count, draws.rng)
        mel = log_mel(waves)
        true, smooth = mel[::2], mel[1::2]
        fed = torch.empty_like(mel)
        fed[::2] = target(true) + MEL_NOISE * torch.randn_like(true)
        fed[1::2] = _as_decoded(dvae, smooth)
        return training.step(fed, waves, draws.step >= settings.adversarial_from)

    train(folder, training.trainee, settings.vocos, seed, step_once, say)


@torch.no_grad()
def _as_decoded(dvae: Dvae, mel: Tensor) -> Tensor:
    """Return log-mels (B, M, F), F even, after the codec, half of them without the fine codes."""
    features, _ = dvae.quantize(mel, (torch.rand(len(mel), 1, 1) >= DROP_FINE).float())
    decoded: Tensor = dvae(features)
    return decoded


@torch.no_grad()
def encode_corpus(folder: Path, dvae_folder: Path, speech: SpeechData, settings: Settings) -> None:
    """Write the codes that the token model shall say for every utterance, one after the other."""
    dvae, log_mel = Dvae(settings.sizes.dvae), LogMel()
    load_module(dvae_folder, "dvae", dvae)
    rows = []
    for spoken in speech.all:
        mel = log_mel(speech.wave(spoken)[None])
        # one by one: a row's end must be its own end, not padding
        rows.append(without_fine(dvae.encode(mel))[0].to(torch.int16).numpy())
    ordered = np.concatenate(rows)
    with atomic_path(folder / CODES_FILE) as path, path.open("wb") as file:
        np.save(file, ordered)
