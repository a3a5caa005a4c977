"""What the traffic says, and the samples that each utterance must come out with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from chattts_client import ChatTTSClient, SpeechOptions
from numpy.typing import NDArray

from .outcomes import WrongAnswerError

Samples = NDArray[np.float32]

SAMPLES_PER_STEP = 512
_SENTENCES = (
    "the train to london leaves at half past seven",
    "hello anna, how are you today",
    "the server is working",
    "the cat reads a book and the dog sleeps",
)
_LONG_TEXT = "the train to paris leaves at half past nine, and the train to london at ten. " * 10
_LONGEST_TEXT = "the boat to dover leaves at half past nine, and the next one is at ten. " * 65
"""4,745 characters; 5,000 are taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Utterance:
    """A request whose samples are known."""

    text: str
    options: SpeechOptions
    """Seed, length and sampling: with them the samples are the same bits every time."""
    samples: Samples
    """(S,) as the server spoke them at the start."""
    num_segments: int
    context_steps: int
    """Steps at the end of a segment that was cut short whose samples differ from the whole's."""

    def check_whole(self, samples: Samples) -> None:
        """Raise WrongAnswerError unless these are all samples, bit for bit."""
        if not np.array_equal(samples, self.samples):
            raise WrongAnswerError(_difference(samples, self.samples))

    def check_beginning(self, samples: Samples) -> None:
        """Raise WrongAnswerError unless the samples are the first ones, bit for bit."""
        beginning = self.samples[: len(samples)]
        if not np.array_equal(samples, beginning):
            raise WrongAnswerError(f"the beginning: {_difference(samples, beginning)}")

    def check_cut_short(self, samples: Samples) -> None:
        """Raise WrongAnswerError unless this is a segment that ended early, after some step."""
        half_step = SAMPLES_PER_STEP // 2
        if len(samples) and len(samples) % SAMPLES_PER_STEP != half_step:
            raise WrongAnswerError(f"cut short at {len(samples)} samples, not at a step")
        num_final = len(samples) + half_step - self.context_steps * SAMPLES_PER_STEP
        self.check_beginning(samples[: max(0, num_final)])


def _difference(samples: Samples, expected: Samples) -> str:
    if len(samples) != len(expected):
        return f"{len(samples)} samples instead of {len(expected)}"
    first = int(np.flatnonzero(samples != expected)[0])
    return f"sample {first} of {len(expected)} differs"


@dataclass(frozen=True, slots=True)
class Repertoire:
    """All utterances of a run, by length."""

    short: Sequence[Utterance]
    """One segment each, up to 3 seconds of audio."""
    long: Sequence[Utterance]
    """Many segments."""
    shaped: Sequence[Utterance]
    """What the text front end has to write out, with the filters behind the vocoder."""

    @property
    def all(self) -> Sequence[Utterance]:
        """Every one."""
        return (*self.short, *self.long, *self.shaped)

    @classmethod
    def speak(cls, client: ChatTTSClient, context_steps: int) -> Repertoire:
        """Let the server say everything once, one after the other."""
        short = tuple(_spoken(client, one, context_steps) for one in _short_requests())
        long = tuple(_spoken(client, one, context_steps) for one in _long_requests())
        shaped = tuple(_spoken(client, one, context_steps) for one in _shaped_requests())
        return cls(short, long, shaped)


def _short_requests() -> Iterator[tuple[str, SpeechOptions]]:
    lengths = (24, 60, 100, 140)
    for number, (text, steps) in enumerate(zip(_SENTENCES * 2, lengths * 2, strict=True)):
        options: SpeechOptions = {
            "seed": 100 + number,
            "min_new_tokens": steps,
            "max_new_tokens": steps,
        }
        if number % 2:
            options |= {"temperature": 0.7, "top_p": 0.9, "top_k": 40}
        yield text, options


def _long_requests() -> Iterator[tuple[str, SpeechOptions]]:
    yield _LONG_TEXT, {"seed": 200, "min_new_tokens": 60, "max_new_tokens": 60}
    yield _LONGEST_TEXT, {"seed": 201, "min_new_tokens": 12, "max_new_tokens": 12}


def _shaped_requests() -> Iterator[tuple[str, SpeechOptions]]:
    steps: SpeechOptions = {"seed": 300, "min_new_tokens": 60, "max_new_tokens": 60}
    text = "The 3:20 train costs $4.50. <break time='200ms'/> 温度是-5℃，2个人。"
    yield text, {**steps, "options": {"speed": 1.3}}
    yield text, {**steps, "options": {"speed": 0.8, "trim": True, "level": True}}
    yield "# Read\n- *this* ☃ page", {**steps, "options": {"input_format": "auto", "level": True}}


def _spoken(
    client: ChatTTSClient, request: tuple[str, SpeechOptions], context_steps: int
) -> Utterance:
    text, options = request
    audio = client.synthesize(text, **options)
    return Utterance(text, options, audio.samples, len(audio.text_segments), context_steps)
