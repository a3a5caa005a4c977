"""Turn a recording into an audio-prompt string: codes that speech can continue from.

    python build/encode_prompt.py voice.wav --checkpoint checkpoints/demo
    python build/encode_prompt.py voice.wav --transcript "what is said in it" > prompt.json

The file must be 24 kHz mono, 16-bit or 32-bit PCM; it is neither trimmed nor changed in level. With
--transcript the output is one JSON object that keeps the text beside the string.
"""

from __future__ import annotations

import argparse
import json
import sys
import wave
from collections.abc import Sequence
from pathlib import Path

import layout
import numpy as np
from checkpoint import Array, Checkpoint, CheckpointError
from reference_encoder import encode
from text_codes import encode_prompt

PCM_TYPES = {2: "<i2", 4: "<i4"}
"""Sample types by width in bytes."""
DEFAULT_CHECKPOINT = Path(__file__).resolve().parent.parent / "checkpoints" / "demo"


def read_wave(path: Path) -> Array:
    """Return the samples (S,) of a WAV file, float32 in -1 ... 1.

    Raises:
        ValueError: the file is not a 24 kHz mono PCM file of 16 or 32 bits.
    """
    try:
        with wave.open(str(path)) as file:
            rate, channels, width = file.getframerate(), file.getnchannels(), file.getsampwidth()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise ValueError(f"{path}: not a PCM WAV file ({error})") from error
    if rate != layout.SAMPLE_RATE or channels != 1:
        raise ValueError(
            f"{path}: {rate} Hz, {channels} channels; {layout.SAMPLE_RATE} Hz mono is needed"
        )
    if width not in PCM_TYPES:
        raise ValueError(f"{path}: {8 * width} bits per sample; 16 or 32 are needed")
    samples = np.frombuffer(data, PCM_TYPES[width])
    scaled: Array = (samples / 2.0 ** (8 * width - 1)).astype(np.float32)
    return scaled


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with one sentence on standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wave", type=Path, help="24 kHz mono WAV file")
    parser.add_argument("--transcript", help="what is said in the recording")
    parser.add_argument("--checkpoint", type=Path, default=DEFAULT_CHECKPOINT)
    options = parser.parse_args(argv)
    try:
        checkpoint = Checkpoint.open(options.checkpoint)
        samples = read_wave(options.wave)
        codes = encode(samples, checkpoint.load("DVAE"), checkpoint.dvae.encoder.num_layers)
    except (CheckpointError, OSError, ValueError) as error:
        print(f"encode_prompt: {error}", file=sys.stderr)
        return 1
    prompt = encode_prompt(codes)
    if options.transcript is None:
        print(prompt)
    else:
        record = {"audio_prompt": prompt, "transcript": options.transcript}
        print(json.dumps(record, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
