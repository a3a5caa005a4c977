"""Speak many texts at once with the asynchronous client; results come in the order of the texts.

Example:
  python client/examples/fan_out.py --count 50 --concurrency 16 --folder spoken --voice en
"""

# ruff: noqa: T201 # an example prints

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from chattts_client import AsyncChatTTSClient

HOURS = ("six", "seven", "eight", "nine", "ten")
CITIES = ("london", "paris", "rome", "berlin", "madrid")


def texts(count: int) -> list[str]:
    """Return so many sentences."""
    return [
        f"the train to {CITIES[index % 5]} leaves at half past {HOURS[index // 5 % 5]}"
        for index in range(count)
    ]


async def speak_all(
    url: str, voice: str, lines: Sequence[str], folder: Path, concurrency: int
) -> float:
    """Save each line as a numbered file; return the seconds of audio."""
    audio_s = 0.0
    async with AsyncChatTTSClient(url) as client:
        spoken = client.synthesize_many(lines, concurrency=concurrency, voice=voice, seed=7)
        index = 0
        async for audio in spoken:
            audio.save(folder / f"{index:03d}.wav")
            audio_s += audio.duration_s
            index += 1
    return audio_s


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--folder", type=Path, default=Path("spoken"))
    parser.add_argument("--url", default="localhost:8001")
    parser.add_argument("--voice", default="")
    arguments = parser.parse_args(argv)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    start_s = time.perf_counter()
    audio_s = asyncio.run(
        speak_all(
            arguments.url,
            arguments.voice,
            texts(arguments.count),
            arguments.folder,
            arguments.concurrency,
        )
    )
    elapsed_s = time.perf_counter() - start_s
    print(
        f"{arguments.count} files, {audio_s:.1f} s of audio in {elapsed_s:.1f} s: "
        f"{audio_s / elapsed_s:.1f} times real time"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
