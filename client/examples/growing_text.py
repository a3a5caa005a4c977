"""Speak a text that is still being written, sentence by sentence, such as a language model's.

A sentence is known to be whole once its end and the space behind it have arrived (in Chinese its
end alone). It is asked for then, or when the one before has been spoken; what the writer sends
meanwhile waits in the pipe.

Example:
  slow-writer | python client/examples/growing_text.py --output spoken.wav --voice en
"""

# ruff: noqa: T201 # an example prints

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

from chattts_client import ChatTTSClient, WavWriter

SAMPLE_RATE_HZ = 24_000
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


def sentences(pieces: Iterable[str]) -> Iterator[str]:
    """Join pieces of a text as they arrive; yield each sentence as soon as it is whole."""
    waiting = ""
    for piece in pieces:
        waiting += piece
        *whole, waiting = SENTENCE_END.split(waiting)
        yield from (sentence for sentence in whole if sentence.strip())
    if waiting.strip():
        yield waiting


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="spoken.wav")
    parser.add_argument("--url", default="localhost:8001")
    parser.add_argument("--voice", default="")
    arguments = parser.parse_args(argv)
    start_s = time.perf_counter()
    with (
        ChatTTSClient(arguments.url) as client,
        WavWriter(arguments.output, SAMPLE_RATE_HZ) as file,
    ):
        pieces = iter(lambda: sys.stdin.read(1), "")
        for sentence in sentences(pieces):
            with client.stream(sentence, voice=arguments.voice, seed=7) as stream:
                for chunk in stream:
                    file.write(chunk.samples)
            audio = stream.result()
            now_s = time.perf_counter() - start_s
            print(f"{now_s:6.2f} s: {audio.duration_s:.2f} s of {sentence.strip()!r}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
