"""How well a voice speaks sentences that it never met.

English is heard by the recognizer. For Mandarin the teacher's recordings of all held-out sentences
are compared: the nearest one must be that of the sentence. Both voices of English are told apart
in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from train_voice.export import VoiceModel
from train_voice.features import LogMel, speech_mel
from train_voice.held_out import HeldOut, first_set, thinned
from train_voice.nearest import nearest
from train_voice.recognizer import EVALUATION_FOLDER, Ear
from train_voice.speakers import VOICES
from train_voice.speaking import CheckpointSpeaker, Said, Speaker
from train_voice.synthesis import teacher_speech

Samples = npt.NDArray[np.float32]

VOICE_SENTENCES = 20
"""Sentences by which the English voices are told apart."""
RECORDINGS = 5
"""Recordings of each sentence by which a codec is judged after a training: one recording more or
less changes the figure by half a percent."""
_PEAK = 0.999
_TINY = 1e-9


def evaluate_checkpoint(root: Path, count: int) -> dict[str, Any]:
    """Return the figures of a checkpoint on its own held-out sentences, spoken in this process.

    Args:
        root: the checkpoint's folder.
        count: sentences per language, at most.
    """
    speaker = CheckpointSpeaker(root)
    ear = Ear(root / EVALUATION_FOLDER)
    held_out = thinned(first_set(root), count)
    resynthesis = partial(resynthesize, speaker.voice)
    return evaluate(speaker, ear, held_out, resynthesis, RECORDINGS)


def evaluate(
    speaker: Speaker,
    ear: Ear,
    held_out: Sequence[HeldOut],
    resynthesis: Callable[[Samples], Samples] | None = None,
    recordings: int = 1,
) -> dict[str, Any]:
    """Return the figures of whoever speaks.

    Args:
        speaker: a checkpoint or a server.
        ear: for the English sentences.
        held_out: what is said; a language without a sentence has no figures.
        resynthesis: what the codec makes of a recording, for one figure more.
        recordings: of the English teacher per sentence; no two have the same noise.
    """
    english = [item for item in held_out if item.language == "en"]
    mandarin = [item for item in held_out if item.language == "zh"]
    result: dict[str, Any] = {}
    if english:
        result["en"] = _english(speaker, english, ear, resynthesis, recordings)
    if mandarin:
        result["zh"] = _mandarin(speaker, mandarin)
    if english and len(names := _english_voices(speaker)) > 1:
        result["voices"] = _voices(speaker, names, [i.text for i in english[:VOICE_SENTENCES]])
    return result


def _english(
    speaker: Speaker,
    items: Sequence[HeldOut],
    ear: Ear,
    resynthesis: Callable[[Samples], Samples] | None,
    recordings: int,
) -> dict[str, Any]:
    texts = [item.text for item in items]
    said = speaker.say(texts, "en")
    pairs = _heard(ear, texts, (each.samples for each in said))
    recorded, recorded_texts = [*items] * recordings, texts * recordings
    teacher = [teacher_speech("slt", text) for text in recorded_texts]
    ceiling = _heard(ear, recorded_texts, teacher)
    total = ear.score(pairs)
    figures = {
        "sentences": len(texts),
        "words": total.num_words,
        "word_accuracy": round(total.accuracy, 4),
        "word_accuracy_by_split": _by_split(ear, items, pairs),
        "teacher_accuracy": round(ear.score(ceiling).accuracy, 4),
        "teacher_accuracy_by_split": _by_split(ear, recorded, ceiling),
        "recordings": recordings,
    }
    if resynthesis:
        made = _heard(ear, recorded_texts, map(resynthesis, teacher))
        figures["resynthesis_accuracy"] = round(ear.score(made).accuracy, 4)
    errors = [
        {"said": text, "heard": other}
        for text, other in pairs
        if ear.score([(text, other)]).num_errors
    ]
    return {**figures, "errors": errors, **_common(said, teacher[: len(said)])}


def _heard(ear: Ear, texts: Sequence[str], waves: Iterable[Samples]) -> list[tuple[str, str]]:
    """Return (said, heard) of each waveform (S,)."""
    return [(text, ear.hear(samples)) for text, samples in zip(texts, waves, strict=True)]


def _by_split(
    ear: Ear, items: Sequence[HeldOut], pairs: Sequence[tuple[str, str]]
) -> dict[str, float]:
    found = {}
    for split in dict.fromkeys(item.split for item in items):
        own = [pair for item, pair in zip(items, pairs, strict=True) if item.split == split]
        found[split] = round(ear.score(own).accuracy, 4)
    return found


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


def _english_voices(speaker: Speaker) -> list[str]:
    return [v.name for v in VOICES if v.language == "en" and v.name in speaker.voices]


def _voices(speaker: Speaker, names: Sequence[str], texts: Sequence[str]) -> dict[str, float]:
    """Return of each English voice how often its own teacher is the nearest one."""
    teachers = [voice.teacher for voice in VOICES if voice.name in names]
    mels = [[speech_mel(teacher_speech(teacher, text)) for teacher in teachers] for text in texts]
    result = {}
    for place, name in enumerate(names):
        said = speaker.say(texts, name)
        hits = [
            nearest(speech_mel(each.samples), candidates) == place
            for each, candidates in zip(said, mels, strict=True)
        ]
        result[name] = round(float(np.mean(hits)), 4)
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
def resynthesize(voice: VoiceModel, samples: Samples) -> Samples:
    """Return a recording after mel -> codes -> mel -> waveform."""
    codes = voice.dvae.encode(LogMel()(torch.from_numpy(samples)[None]))
    return np.asarray(voice.vocos(voice.dvae.decode(codes))[0].numpy())
