"""Make an untrained checkpoint in the published layout, for tests and speed work.

    python build/make_checkpoint.py --size tiny --output /tmp/tiny
    python build/make_checkpoint.py --size full --seed 1 --output checkpoints/untrained

The weights are random: it runs at the speed of a trained checkpoint of its size, and what it says
is noise. A marker file makes everything built from it say so.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import layout
import numpy as np
from checkpoint import Array
from files import INTERRUPTED, write_bytes, write_json
from layout import DvaeSizes, GptSizes, Shapes, StackSizes, VocosSizes
from safetensors.numpy import save
from tokenizer_file import published_form_vocabulary, small_vocabulary, write_tokenizer
from voice_copies import CHECKPOINT_FOLDER
from voice_format import SUFFIX, voice_content

NUM_MELS = 100
UNUSED_ROWS = 32_000
"""Rows of the published file's unused embedding; stored as zeros at full size."""
PUBLISHED_TEXT_TOKENS = 21_178
LAYER_SCALE_NAME = re.compile(r"(gamma|decoder_block\.\d+\.weight)$")
LAYER_SCALE = 0.2
CODE_LOGIT_SCALE = 3.0
"""Standard deviation of the code logits: sampling is neither uniform nor stuck."""
VOICE_DATE = "2026-11-29"
"""Since when they are made so; today's date would give other bytes every day."""
MARKER_TEXT = "The weights in this folder are random. What they say is noise.\n"


@dataclass(frozen=True, slots=True)
class Sizes:
    """All sizes of one checkpoint, and its base vocabulary."""

    gpt: GptSizes
    decoder: StackSizes
    dvae: DvaeSizes
    vocos: VocosSizes
    vocabulary: list[str]
    unused_rows: int
    """Rows of the unused embedding in the GPT file; 0 leaves it out."""


def make_sizes(
    vocabulary: list[str],
    hidden: int,
    intermediate: int,
    layers: int,
    heads: int,
    decoder: tuple[int, int, int],
    dvae: tuple[int, int, int, int],
    vocos: tuple[int, int, int],
    unused_rows: int = 0,
) -> Sizes:
    """Return consistent sizes.

    Args:
        vocabulary: the base vocabulary, without control tokens.
        hidden: GPT hidden size, a multiple of `heads`.
        intermediate: GPT MLP width.
        layers: GPT layers.
        heads: attention heads.
        decoder: width, bottleneck and layers of the Decoder.
        dvae: features, width, bottleneck and layers of the DVAE.
        vocos: width, inner width and layers of Vocos.
        unused_rows: rows of the unused embedding in the GPT file.
    """
    half, (features, width, bottleneck, depth) = hidden // 2, dvae
    return Sizes(
        gpt=GptSizes(
            hidden_size=hidden,
            intermediate_size=intermediate,
            num_layers=layers,
            num_heads=heads,
            head_dim=hidden // heads,
            num_codebooks=layout.NUM_CODEBOOKS,
            num_audio_tokens=layout.NUM_AUDIO_TOKENS,
            num_text_tokens=len(vocabulary) + len(layout.SPECIAL_TOKENS),
            max_position_embeddings=4096,
            rms_norm_eps=1e-6,
            rope_theta=10_000.0,
        ),
        decoder=StackSizes(half, decoder[1], decoder[0], 4 * decoder[0], half, decoder[2]),
        dvae=DvaeSizes(
            num_mels=NUM_MELS,
            dim=features,
            encoder=StackSizes(features, bottleneck, width, 4 * width, 2 * features, depth),
            decoder=StackSizes(features, bottleneck, width, 4 * width, features, depth),
        ),
        vocos=VocosSizes(NUM_MELS, *vocos),
        vocabulary=vocabulary,
        unused_rows=unused_rows,
    )


def tiny_sizes() -> Sizes:
    """Return sizes for tests: megabytes, milliseconds."""
    return make_sizes(
        small_vocabulary(), 64, 160, 3, 4, decoder=(32, 16, 2), dvae=(32, 32, 16, 2),
        vocos=(48, 96, 2),
    )  # fmt: skip


def full_sizes() -> Sizes:
    """Return the sizes of the published checkpoint."""
    vocabulary = published_form_vocabulary(PUBLISHED_TEXT_TOKENS - len(layout.SPECIAL_TOKENS))
    return make_sizes(
        vocabulary, 768, 3072, 20, 12, decoder=(512, 128, 12), dvae=(512, 256, 128, 12),
        vocos=(512, 1536, 8), unused_rows=UNUSED_ROWS,
    )  # fmt: skip


def mel_filters(num_mels: int) -> Array:
    """Return the (513, mels) triangular filters on the HTK mel scale, 0 ... 12000 Hz."""
    top_hz = layout.SAMPLE_RATE / 2
    top_mel = 2595 * np.log10(1 + top_hz / 700)
    points_hz = 700 * (10 ** (np.linspace(0, top_mel, num_mels + 2) / 2595) - 1)
    bins_hz = np.linspace(0, top_hz, layout.NUM_BINS)[:, None]
    widths = np.diff(points_hz)
    rising = (bins_hz - points_hz[:-2]) / widths[:-1]
    falling = (points_hz[2:] - bins_hz) / widths[1:]
    filters: Array = np.maximum(0, np.minimum(rising, falling)).astype(np.float32)
    return filters


def hann_window() -> Array:
    """Return the periodic Hann window (1024,)."""
    phase = 2 * np.pi * np.arange(layout.N_FFT) / layout.N_FFT
    window: Array = (0.5 - 0.5 * np.cos(phase)).astype(np.float32)
    return window


def random_tensor(
    random: np.random.Generator, name: str, shape: tuple[int, ...], num_layers: int
) -> Array:
    """Return one tensor: variance-keeping weights, unit norms, no biases, true windows.

    Layer outputs that are added to the GPT's residual stream shrink with the number of layers.
    """
    if name.endswith("window"):
        return hann_window()
    if name.endswith("mel_scale.fb"):
        return mel_filters(shape[1])
    if name.endswith("original0"):
        return np.full(shape, CODE_LOGIT_SCALE, np.float32)
    if name.endswith("bias"):
        return np.zeros(shape, np.float32)
    if name == layout.UNUSED_GPT_TENSOR:
        return np.zeros(shape, np.float32)
    if len(shape) == 1:
        is_layer_scale = LAYER_SCALE_NAME.search(name)
        return np.full(shape, LAYER_SCALE if is_layer_scale else 1, np.float32)
    if name == "coef":
        return np.ones(shape, np.float32)
    values = random.standard_normal(shape, np.float32)
    if name.startswith("emb_"):
        return values
    gain = np.float32(1 / np.sqrt(np.prod(shape[1:])))
    if name.endswith(("o_proj.weight", "down_proj.weight")):
        gain /= np.float32(np.sqrt(2 * num_layers))
    return values * gain


def write_tensors(path: Path, shapes: Shapes, random: np.random.Generator, layers: int) -> None:
    """Write one safetensors file of random float32 tensors."""
    tensors = {name: random_tensor(random, name, shape, layers) for name, shape in shapes.items()}
    write_bytes(path, save(tensors))


def config_json(sizes: GptSizes, unused_rows: int) -> Mapping[str, Any]:
    """Return the content of gpt/config.json."""
    return {
        "architectures": ["LlamaModel"],
        "attention_bias": False,
        "head_dim": sizes.head_dim,
        "hidden_act": "silu",
        "hidden_size": sizes.hidden_size,
        "intermediate_size": sizes.intermediate_size,
        "max_position_embeddings": sizes.max_position_embeddings,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": sizes.num_heads,
        "num_audio_tokens": sizes.num_audio_tokens,
        "num_hidden_layers": sizes.num_layers,
        "num_key_value_heads": sizes.num_heads,
        "num_text_tokens": sizes.num_text_tokens,
        "num_vq": sizes.num_codebooks,
        "rms_norm_eps": sizes.rms_norm_eps,
        "rope_scaling": None,
        "rope_theta": sizes.rope_theta,
        "torch_dtype": "float32",
        "use_cache": False,
        "vocab_size": unused_rows,
    }


def random_voices(random: np.random.Generator, hidden_size: int) -> Mapping[str, bytes]:
    """Return one random speaker per language: files of voices by name."""
    return {
        language: voice_content(
            language,
            {
                "languages": [language],
                "description": "A random speaker of an untrained model",
                "license": "CC0-1.0",
                "provenance": {
                    "method": "random",
                    "tool": "make_checkpoint.py",
                    "date": VOICE_DATE,
                    "source": "standard normal numbers",
                },
            },
            random.standard_normal(hidden_size).astype(np.float16),
        )
        for language in ("en", "zh")
    }


def write_checkpoint(root: Path, sizes: Sizes, seed: int) -> None:
    """Write an untrained checkpoint into the empty or new folder `root`."""
    random = np.random.default_rng(seed)
    gpt = layout.gpt_tensors(sizes.gpt)
    if sizes.unused_rows:
        gpt[layout.UNUSED_GPT_TENSOR] = (sizes.unused_rows, sizes.gpt.hidden_size)
    parts = {
        "Decoder": layout.decoder_tensors(sizes.decoder, sizes.vocos.num_mels),
        "DVAE": layout.dvae_tensors(sizes.dvae),
        "Embed": layout.embed_tensors(sizes.gpt),
        "Vocos": layout.vocos_tensors(sizes.vocos),
        "gpt": gpt,
    }
    write_bytes(root / layout.UNTRAINED_FILE, MARKER_TEXT.encode())
    for part, shapes in parts.items():
        write_tensors(root / layout.TENSOR_FILES[part], shapes, random, sizes.gpt.num_layers)
    write_json(root / layout.CONFIG_FILE, config_json(sizes.gpt, sizes.unused_rows))
    write_tokenizer((root / layout.TOKENIZER_FILE).parent, sizes.vocabulary)
    for name, content in random_voices(random, sizes.gpt.hidden_size).items():
        write_bytes(root / CHECKPOINT_FOLDER / f"{name}{SUFFIX}", content)


def replace_checkpoint(output: Path, sizes: Sizes, seed: int) -> None:
    """Write an untrained checkpoint beside `output`, then put it in its place."""
    folder = output.with_name(f".{output.name}.partial")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        write_checkpoint(folder, sizes, seed)
        shutil.rmtree(output, ignore_errors=True)
        os.replace(folder, output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; an existing folder is replaced only if it holds untrained weights."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=("tiny", "full"), required=True)
    parser.add_argument("--seed", type=int, default=0, help="same seed, same weights (default 0)")
    parser.add_argument("--output", type=Path, required=True, help="folder to write")
    options = parser.parse_args(argv)
    output: Path = options.output
    if output.exists() and any(output.iterdir()) and not (output / layout.UNTRAINED_FILE).exists():
        print(f"make_checkpoint: {output} exists and is not an untrained one", file=sys.stderr)
        return 1
    sizes = tiny_sizes() if options.size == "tiny" else full_sizes()
    try:
        replace_checkpoint(output, sizes, options.seed)
    except KeyboardInterrupt:
        print("make_checkpoint: interrupted; run it again", file=sys.stderr)
        return INTERRUPTED
    print(f"{output}: UNTRAINED checkpoint ({options.size}, seed {options.seed}); it speaks noise")
    return 0


if __name__ == "__main__":
    sys.exit(main())
