"""The sentences of an evaluation: those that a corpus kept back, and a second set.

Settings of the recognizer and of a training are chosen with the first set in sight. The second one
is there to be asked at the end: it is of other templates, none of which any corpus has.
"""

from __future__ import annotations

import dataclasses
import json
import random
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from train_voice.corpus import GRAMMARS, Language, bare, domain_text, words_of
from train_voice.language_model import arpa
from train_voice.recognizer import DICTIONARY_FILE, EVALUATION_FOLDER, MODEL_FILE, Ear

HELD_OUT_FILE = "held_out.jsonl"
SECOND = "second"
SECOND_SEED = 2026
SECOND_COUNT = 100
"""Sentences per language: some 1,000 English words."""
_EAR_SENTENCES = 20_000
"""Of which its ear learns what follows what."""

_SECOND_TEMPLATES: dict[Language, tuple[str, ...]] = {
    "en": (
        "{person} is at the {place} and {person} is at the {place}",
        "{name} will call you back at {clock}",
        "please write {person} {a_quality} letter {when}",
        "can i have {food}, {food} and {food}, please",
        "the {vehicle} takes {n99} minutes from the {place} to the {place}",
        "on {day} it was {weather} and {day} will be {weather}",
        "the {machine} was offline from {clock} to {clock}",
        "i cannot find the {place}, can you help me",
        "the {quality} {thing} is {price}, the {color} {thing} is {price}",
        "{meal} costs {price} at the {place}",
        "{person} does not speak {language}",
        "we want to travel to {city} in {month}",
        "are you ready to {verb}, {name}",
        "is there {a_quality} {place} near the {place}",
        "the {vehicle} to the {place} will be {n99} minutes late {when}",
        "your {thing} and my {thing} are in the {vehicle}",
        "{n99} percent of the people speak {language}",
        "please close the {color} {thing}, it is {weather} here",
        "error {n99}, your {file} was not sent to {name}",
        "my room is number {n999}, what is your number",
        "{person} lost {a_quality} {thing} on {day}",
        "he was in {city} on {date}",
        "is the {color} {thing} in the {place} for {person}",
        "{a_quality} {animal} and {a_quality} {animal} walk to the {place}",
    ),
    "zh": (
        "{person}{daypart}在{place}{verb}",
        "{day}{daypart}{city}{weather}吗",
        "我的{thing}在{vehicle}上",
        "{person}想买{color}的{thing}",
        "{food}{n99}元，{food}{n99}元",
        "{clock}的{vehicle}已经走了",
        "{machine}{day}{daypart}更新",
        "{person}在{city}学习{language}",
        "{place}前边有{animal}和{animal}",
        "{person}不喜欢{food}，喜欢{food}",
        "{year}我们去{city}旅行",
        "{person}的{animal}比{person}的{animal}{quality}",
    ),
}


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A sentence that was not trained on."""

    language: str
    split: str
    text: str


def first_set(root: Path) -> list[HeldOut]:
    """Return what the corpus of a checkpoint kept back, templates that it kept back included.

    Args:
        root: the checkpoint's folder.
    """
    path = root / EVALUATION_FOLDER / HELD_OUT_FILE
    return [HeldOut(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def second_set() -> list[HeldOut]:
    """Return the sentences of the second set, always the same ones."""
    found = []
    for language, templates in _SECOND_TEMPLATES.items():
        rng = random.Random(f"{SECOND_SEED}/{language}")
        grammar = dataclasses.replace(GRAMMARS[language], templates=templates)
        texts: dict[str, str] = {}
        while len(texts) < SECOND_COUNT:
            text = grammar.fill(rng.choice(templates), rng)
            texts.setdefault(bare(text), text)
        found += [HeldOut(language, SECOND, text) for text in texts.values()]
    return found


@contextmanager
def second_ear(folder: Path) -> Iterator[Ear]:
    """Yield an ear for the second set: it knows other sentences of its templates.

    A bigram model of the first templates alone makes the teacher's own words worse than they are
    heard: half of the pairs in a new template are new to it.

    Args:
        folder: with the dictionary.
    """
    excluded = {bare(item.text) for item in second_set()}
    more = _SECOND_TEMPLATES["en"]
    texts = domain_text("en", _EAR_SENTENCES, excluded, SECOND_SEED, more)
    pronounced = (folder / DICTIONARY_FILE).read_text(encoding="utf-8")
    words = {line.partition(" ")[0].partition("(")[0] for line in pronounced.splitlines()}
    with tempfile.TemporaryDirectory() as name:
        made = Path(name)
        (made / DICTIONARY_FILE).write_text(pronounced, encoding="utf-8")
        (made / MODEL_FILE).write_text(arpa(map(words_of, texts), sorted(words)), encoding="utf-8")
        yield Ear(made)


def thinned(items: Sequence[HeldOut], count: int) -> list[HeldOut]:
    """Return up to `count` sentences of each language; all splits keep their shares."""
    chosen = []
    for language in dict.fromkeys(item.language for item in items):
        same = [item for item in items if item.language == language]
        keep = np.linspace(0, len(same) - 1, min(count, len(same))).round().astype(int)
        chosen += [same[index] for index in keep]
    return chosen


def made_of(items: Iterable[HeldOut], words: Collection[str]) -> list[HeldOut]:
    """Return the sentences of which all words (Han characters) are among `words`."""
    known = set(words)
    return [item for item in items if known >= set(words_of(item.text))]
