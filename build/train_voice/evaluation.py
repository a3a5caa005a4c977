"""How well a voice speaks sentences that it never met.

English is heard by the recogniser. For Mandarin the teacher's recordings of all held-out sentences
are compared: the nearest one must be that of the sentence. Both voices of English are told apart
in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from layout import SAMPLE_RATE

from train_voice.export import VoiceModel
from train_voice.features import LogMel, speech_mel
from train_voice.nearest import nearest
from train_voice.package import EVALUATION_FOLDER, HELD_OUT_FILE
from train_voice.recognizer import Recognizer, WordScore, read_homophones, score
from train_voice.speakers import VOICES
from train_voice.speaking import CheckpointSpeaker, Said, Speaker
from train_voice.synthesis import teacher_speech

Samples = npt.NDArray[np.float32]

VOICE_SENTENCES = 20
"""Sentences by which the English voices are told apart."""
_PEAK = 0.999
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A sentence that was not trained on."""

    language: str
    split: str
    text: str


def read_held_out(folder: Path, count: int) -> list[HeldOut]:
    """Return up to `count` sentences of each language, those of held-out templates included.

    Args:
        folder: the checkpoint's.
        count: of each language; both kinds keep their shares.
    """
    lines = (folder / EVALUATION_FOLDER / HELD_OUT_FILE).read_text(encoding="utf-8").splitlines()
    found = [HeldOut(**json.loads(line)) for line in lines]
    chosen = []
    for language in dict.fromkeys(item.language for item in found):
        items = [item for item in found if item.language == language]
        keep = np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int)
        chosen += [items[index] for index in keep]
    return chosen


def evaluate_checkpoint(root: Path, count: int) -> dict[str, Any]:
    """Return the figures of a checkpoint, spoken in this process."""
    speaker = CheckpointSpeaker(root)
    return evaluate(speaker, root, count, partial(_resynthesis, speaker.voice))


def evaluate(
    speaker: Speaker,
    root: Path,
    count: int,
    resynthesis: Callable[[Samples], Samples] | None = None,
) -> dict[str, Any]:
    """Return the figures of whoever speaks.

    Args:
        speaker: a checkpoint or a server.
        root: the checkpoint's folder, for the held-out sentences and the recogniser.
        count: sentences per language, at most.
        resynthesis: what the codec makes of a recording, for one figure more.
    """
    held_out = read_held_out(root, count)
    english = [item for item in held_out if item.language == "en"]
    mandarin = [item for item in held_out if item.language == "zh"]
    return {
        "en": _english(speaker, english, Ear(root / EVALUATION_FOLDER), resynthesis),
        "zh": _mandarin(speaker, mandarin),
        "voices": _voices(speaker, [item.text for item in english[:VOICE_SENTENCES]]),
    }


class Ear:
    """The recogniser and what it cannot tell apart.

    Args:
        folder: with the language model and the dictionary.
    """

    def __init__(self, folder: Path) -> None:
        self._recognizer, self._homophones = Recognizer(folder), read_homophones(folder)

    def hear(self, waves: Iterable[Samples]) -> list[str]:
        """Return the words in each waveform (S,)."""
        return [self._recognizer.hear(samples, SAMPLE_RATE) for samples in waves]

    def score(self, texts: Sequence[str], heard: Sequence[str]) -> WordScore:
        """Count the word errors."""
        return score(list(zip(texts, heard, strict=True)), self._homophones)

    def accuracy(self, texts: Sequence[str], waves: Iterable[Samples]) -> float:
        """Return the part of the words that is heard right."""
        return round(self.score(texts, self.hear(waves)).accuracy, 4)


def _english(
    speaker: Speaker,
    items: Sequence[HeldOut],
    ear: Ear,
    resynthesis: Callable[[Samples], Samples] | None,
) -> dict[str, Any]:
    texts = [item.text for item in items]
    said = speaker.say(texts, "en")
    heard = ear.hear(each.samples for each in said)
    teacher = [teacher_speech("slt", text) for text in texts]
    total = ear.score(texts, heard)
    splits = {}
    for split in dict.fromkeys(item.split for item in items):
        rows = [index for index, item in enumerate(items) if item.split == split]
        part = ear.score([texts[row] for row in rows], [heard[row] for row in rows])
        splits[split] = round(part.accuracy, 4)
    ceilings = {"teacher_accuracy": ear.accuracy(texts, teacher)}
    if resynthesis:
        ceilings["resynthesis_accuracy"] = ear.accuracy(texts, map(resynthesis, teacher))
    return {
        "sentences": len(texts),
        "words": total.num_words,
        "word_accuracy": round(total.accuracy, 4),
        "word_accuracy_by_split": splits,
        **ceilings,
        "errors": [
            {"said": text, "heard": other}
            for text, other in zip(texts, heard, strict=True)
            if ear.score([text], [other]).num_errors
        ],
        **_common(said, teacher),
    }


def _mandarin(speaker: Speaker, items: Sequence[HeldOut]) -> dict[str, Any]:
    texts = [item.text for item in items]
    said = speaker.say(texts, "zh")
    teacher = [teacher_speech("cmn", text) for text in texts]
    mels = [speech_mel(samples) for samples in teacher]
    found = [nearest(speech_mel(each.samples), mels) for each in said]
    hits = [index == place for place, index in enumerate(found)]
    misses = [
        {"said": texts[place], "nearest": texts[index]}
        for place, index in enumerate(found)
        if index != place
    ]
    return {
        "sentences": len(texts),
        "nearest_teacher": round(float(np.mean(hits)), 4),
        "misses": misses,
        **_common(said, teacher),
    }


def _voices(speaker: Speaker, texts: Sequence[str]) -> dict[str, float]:
    """Return of each English voice how often its own teacher is the nearer one."""
    voices = [voice for voice in VOICES if voice.language == "en"]
    mels = [[speech_mel(teacher_speech(voice.teacher, text)) for voice in voices] for text in texts]
    result = {}
    for place, voice in enumerate(voices):
        said = speaker.say(texts, voice.name)
        hits = [
            nearest(speech_mel(each.samples), candidates) == place
            for each, candidates in zip(said, mels, strict=True)
        ]
        result[voice.name] = round(float(np.mean(hits)), 4)
    return result


def _common(said: Sequence[Said], teacher: Sequence[Samples]) -> dict[str, Any]:
    ratios = [len(each.samples) / len(other) for each, other in zip(said, teacher, strict=True)]
    return {
        "ended": round(float(np.mean([each.has_ended for each in said])), 4),
        "duration_ratio": {
            "mean": round(float(np.mean(ratios)), 3),
            "min": round(min(ratios), 3),
            "max": round(max(ratios), 3),
        },
        "signal": signal_figures([each.samples for each in said]),
    }


def signal_figures(waves: Sequence[Samples]) -> dict[str, float]:
    """Return what is wrong or right with the samples as such, over all waveforms (S,)."""
    joined = np.concatenate(waves) if waves else np.zeros(0, np.float32)
    joined = joined if len(joined) else np.zeros(1, np.float32)
    level = 10 * np.log10(float(np.mean(np.square(joined, dtype=np.float64))) + _TINY)
    return {
        "not_finite": int((~np.isfinite(joined)).sum()),
        "clipped": int((np.abs(joined) >= _PEAK).sum()),
        "offset": round(float(joined.mean(dtype=np.float64)), 5),
        "level_dbfs": round(level, 1),
    }


@torch.no_grad()
def _resynthesis(voice: VoiceModel, samples: Samples) -> Samples:
    """Return a recording after mel -> codes -> mel -> waveform."""
    codes = voice.dvae.encode(LogMel()(torch.from_numpy(samples)[None]))
    return np.asarray(voice.vocos(voice.dvae.decode(codes))[0].numpy())
