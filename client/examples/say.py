"""Speak one sentence, save it, and print what came back.

Example:
  python client/examples/say.py "The cat reads a book." --output cat.wav --voice en
"""

# ruff: noqa: T201 # an example prints

from __future__ import annotations

import argparse
from collections.abc import Sequence

from chattts_client import ChatTTSClient


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text")
    parser.add_argument("--output", default="say.wav")
    parser.add_argument("--url", default="localhost:8001")
    parser.add_argument("--voice", default="")
    arguments = parser.parse_args(argv)
    with ChatTTSClient(arguments.url) as client:
        audio = client.synthesize(arguments.text, voice=arguments.voice, seed=7)
    audio.save(arguments.output)
    print(f"{arguments.output}: {audio.duration_s:.2f} s, {', '.join(audio.finish_reasons)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
