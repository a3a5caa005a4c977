"""The files around the weights: tokenizer, voices, words, examples, the ear, provenance."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from artifacts import WORDS_FILE
from files import write_bytes, write_json
from tokenizer_file import write_tokenizer
from voice_copies import CHECKPOINT_FOLDER
from voice_format import SUFFIX, voice_content

from train_voice.corpus import Utterance, bare, domain_text, vocabulary, words_of
from train_voice.language_model import arpa, dictionary, read_pronunciations
from train_voice.recognizer import DICTIONARY_FILE, MODEL_FILE, pronouncing_dictionary
from train_voice.settings import Settings
from train_voice.speakers import VOICES, Speakers
from train_voice.tokenizer import base_vocabulary

EVALUATION_FOLDER = "evaluation"
HELD_OUT_FILE = "held_out.jsonl"
EXAMPLES_FILE = "example_sentences.txt"
PROVENANCE_FILE = "provenance.json"
NUM_EXAMPLES = 150
OPENINGS_DRAWN = 3000
_PACKAGES = ("torch", "numpy", "pypinyin", "soxr", "tokenizers", "pocketsphinx")
_DEBIAN_PACKAGES = ("flite", "espeak-ng")


def write_text_files(root: Path, utterances: Sequence[Utterance], settings: Settings) -> None:
    """Write what follows from the corpus alone: tokenizer, words, examples, evaluation."""
    write_tokenizer(root / "asset" / "tokenizer", base_vocabulary())
    words = f"{' '.join(vocabulary('en'))}\n{''.join(vocabulary('zh'))}\n"
    write_bytes(root / WORDS_FILE, words.encode())
    examples = [u.text for u in utterances if u.split == "train" and u.teacher == "slt"]
    openings = {_opening(text) for text in domain_text("en", OPENINGS_DRAWN, (), settings.seed)}
    chosen = dict.fromkeys(bare(text) for text in examples if _opening(text) in openings)
    write_bytes(root / EXAMPLES_FILE, "\n".join([*list(chosen)[:NUM_EXAMPLES], ""]).encode())
    held_out = [u for u in utterances if u.split != "train"]
    _write_evaluation(root / EVALUATION_FOLDER, held_out, settings)


def _opening(text: str) -> str:
    """Return the first two words, which tell a sentence from a list of random words."""
    return " ".join(words_of(text)[:2])


def _write_evaluation(folder: Path, held_out: Sequence[Utterance], settings: Settings) -> None:
    lines = [
        json.dumps({"language": u.language, "split": u.split, "text": u.text}, ensure_ascii=False)
        for u in held_out
    ]
    write_bytes(folder / HELD_OUT_FILE, "\n".join([*lines, ""]).encode())
    excluded = {bare(u.text) for u in held_out}
    texts = domain_text("en", settings.language_model_sentences, excluded, settings.seed)
    words = vocabulary("en")
    model = arpa(map(words_of, texts), words)
    write_bytes(folder / MODEL_FILE, model.encode())
    known = read_pronunciations(pronouncing_dictionary())
    write_bytes(folder / DICTIONARY_FILE, dictionary(words, known).encode())


def write_voices(root: Path, speakers: Speakers, date: str) -> None:
    """Write a file per voice, with its speaker vector."""
    for voice in VOICES:
        facts = {
            "languages": [voice.language],
            "gender": voice.gender,
            "description": voice.description,
            "license": "Apache-2.0",
            "provenance": {
                "method": "training",
                "source": f"this checkpoint, taught by {voice.description.split('by ')[1]}",
                "tool": "build/train_voice",
                "date": date,
            },
        }
        content = voice_content(voice.name, facts, speakers.vectors[voice.teacher])
        write_bytes(root / CHECKPOINT_FOLDER / f"{voice.name}{SUFFIX}", content)


def write_provenance(root: Path, settings: Settings, facts: dict[str, Any], date: str) -> None:
    """Write where the weights come from: seeds, versions, commit, hours of speech, steps."""
    write_json(
        root / PROVENANCE_FILE,
        {
            "settings": settings.name,
            "seed": settings.seed,
            "date": date,
            "commit": _output("git", "rev-parse", "HEAD"),
            "python": platform.python_version(),
            "packages": {name: version(name) for name in _PACKAGES},
            "teachers": {
                name: _output("dpkg-query", "-W", "-f", "${Version}", name)
                for name in _DEBIAN_PACKAGES
            },
            **facts,
        },
    )


def _output(*command: str) -> str:
    """Return what a command prints, or "unknown" where it is missing or fails."""
    try:
        run = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return run.stdout.strip()
