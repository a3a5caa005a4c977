"""What a work folder is for: no run goes on with what another recipe made."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from files import write_json

from train_voice.corpus import GRAMMARS, KIND_SHARES
from train_voice.settings import Settings
from train_voice.starting_point import START_FILE, StartError, start_facts, start_of
from train_voice.token_data import TEACHER_SHARES

RECIPE_FILE = "recipe.json"
SENTENCES_FILE = "sentences.jsonl"


class WrongFolder(RuntimeError):
    """The work folder holds what does not fit; the message says what."""


def claim(work: Path, settings: Settings, start: Path | None = None) -> None:
    """Note in a new work folder what it is for, and check one that is not new.

    Durations are no part of that: a stage may be given more steps later.

    Args:
        work: the folder.
        settings: of the run.
        start: the voice that it goes on from; need not be said again.

    Raises:
        WrongFolder: it was made by other settings, other templates, from another voice or by an
            older version.
        StartError, CheckpointError: the run cannot start from that voice; one in its own folder is
            such a voice.
    """
    path, recipe = work / RECIPE_FILE, _recipe(settings)
    if start is not None and start.resolve().is_relative_to(work.resolve()):
        raise StartError(f"{start} lies in {work}, which the run writes to: use another folder")
    facts = None if start is None else start_facts(start, settings)
    if not path.exists():
        if (work / SENTENCES_FILE).exists():
            raise WrongFolder(f"{work} was made by an older version: use another folder")
        if facts is not None:
            write_json(work / START_FILE, facts)
        write_json(path, recipe)
        return
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise WrongFolder(f"{path} is damaged: {error}") from error
    others = [name for name, value in recipe.items() if noted.get(name) != value]
    if others:
        raise WrongFolder(f"{work} was made with other {', '.join(others)}: use another folder")
    if facts not in (None, start_of(work)):
        raise WrongFolder(
            f"{work} started from another voice than {start} is now: use another folder, or name "
            "no voice to go on with what is there"
        )


def _recipe(settings: Settings) -> dict[str, Any]:
    """Return what all stages of a folder must agree on, as JSON gives it back."""
    templates = [[g.templates, g.held_out, dict(g.slots)] for g in GRAMMARS.values()]
    digest = hashlib.sha256(json.dumps(templates, ensure_ascii=False).encode()).hexdigest()
    recipe = {
        "settings": settings.name,
        "seed": settings.seed,
        "corpus": asdict(settings.corpus),
        "sizes": asdict(settings.sizes),
        "adversarial_from": settings.adversarial_from,
        "kinds of sentences": KIND_SHARES,
        "shares of teachers": TEACHER_SHARES,
        "templates": digest,
    }
    as_json: dict[str, Any] = json.loads(json.dumps(recipe))
    return as_json
