"""Where a run starts that goes on from a trained voice, instead of from nothing.

The codec stays as it is: its codes are the language of the token model. Vocos, the token model and
the Decoder learn further, from whatever sentences the corpus has now. Words that the voice has not
met begin as they would in a new one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import layout
from checkpoint import Checkpoint
from files import sha256, write_json
from torch import Tensor, nn

from train_voice.about import PROVENANCE_FILE
from train_voice.export import read_tokenizer, read_voice
from train_voice.features import LogMel
from train_voice.settings import Settings
from train_voice.tokenizer import VoiceTokenizer
from train_voice.training import Trainee, optimizer_of, save
from train_voice.vocos import VocosTraining

START_FILE = "start.json"
"""In the work folder: the provenance of the voice it started from."""
_TEXT_TABLES = ("embed.emb_text.weight", "embed.head_text.weight")
"""One row per text id."""


class StartError(ValueError):
    """A voice that no run of these settings can start from; the message says why."""


def digest(start: Path | None) -> str:
    """Return what tells one starting point from another, "" for nothing.

    Raises:
        StartError: there is no token model.
    """
    if start is None:
        return ""
    path = start / layout.TENSOR_FILES["gpt"]
    if not path.exists():
        raise StartError(f"{start} is no checkpoint: {path} is missing")
    return sha256(path)


def write_starting_point(
    work: Path, start: Path, model: nn.Module, tokenizer: VoiceTokenizer, settings: Settings
) -> None:
    """Write the states that the training stages then find, as if they had saved them.

    Args:
        work: the run's folder.
        start: a checkpoint of `train_voice`.
        model: the token model of the run, untrained; it takes over what `start` has learnt.
        tokenizer: of the run.
        settings: of the run.

    Raises:
        StartError: it was not trained by `train_voice`, or with other sizes.
        CheckpointError: it is not a whole checkpoint.
    """
    path = start / PROVENANCE_FILE
    if not path.exists():
        raise StartError(f"{start} was not made by train_voice: it has no {PROVENANCE_FILE}")
    provenance = json.loads(path.read_text(encoding="utf-8"))
    _check_fits(start, provenance["seed"], settings)
    voice = read_voice(start)
    before, after = read_tokenizer(start).vocabulary(), tokenizer.vocabulary()
    model.load_state_dict(_carried(voice.model.state_dict(), model.state_dict(), before, after))
    optimizers = [optimizer_of(module) for module in (model, voice.decoder)]
    codec = Trainee({"dvae": voice.dvae}, [optimizer_of(voice.dvae)])
    save(work / "dvae", codec, provenance["steps"]["dvae"])
    save(work / "vocos", VocosTraining(voice.vocos, LogMel()).trainee, 0)
    save(work / "gpt", Trainee({"model": model, "decoder": voice.decoder}, optimizers), 0)
    provenance.pop("figures", None)
    write_json(work / START_FILE, provenance)


def _check_fits(start: Path, seed: int, settings: Settings) -> None:
    found, wanted = Checkpoint.open(start), settings.sizes
    pairs = {
        "seed": (seed, settings.seed),
        "token model": (found.gpt, wanted.gpt(found.gpt.num_text_tokens)),
        "Decoder": (found.decoder, wanted.decoder),
        "DVAE": (found.dvae, wanted.dvae),
        "Vocos": (found.vocos, wanted.vocos),
    }
    for name, (there, here) in pairs.items():
        if there != here:
            raise StartError(f"{start}: {name} is {there}, the settings say {here}")


def _carried(
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    ids_before: Mapping[str, int],
    ids_after: Mapping[str, int],
) -> dict[str, Tensor]:
    """Return the weights of `before`; of the tables of text, the rows go to the same tokens."""
    kept = [token for token in ids_after if token in ids_before]
    carried = dict(before)
    for name in _TEXT_TABLES:
        table = after[name].clone()
        table[[ids_after[token] for token in kept]] = before[name][
            [ids_before[token] for token in kept]
        ]
        carried[name] = table
    return carried
