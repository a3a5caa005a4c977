"""The files around the weights: tokenizer, voices, words, examples, the ear."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from artifacts import WORDS_FILE
from files import write_bytes
from tokenizer_file import write_tokenizer
from voice_copies import CHECKPOINT_FOLDER
from voice_format import SUFFIX, voice_content

from train_voice.corpus import Utterance, bare, domain_text, vocabulary, words_of
from train_voice.held_out import HELD_OUT_FILE
from train_voice.language_model import arpa, dictionary, read_pronunciations
from train_voice.recognizer import (
    DICTIONARY_FILE,
    EVALUATION_FOLDER,
    MODEL_FILE,
    pronouncing_dictionary,
)
from train_voice.settings import Settings
from train_voice.speakers import VOICES, Speakers
from train_voice.tokenizer import base_vocabulary

EXAMPLES_FILE = "example_sentences.txt"
NUM_EXAMPLES = 150


def write_text_files(root: Path, utterances: Sequence[Utterance], settings: Settings) -> None:
    """Write what follows from the corpus alone: tokenizer, words, examples, evaluation."""
    write_tokenizer(root / "asset" / "tokenizer", base_vocabulary())
    words = f"{' '.join(vocabulary('en'))}\n{''.join(vocabulary('zh'))}\n"
    write_bytes(root / WORDS_FILE, words.encode())
    held_out = [u for u in utterances if u.split != "train"]
    asked = {bare(u.text) for u in held_out}
    examples = dict.fromkeys(domain_text("en", 2 * NUM_EXAMPLES, asked, settings.seed))
    write_bytes(root / EXAMPLES_FILE, "\n".join([*list(examples)[:NUM_EXAMPLES], ""]).encode())
    _write_evaluation(root / EVALUATION_FOLDER, held_out, settings)


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
