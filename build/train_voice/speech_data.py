"""The spoken corpus on disk: one file of samples, one line of facts per utterance.

Letters in shapes: S samples, B rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from files import write_bytes
from layout import HOP, SAMPLES_PER_STEP
from torch import Tensor

from train_voice.corpus import Split, Utterance

SAMPLES_FILE = "samples.i16"
FACTS_FILE = "utterances.jsonl"
_SCALE = 32767


@dataclass(frozen=True, slots=True)
class Spoken:
    """An utterance as it lies in the corpus."""

    utterance: Utterance
    offset: int
    """Its first sample in the file."""
    num_samples: int
    spans: Sequence[tuple[float, float]]
    """Start and end of each word, in seconds."""

    @property
    def num_steps(self) -> int:
        """Steps of the token model: half its mel frames."""
        return (self.num_samples // HOP + 1) // (SAMPLES_PER_STEP // HOP)


class SpeechData:
    """Reads the corpus of a folder.

    Raises:
        FileNotFoundError: there is none.
    """

    def __init__(self, folder: Path) -> None:
        lines = (folder / FACTS_FILE).read_text(encoding="utf-8").splitlines()
        self.all = [_from_json(json.loads(line)) for line in lines]
        self._samples = np.memmap(folder / SAMPLES_FILE, np.int16, "r")

    def of(self, *splits: Split, teachers: Sequence[str] = ()) -> list[Spoken]:
        """Return the utterances of some splits, and of some teachers if any are given."""
        return [
            spoken
            for spoken in self.all
            if spoken.utterance.split in splits
            and (not teachers or spoken.utterance.teacher in teachers)
        ]

    def wave(self, spoken: Spoken, start: int = 0, count: int | None = None) -> Tensor:
        """Return samples (S,) of an utterance from `start`, zeros beyond its end."""
        wanted = spoken.num_samples if count is None else count
        first = spoken.offset + start
        last = min(first + wanted, spoken.offset + spoken.num_samples)
        samples = np.zeros(wanted, np.float32)
        samples[: max(0, last - first)] = self._samples[first:last]
        return torch.from_numpy(samples / _SCALE)

    def crops(
        self, pool: Sequence[Spoken], rows: int, count: int, rng: np.random.Generator
    ) -> Tensor:
        """Return (B, `count`) samples cut at random places of random utterances of a pool."""
        lengths = np.array([spoken.num_samples for spoken in pool], np.float64)
        chosen = rng.choice(len(pool), rows, p=lengths / lengths.sum())
        waves = []
        for index in chosen:
            latest = max(1, pool[index].num_samples - count + 1)
            waves.append(self.wave(pool[index], int(rng.integers(latest)), count))
        return torch.stack(waves)


class SpeechWriter:
    """Writes a corpus; the facts come last, so a folder that has them is whole."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._file = (folder / SAMPLES_FILE).open("wb")
        self._facts: list[str] = []
        self._offset = 0

    def add(
        self,
        utterance: Utterance,
        samples: npt.NDArray[np.float32],
        spans: Sequence[tuple[float, float]],
    ) -> None:
        """Append one utterance."""
        pcm = _pcm(samples)
        self._file.write(pcm.tobytes())
        facts = {
            **asdict(utterance),
            "offset": self._offset,
            "num_samples": len(pcm),
            "spans": [[round(start, 4), round(end, 4)] for start, end in spans],
        }
        self._facts.append(json.dumps(facts, ensure_ascii=False) + "\n")
        self._offset += len(pcm)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._file.close()
        if kind is None:
            write_bytes(self._folder / FACTS_FILE, "".join(self._facts).encode())


def as_stored(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return samples (S,) as a corpus gives them back.

    Rounding to 16 bits is heard by no one, but it is all that the networks were ever shown of
    silence and of what lies above a teacher's band: finer samples are strange to them.
    """
    return _pcm(samples).astype(np.float32) / _SCALE


def _pcm(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.int16]:
    pcm: npt.NDArray[np.int16] = np.round(np.clip(samples, -1, 1) * _SCALE).astype("<i2")
    return pcm


def _from_json(facts: dict[str, Any]) -> Spoken:
    utterance = Utterance(*(facts[name] for name in ("text", "language", "teacher", "split")))
    spans = [(start, end) for start, end in facts["spans"]]
    return Spoken(utterance, facts["offset"], facts["num_samples"], spans)
