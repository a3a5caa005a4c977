"""Has the teachers say the corpus, on all cores."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from train_voice.corpus import Utterance
from train_voice.speech_data import SpeechWriter, as_stored
from train_voice.teachers import Speech, Teacher, TeacherError, make_teacher

GAINS = {"slt": 0.6, "rms": 1.1, "cmn": 0.9}
"""What makes the teachers about equally loud."""
MAX_REFUSED = 0.01
"""Part of the utterances that teachers may read otherwise; more is a fault."""
REPORT_EVERY = 1000


def synthesize(
    folder: Path, utterances: Sequence[Utterance], say: Callable[[str], None] = print
) -> None:
    """Write the spoken corpus into `folder`.

    The teachers' noise and phase go on from the utterance before, so two runs give nearly, not
    exactly, the same samples. What a teacher does not read as it was written is left out.

    Raises:
        TeacherError: a library is missing, or too much was left out.
    """
    for name in {utterance.teacher for utterance in utterances}:
        make_teacher(name)
    refused: list[str] = []
    with SpeechWriter(folder) as writer, multiprocessing.get_context("spawn").Pool() as pool:
        spoken = pool.imap(_speak, utterances, chunksize=32)
        for done, (utterance, speech) in enumerate(zip(utterances, spoken, strict=True), start=1):
            if isinstance(speech, str):
                refused.append(speech)
            else:
                writer.add(utterance, speech.samples, speech.spans)
            if done % REPORT_EVERY == 0:
                say(f"synthesis: {done}/{len(utterances)} utterances")
        if len(refused) > MAX_REFUSED * len(utterances):
            raise TeacherError(f"{len(refused)} utterances were read otherwise: {refused[:3]}")
    if refused:
        say(f"synthesis: {len(refused)} left out, such as: {refused[0]}")


def teacher_speech(teacher: str, text: str) -> npt.NDArray[np.float32]:
    """Return the samples (S,) of a teacher at 24 kHz, as they would be in the corpus.

    Raises:
        TeacherError: its library is missing, or it read something else.
    """
    return as_stored(_teacher(teacher).say(text).samples * np.float32(GAINS[teacher]))


def _speak(utterance: Utterance) -> Speech | str:
    teacher = _teacher(utterance.teacher)
    try:
        speech = teacher.say(utterance.text)
    except TeacherError as error:
        return str(error)
    return Speech(speech.samples * np.float32(GAINS[utterance.teacher]), speech.spans)


@cache
def _teacher(name: str) -> Teacher:
    return make_teacher(name)
