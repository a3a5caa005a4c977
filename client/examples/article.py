"""Read a long article into one WAV file, a few paragraphs ahead, and show the progress.

Paragraphs are what empty lines divide. The file is written as they come, so that it can be heard
before the last one is done.

Example:
  python client/examples/article.py article.txt --output article.wav --voice en
"""

# ruff: noqa: T201 # an example prints

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from chattts_client import ChatTTSClient, WavWriter

SAMPLE_RATE_HZ = 24_000
PAUSE = np.zeros(SAMPLE_RATE_HZ // 2, dtype=np.float32)
"""Half a second between paragraphs."""


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs that have something to say, each as one line."""
    found = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return [part for part in found if part]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--output", default="article.wav")
    parser.add_argument("--url", default="localhost:8001")
    parser.add_argument("--voice", default="")
    arguments = parser.parse_args(argv)
    parts = paragraphs(arguments.file.read_text(encoding="utf-8"))

    def show(done: int) -> None:
        print(f"\r{done} of {len(parts)} paragraphs", end="", file=sys.stderr, flush=True)

    audio_s = 0.0
    with (
        ChatTTSClient(arguments.url, timeout_s=600) as client,
        WavWriter(arguments.output, SAMPLE_RATE_HZ) as file,
    ):
        spoken = client.synthesize_many(
            parts, concurrency=4, on_progress=show, voice=arguments.voice, seed=7
        )
        for audio in spoken:
            file.write(audio.samples)
            file.write(PAUSE)
            audio_s += audio.duration_s
    print(file=sys.stderr)
    print(f"{arguments.output}: {len(parts)} paragraphs, {audio_s:.1f} s of speech")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
