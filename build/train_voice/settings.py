"""Sizes and durations of a training run: the full one, and a quick one to prove the chain."""

from __future__ import annotations

from dataclasses import dataclass, replace

import layout
from layout import DvaeSizes, GptSizes, StackSizes, VocosSizes
from make_checkpoint import NUM_MELS

from train_voice.corpus import CorpusSizes
from train_voice.training import Schedule


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the networks; the number of text tokens follows from the corpus."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    decoder: StackSizes
    dvae: DvaeSizes
    vocos: VocosSizes

    def gpt(self, num_text_tokens: int) -> GptSizes:
        """Return the sizes of the token model for a tokenizer of so many entries."""
        return GptSizes(
            hidden_size=self.hidden,
            intermediate_size=self.intermediate,
            num_layers=self.layers,
            num_heads=self.heads,
            head_dim=self.hidden // self.heads,
            num_codebooks=layout.NUM_CODEBOOKS,
            num_audio_tokens=layout.NUM_AUDIO_TOKENS,
            num_text_tokens=num_text_tokens,
            max_position_embeddings=4096,
            rms_norm_eps=1e-6,
            rope_theta=10_000.0,
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """One training run."""

    name: str
    expected: str
    """How long it takes, for people."""
    seed: int
    corpus: CorpusSizes
    sizes: Sizes
    dvae: Schedule
    dvae_rows: int
    vocos: Schedule
    vocos_rows: int
    adversarial_from: int
    """The step of Vocos from which the discriminators take part."""
    gpt: Schedule
    batch_tokens: int
    """Positions of a batch of the token model, prompts and speech together."""
    sampling_from: int
    """The step of the token model from which it is fed what it would have said."""
    language_model_sentences: int
    evaluated: int
    """Held-out sentences per language that the evaluation stage speaks."""


def _sizes(
    hidden: int, intermediate: int, layers: int, decoder: int, dvae: tuple[int, int], vocos: int
) -> Sizes:
    """Return sizes: widths of the token model, Decoder, DVAE (encoder, decoder) and Vocos."""
    half, dim, bottleneck, depth = hidden // 2, 2 * dvae[0], 64, 4
    return Sizes(
        hidden=hidden,
        intermediate=intermediate,
        layers=layers,
        heads=hidden // 64,
        decoder=StackSizes(half, bottleneck, decoder, 4 * decoder, half, depth),
        dvae=DvaeSizes(
            num_mels=NUM_MELS,
            dim=dim,
            encoder=StackSizes(dim, bottleneck, dvae[0], 4 * dvae[0], 2 * dim, depth - 1),
            decoder=StackSizes(dim, bottleneck, dvae[1], 4 * dvae[1], dim, depth),
        ),
        vocos=VocosSizes(NUM_MELS, vocos, 3 * vocos, 5),
    )


FULL = Settings(
    name="full",
    expected="about 5 hours of two cores that multiply in bfloat16, 9 of others",
    seed=8,
    corpus=CorpusSizes(
        sentences={"slt": 24_000, "rms": 5000, "cmn": 5000},
        min_counts={"slt": 100, "rms": 30, "cmn": 100},
        held_out=120,
        held_out_templates=40,
    ),
    sizes=_sizes(256, 640, 5, decoder=192, dvae=(128, 160), vocos=256),
    dvae=Schedule(8000, 1.5e-3),
    dvae_rows=12,
    vocos=Schedule(18_000, 1.0e-3),
    vocos_rows=10,
    adversarial_from=11_000,
    gpt=Schedule(48_000, 1.7e-3),
    batch_tokens=1200,
    sampling_from=800,
    language_model_sentences=20_000,
    evaluated=160,
)
"""A voice small enough to ship: 23 MB in float16."""

QUICK = Settings(
    name="quick",
    expected="a few minutes",
    seed=8,
    corpus=CorpusSizes(
        sentences={"slt": 60, "rms": 30, "cmn": 40},
        min_counts={"slt": 0, "rms": 0, "cmn": 0},
        held_out=4,
        held_out_templates=2,
    ),
    sizes=_sizes(128, 128, 3, decoder=32, dvae=(32, 32), vocos=48),
    dvae=Schedule(20, 1e-3, warmup=5),
    dvae_rows=4,
    vocos=Schedule(20, 1e-3, warmup=5),
    vocos_rows=4,
    adversarial_from=10,
    gpt=Schedule(40, 1e-3, warmup=5),
    batch_tokens=600,
    sampling_from=20,
    language_model_sentences=500,
    evaluated=4,
)
"""Every stage once; what it makes speaks noise."""


def going_on(settings: Settings) -> Settings:
    """Return the settings of a run that starts from a voice: fewer steps, no easy beginning.

    The rates are lower and fall sooner: what is there shall not be forgotten. Vocos has
    discriminators all along, lest it unlearn what they taught it.
    """
    return replace(
        settings,
        name=f"{settings.name}, from a voice",
        expected=f"less than half of what it takes from nothing, which is {settings.expected}",
        dvae=_further(settings.dvae, settings.dvae.steps),
        vocos=_further(settings.vocos, settings.vocos.steps // 4),
        adversarial_from=0,
        gpt=_further(settings.gpt, settings.gpt.steps // 3),
        sampling_from=0,
    )


def _further(schedule: Schedule, steps: int) -> Schedule:
    return replace(schedule, steps=steps, rate=0.7 * schedule.rate, decay=0.7)
