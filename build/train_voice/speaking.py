"""Who is evaluated: a checkpoint in this process, a server that has loaded it, or the teachers.

Letters in shapes: S samples.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import urllib.error
import urllib.request
import wave
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from layout import SAMPLE_RATE
from reference_gpt import normalize_speaker
from voice_copies import CHECKPOINT_FOLDER
from voice_format import SUFFIX, decode_speaker

from train_voice.export import VoiceModel, read_tokenizer, read_voice
from train_voice.generation import Sampling, generate
from train_voice.speakers import VOICES
from train_voice.synthesis import teacher_speech
from train_voice.tokenizer import SPEAKER

MAX_STEPS = 600
"""12.8 s: no held-out sentence is half as long."""
ROWS = 16
CONCURRENCY = 8
TIMEOUT_SECONDS = 120
_GENERATE = "/v2/models/chattts_unary/generate"
_MOST_SAID = 500
"""Bytes of a refusal that are shown."""


@dataclass(frozen=True, slots=True)
class Said:
    """What came of one text."""

    samples: npt.NDArray[np.float32]
    """(S,) at 24 kHz"""
    has_ended: bool
    """Whether the end token came by itself."""


class SpeakerError(RuntimeError):
    """A server could not be asked, or did not speak; the message says why."""


class Speaker(Protocol):
    """Says texts with one of its voices."""

    @property
    def voices(self) -> Collection[str]:
        """Return their names."""
        ...

    def say(self, texts: Sequence[str], voice: str) -> list[Said]:
        """Return the speech of each text."""
        ...


class CheckpointSpeaker:
    """A checkpoint, spoken by torch in this process, with the published sampling."""

    def __init__(self, root: Path, seed: int = 1) -> None:
        self.voice: VoiceModel = read_voice(root)
        self._tokenizer = read_tokenizer(root)
        self._root, self._seed = root, seed
        self.voices = voices_of(root)

    @torch.no_grad()
    def say(self, texts: Sequence[str], voice: str) -> list[Said]:
        """Return the speech of each text; similar lengths share a batch."""
        file = self._root / CHECKPOINT_FOLDER / f"{voice}{SUFFIX}"
        vector = decode_speaker(json.loads(file.read_text(encoding="utf-8"))["speaker"])
        speaker = torch.from_numpy(normalize_speaker(vector))
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        said: dict[int, Said] = {}
        for start in range(0, len(order), ROWS):
            rows = order[start : start + ROWS]
            prompts = [self._tokenizer.prompt(texts[index], has_speaker=True) for index in rows]
            generated = generate(
                self.voice.model, prompts, speaker.expand(len(rows), -1),
                self._tokenizer.id(SPEAKER), MAX_STEPS, Sampling(), self._seed + start,
            )  # fmt: skip
            for index, row in zip(rows, generated, strict=True):
                said[index] = Said(self._sound(row.hidden), row.has_ended)
        return [said[index] for index in range(len(texts))]

    def _sound(self, hidden: torch.Tensor) -> npt.NDArray[np.float32]:
        if len(hidden) == 0:
            return np.zeros(0, np.float32)
        mel = self.voice.decoder(hidden.T[None])
        return np.asarray(self.voice.vocos(mel)[0].numpy(), np.float32)


class ServerSpeaker:
    """A running server, asked over HTTP.

    Args:
        url: of its HTTP port, such as http://localhost:8000
        voices: names of the English voices that it has loaded, and of others.
        seed: of every request.

    Raises:
        SpeakerError: that is no such URL.
    """

    def __init__(self, url: str, voices: Collection[str], seed: int = 1) -> None:
        if not url.startswith(("http://", "https://")):
            raise SpeakerError(f"{url!r} is no URL such as http://localhost:8000")
        self._server, self.voices, self._seed = url.rstrip("/"), voices, seed

    def say(self, texts: Sequence[str], voice: str) -> list[Said]:
        """Return the speech of each text.

        Raises:
            SpeakerError: the server cannot be reached, refused a text, or is no such server.
        """
        with ThreadPoolExecutor(CONCURRENCY) as pool:
            return list(pool.map(lambda text: self._say(text, voice), texts))

    def _say(self, text: str, voice: str) -> Said:
        body = {"text": text, "voice": voice, "seed": self._seed, "encoding": "wav_base64"}
        answer = self._answer(json.dumps(body).encode())
        try:
            reasons = json.loads(answer["metadata"])["finish_reasons"]
            samples = _samples(base64.b64decode(answer["audio_bytes"]))
        except (KeyError, TypeError, ValueError, wave.Error, EOFError) as error:
            raise SpeakerError(f"{self._server} answered something else than speech") from error
        return Said(samples, set(reasons) == {"eos"})

    def _answer(self, body: bytes) -> Any:
        try:
            request = urllib.request.Request(self._server + _GENERATE, body)
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            said = error.read(_MOST_SAID).decode(errors="replace").strip()
            raise SpeakerError(f"{self._server}: {error} {said}".strip()) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise SpeakerError(f"{self._server}: {error}") from error


class TeacherSpeaker:
    """The teachers themselves: what a voice could reach at best."""

    voices = tuple(voice.name for voice in VOICES)

    def say(self, texts: Sequence[str], voice: str) -> list[Said]:
        """Return the speech of each text."""
        (teacher,) = (each.teacher for each in VOICES if each.name == voice)
        return [Said(teacher_speech(teacher, text), True) for text in texts]


def voices_of(root: Path) -> list[str]:
    """Return the names of the voices in a checkpoint's folder, sorted."""
    return sorted(path.stem for path in (root / CHECKPOINT_FOLDER).glob(f"*{SUFFIX}"))


def _samples(data: bytes) -> npt.NDArray[np.float32]:
    with wave.open(io.BytesIO(data)) as file:
        if (file.getframerate(), file.getsampwidth()) != (SAMPLE_RATE, 2):
            raise ValueError(f"a WAV of {SAMPLE_RATE} Hz and 16 bits was expected")
        pcm = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    return pcm.astype(np.float32) / 32768
