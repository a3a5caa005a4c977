"""Where a run starts that goes on from a trained voice, instead of from nothing.

The codes stay, since they are the language of the token model: the DVAE's encoder is fixed. All
else learns further, from whatever sentences the corpus has now. Words that the voice has not met
begin as they would in a new one; what it kept back stays kept back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import layout
from artifacts import WORDS_FILE
from checkpoint import Checkpoint
from files import sha256
from torch import Tensor

from train_voice.about import PROVENANCE_FILE
from train_voice.corpus import TEACHERS, KeptBack, Utterance
from train_voice.export import read_tokenizer, read_voice
from train_voice.features import LogMel
from train_voice.gpt import TokenModel
from train_voice.held_out import HELD_OUT_FILE
from train_voice.recognizer import EVALUATION_FOLDER
from train_voice.settings import Settings
from train_voice.stage_folder import note_basis
from train_voice.tokenizer import VoiceTokenizer
from train_voice.training import Trainee, save
from train_voice.vocos import VocosTraining

START_FILE = "start.json"
"""In the work folder: the provenance of the voice it started from."""
_TEXT_TABLES = ("embed.emb_text.weight", "embed.head_text.weight")
"""One row per text id."""

Facts = dict[str, Any]


class StartError(ValueError):
    """A voice that no run of these settings can start from; the message says why."""


def start_facts(start: Path, settings: Settings) -> Facts:
    """Return the provenance of a voice to start from, without figures, and what tells it apart.

    Raises:
        StartError: it was not trained by `train_voice`, or with other sizes.
        CheckpointError: it is not a whole checkpoint.
    """
    facts = _provenance(start)
    _check_texts(start)
    found, wanted = Checkpoint.open(start), settings.sizes
    pairs = {
        "token model": (found.gpt, wanted.gpt(found.gpt.num_text_tokens)),
        "Decoder": (found.decoder, wanted.decoder),
        "DVAE": (found.dvae, wanted.dvae),
        "Vocos": (found.vocos, wanted.vocos),
    }
    if facts["seed"] != settings.seed:
        raise StartError(f"{start}: its seed is {facts['seed']}, the settings say {settings.seed}")
    for name, (there, here) in pairs.items():
        if there != here:
            raise StartError(f"{start}: its {name} has other sizes than the settings say")
    files = (*layout.TENSOR_FILES.values(), layout.TOKENIZER_FILE)
    digests = "".join(sha256(start / file) for file in files)
    return {**facts, "weights": hashlib.sha256(digests.encode()).hexdigest()}


def _provenance(start: Path) -> Facts:
    path = start / PROVENANCE_FILE
    if not start.is_dir():
        raise StartError(f"there is no folder {start}")
    if not path.exists():
        raise StartError(f"{start} was not made by train_voice: it has no {PROVENANCE_FILE}")
    try:
        facts: Facts = json.loads(path.read_text(encoding="utf-8"))
        facts.pop("figures", None)
        for each in chain(facts):
            _ = each["seed"], each["commit"], each["hours"], each["steps"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StartError(f"{path} is no provenance of train_voice: {error!r}") from error
    return facts


def _check_texts(start: Path) -> None:
    read_tokenizer(start)
    try:
        kept_back(start)
    except (OSError, ValueError, TypeError) as error:
        raise StartError(f"{start} does not say what it kept back: {error}") from error


def start_of(work: Path) -> Facts | None:
    """Return the facts of the voice that a work folder goes on from, None if from nothing.

    Raises:
        StartError: they are damaged.
    """
    path = work / START_FILE
    if not path.exists():
        return None
    try:
        facts: Facts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StartError(f"{path} is damaged: {error}") from error
    return facts


def chain(facts: Facts | None) -> list[Facts]:
    """Return the facts of a voice, of the voice that it started from, and so on."""
    return [] if facts is None else [facts, *chain(facts.get("start"))]


def kept_back(start: Path) -> KeptBack:
    """Return the sentences that a voice never met, and the words that it knows."""
    english, mandarin = (start / WORDS_FILE).read_text(encoding="utf-8").splitlines()
    lines = (start / EVALUATION_FOLDER / HELD_OUT_FILE).read_text(encoding="utf-8").splitlines()
    held_out = [
        Utterance(**item, teacher=TEACHERS[item["language"]][0]) for item in map(json.loads, lines)
    ]
    return KeptBack(held_out, frozenset([*english.split(), *mandarin]))


def write_states(work: Path, start: Path, model: TokenModel, tokenizer: VoiceTokenizer) -> None:
    """Write the states of all trained stages, as if they had saved them.

    Args:
        work: the run's folder.
        start: a checkpoint that `start_facts` accepts.
        model: the token model of the run, untrained; it takes over what `start` has learnt.
        tokenizer: of the run.
    """
    voice = read_voice(start)
    before, after = read_tokenizer(start).vocabulary(), tokenizer.vocabulary()
    model.load_state_dict(_carried(voice.model.state_dict(), model.state_dict(), before, after))
    voice.dvae.fix_codes()
    save(work / "dvae", Trainee({"dvae": voice.dvae}), 0)
    save(work / "vocos", VocosTraining(voice.vocos, LogMel()).trainee, 0)
    save(work / "gpt", Trainee({"model": model, "decoder": voice.decoder}), 0)
    note_basis(work / "gpt", voice.dvae.encoder_name())


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
