"""Batches for the token model: prompts, codes, and which word is spoken at each step.

Letters in shapes: B rows, N prompt positions, T steps of the longest row, H hidden size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from layout import NUM_CODEBOOKS, NUM_CODES, SAMPLE_RATE, SAMPLES_PER_STEP
from torch import Tensor

from train_voice.dvae import ZERO_CODE
from train_voice.speakers import Speakers
from train_voice.speech_data import SpeechData, Spoken
from train_voice.tokenizer import SPEAKER, Prompt, VoiceTokenizer

END = NUM_CODES
"""The end token, in every codebook."""
CODES_FILE = "codes.npy"
NO_WORD = -1
STEPS_PER_SECOND = SAMPLE_RATE / SAMPLES_PER_STEP
TEACHER_SHARES = {"slt": 0.62, "rms": 0.18, "cmn": 0.2}
ONSET_WEIGHTS = (3.0, 2.0, 2.0)
"""How much the first steps of a word count: a wrong beginning is a wrong word."""
END_WEIGHT = 2.0
_BUCKETS = 8
"""Batches' worth of items that are drawn at once, so that rows of one batch are alike in length."""


@dataclass(frozen=True, slots=True)
class Item:
    """An utterance ready to be learnt."""

    spoken: Spoken
    prompts: tuple[Prompt, Prompt]
    """Without and with a speaker."""
    words: npt.NDArray[np.int64]
    """(T,) the word spoken at each step, NO_WORD in pauses."""

    @property
    def length(self) -> int:
        """Positions of prompt and speech."""
        return len(self.prompts[0].ids) + len(self.words)


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of prompt and speech; what is behind a row's end is padding."""

    items: Sequence[Item]
    ids: Tensor
    """(B, N) text ids."""
    is_speaker: Tensor
    """(B, N) bool, where a row's speaker stands."""
    speakers: Tensor
    """(B, H), zeros where a row has none."""
    prompt_lengths: Tensor
    """(B,)"""
    codes: Tensor
    """(B, T, 4), ZERO_CODE behind the end."""
    lengths: Tensor
    """(B,) steps."""
    aligned: Tensor
    """(B, T) prompt position of the word that is spoken, NO_WORD in pauses and behind the end."""
    weights: Tensor
    """(B, T + 1) how much each step counts, and the end token; 0 behind it."""


class TokenData:
    """Items of the training utterances, and batches of them."""

    def __init__(
        self, data: SpeechData, codes_folder: Path, tokenizer: VoiceTokenizer, speakers: Speakers
    ) -> None:
        self._codes = np.load(codes_folder / CODES_FILE, mmap_mode="r")
        self._offsets = dict(zip(map(id, data.all), _offsets(data.all), strict=True))
        self._speakers = speakers
        self.tokenizer = tokenizer
        self._pools = {
            teacher: [self.item(spoken) for spoken in data.of("train", teachers=[teacher])]
            for teacher in TEACHER_SHARES
        }

    def item(self, spoken: Spoken) -> Item:
        """Return the item of an utterance."""
        text = spoken.utterance.text
        prompts = (self.tokenizer.prompt(text, False), self.tokenizer.prompt(text, True))
        return Item(spoken, prompts, words_at_steps(spoken))

    def texts(self, count: int, rng: np.random.Generator) -> list[str]:
        """Return some texts of the corpus."""
        teachers = rng.choice(list(TEACHER_SHARES), count, p=list(TEACHER_SHARES.values()))
        pools = [self._pools[teacher] for teacher in teachers]
        return [pool[int(rng.integers(len(pool)))].spoken.utterance.text for pool in pools]

    def draw(self, positions: int, rng: np.random.Generator) -> Batch:
        """Return a batch of about so many positions, rows of similar length."""
        items: list[Item] = []
        while sum(item.length for item in items) < _BUCKETS * positions:
            teacher = str(rng.choice(list(TEACHER_SHARES), p=list(TEACHER_SHARES.values())))
            pool = self._pools[teacher]
            items.append(pool[int(rng.integers(len(pool)))])
        items.sort(key=lambda item: item.length)
        stop = int(rng.integers(len(items))) + 1
        # the last one is the longest
        rows = max(1, positions // items[stop - 1].length)
        return self.batch(items[max(0, stop - rows) : stop], rng)

    def batch(self, items: Sequence[Item], rng: np.random.Generator | None = None) -> Batch:
        """Return a batch of items; without `rng` each has its voice's own speaker."""
        speakers = [
            self._speakers.own(item.spoken.utterance.teacher)
            if rng is None
            else self._speakers.draw(item.spoken.utterance.teacher, rng)
            for item in items
        ]
        prompts = [
            item.prompts[speaker is not None] for item, speaker in zip(items, speakers, strict=True)
        ]
        rows, steps = len(items), max(len(item.words) for item in items)
        ids = np.zeros((rows, max(len(prompt.ids) for prompt in prompts)), np.int64)
        codes = np.full((rows, steps, NUM_CODEBOOKS), ZERO_CODE, np.int64)
        aligned = np.full((rows, steps), NO_WORD, np.int64)
        weights = np.zeros((rows, steps + 1), np.float32)
        slots = np.zeros((rows, self._speakers.size), np.float32)
        for row, (item, prompt, speaker) in enumerate(zip(items, prompts, speakers, strict=True)):
            count = len(item.words)
            ids[row, : len(prompt.ids)] = prompt.ids
            codes[row, :count] = self._codes_of(item.spoken)
            is_word = item.words != NO_WORD
            aligned[row, :count][is_word] = np.array(prompt.word_positions)[item.words[is_word]]
            weights[row, :count] = step_weights(item.words)
            weights[row, count] = END_WEIGHT
            if speaker is not None:
                slots[row] = speaker
        return Batch(
            items,
            torch.from_numpy(ids),
            torch.from_numpy(ids == self.tokenizer.id(SPEAKER)),
            torch.from_numpy(slots),
            torch.tensor([len(prompt.ids) for prompt in prompts]),
            torch.from_numpy(codes),
            torch.tensor([len(item.words) for item in items]),
            torch.from_numpy(aligned),
            torch.from_numpy(weights),
        )

    def _codes_of(self, spoken: Spoken) -> npt.NDArray[np.int64]:
        start = self._offsets[id(spoken)]
        return np.asarray(self._codes[start : start + spoken.num_steps], np.int64)


def words_at_steps(spoken: Spoken) -> npt.NDArray[np.int64]:
    """Return which word is spoken in the middle of each step, (T,)."""
    words = np.full(spoken.num_steps, NO_WORD, np.int64)
    middles = (np.arange(len(words)) + 0.5) / STEPS_PER_SECOND
    for index, (start, end) in enumerate(spoken.spans):
        words[(middles >= start) & (middles < end)] = index
    return words


def step_weights(words: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Return how much each step (T,) counts."""
    weights = np.ones(len(words), np.float32)
    before = np.concatenate([[NO_WORD], words[:-1]])
    for onset in np.flatnonzero((words != before) & (words != NO_WORD)):
        stop = min(onset + len(ONSET_WEIGHTS), len(words))
        weights[onset:stop] = ONSET_WEIGHTS[: stop - onset]
    return weights


def _offsets(spoken: Sequence[Spoken]) -> npt.NDArray[np.int64]:
    counts = [0, *(each.num_steps for each in spoken[:-1])]
    return np.cumsum(counts)
