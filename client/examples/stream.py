"""Stream a text into a WAV file with the asynchronous client, chunk by chunk.

Example:
  python client/examples/stream.py "The cat reads a book." --output cat.wav --voice en
"""

# ruff: noqa: T201 # an example prints

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

from chattts_client import AsyncChatTTSClient, Audio, WavWriter

SAMPLE_RATE_HZ = 24_000


async def stream_to_file(url: str, text: str, voice: str, path: str) -> Audio:
    """Write each chunk as it arrives, then return the whole utterance."""
    async with AsyncChatTTSClient(url) as client, client.stream(text, voice=voice) as stream:
        with WavWriter(path, SAMPLE_RATE_HZ) as file:
            async for chunk in stream:
                file.write(chunk.samples)
                print(f"chunk {chunk.index}: {chunk.duration_s:.2f} s")
        return await stream.result()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text")
    parser.add_argument("--output", default="stream.wav")
    parser.add_argument("--url", default="localhost:8001")
    parser.add_argument("--voice", default="")
    arguments = parser.parse_args(argv)
    audio = asyncio.run(
        stream_to_file(arguments.url, arguments.text, arguments.voice, arguments.output)
    )
    if audio.time_to_first_audio_s is None:
        print(f"no audio: {', '.join(audio.finish_reasons)}")
        return 1
    print(f"first audio after {audio.time_to_first_audio_s:.2f} s of {audio.elapsed_s:.2f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
