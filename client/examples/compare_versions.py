"""Let two versions of the model that a server offers speak the same text with the same seed.

Example:
  python client/examples/compare_versions.py "The cat reads a book." --versions 1 2 --voice en
"""

# ruff: noqa: T201 # an example prints

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from chattts_client import Audio, ChatTTSClient


def difference(one: Audio, other: Audio) -> str:
    """Say how far two utterances are from each other."""
    if len(one.samples) != len(other.samples):
        return f"the lengths differ by {abs(one.duration_s - other.duration_s):.2f} s"
    largest = float(np.max(np.abs(one.samples - other.samples), initial=0.0))
    return f"the largest difference of a sample is {largest:.3g}" if largest else "the same bits"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text")
    parser.add_argument("--versions", nargs=2, default=["1", "2"], metavar="VERSION")
    parser.add_argument("--url", default="localhost:8001")
    parser.add_argument("--voice", default="")
    arguments = parser.parse_args(argv)
    spoken = []
    with ChatTTSClient(arguments.url) as client:
        for version in arguments.versions:
            audio = client.synthesize(
                arguments.text, voice=arguments.voice, seed=7, model_version=version
            )
            audio.save(f"version-{version}.wav")
            print(
                f"version {audio.model_version}: {audio.checkpoint} in {audio.precision}, "
                f"{audio.duration_s:.2f} s of speech in {audio.elapsed_s:.2f} s"
            )
            spoken.append(audio)
    print(difference(*spoken))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
