"""From a checkpoint to a WAV: build the repository, serve it, speak two sentences, stop.

    python embedded/demo.py
    python embedded/demo.py --checkpoint published

Checkpoints: demo (the small voice that ships with the project), published (the ChatTTS weights,
downloaded), untrained (full-size random weights: real speed, but the audio is noise).
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from chattts_client import Audio, ChatTTSClient, ChatTTSError, SpeechOptions, WavWriter
from launcher import EmbeddedServer, EmbeddedServerError

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
SAMPLE_RATE = 24000
PAUSE_S = 0.4
"""Silence between the two sentences in the WAV."""
UNTRAINED_STEPS = 94
"""Two seconds: random weights stop anywhere."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """What the demo says."""

    text: str
    voice: str
    """A name in the checkpoint's registry; empty for the model's own choice."""


SENTENCES = {
    "demo": (
        Sentence("the train to london leaves at half past seven", "en"),
        Sentence("今天是三月六日，星期二", "zh"),
    ),
    "published": (
        Sentence("What is your favorite English food?", ""),
        Sentence("四川美食确实以辣闻名，但也有不辣的选择。", ""),
    ),
    "untrained": (
        Sentence("These weights are random, so this is noise.", ""),
        Sentence("这里没有训练过的声音。", ""),
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; return 0, or 1 after saying in one sentence what went wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", choices=list(SENTENCES), default="demo")
    parser.add_argument("--precision", choices=["fp32", "int8", "int8-weights"], default="int8")
    parser.add_argument("--output", type=Path, default=ROOT / "demo.wav", help="WAV to write")
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        prepare(arguments.checkpoint, arguments.precision)
        print("starting the server", file=sys.stderr)
        serve_and_speak(arguments.checkpoint, arguments.output)
    except subprocess.CalledProcessError as error:
        return int(error.returncode)  # the script has said why
    except (EmbeddedServerError, ChatTTSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted, nothing is left running", file=sys.stderr)
        return 130
    return 0


def prepare(checkpoint: str, precision: str) -> None:
    """Fetch or make the checkpoint, then build the model repository; quick when all is there."""
    folder = ROOT / "checkpoints" / checkpoint
    if checkpoint == "published":
        _run("fetch_checkpoint.py", "--output", str(folder))
    elif checkpoint == "untrained" and not folder.exists():
        _run("make_checkpoint.py", "--size", "full", "--output", str(folder))
    _run("build_repository.py", "--checkpoint", str(folder), "--precision", precision)


def serve_and_speak(checkpoint: str, output: Path) -> None:
    """Start the server, speak, and end it at once: nothing is left to drain."""
    server = EmbeddedServer(ROOT / "model_repository")
    try:
        server.start()
        speak(server.grpc_url, checkpoint, output)
    finally:
        server.kill()


def speak(url: str, checkpoint: str, output: Path) -> None:
    """Stream the sentences one after the other and write them to one WAV file."""
    with ChatTTSClient(url) as client, WavWriter(output, SAMPLE_RATE) as wav:
        for number, sentence in enumerate(SENTENCES[checkpoint]):
            if number:
                wav.write(np.zeros(round(PAUSE_S * SAMPLE_RATE), dtype=np.float32))
            audio = _stream(client, sentence, checkpoint)
            wav.write(audio.samples)
            _report(sentence, audio)
    print(f"wrote {output}")


def _stream(client: ChatTTSClient, sentence: Sentence, checkpoint: str) -> Audio:
    options: SpeechOptions = {"voice": sentence.voice, "seed": 1}
    if checkpoint == "untrained":
        options |= {"min_new_tokens": UNTRAINED_STEPS, "max_new_tokens": UNTRAINED_STEPS}
    with client.stream(sentence.text, **options) as stream:
        return stream.result()


def _report(sentence: Sentence, audio: Audio) -> None:
    print(f"text             {sentence.text}")
    print(f"voice            {audio.voice or '(none asked for)'}")
    # which may be another one than was built: what is served is what was published last
    print(f"spoken by        {audio.checkpoint} ({audio.precision}), version {audio.model_version}")
    if audio.time_to_first_audio_s is not None:
        print(f"first audio      {audio.time_to_first_audio_s * 1000:.0f} ms")
    print(f"audio            {audio.duration_s:.2f} s")
    if audio.real_time_factor is not None:
        print(f"real-time factor {audio.real_time_factor:.3f}")
    print(f"finish reason    {', '.join(audio.finish_reasons)}")
    for warning in audio.warnings:
        print(f"warning          {warning.message}")
    if audio.untrained:
        print("UNTRAINED        these weights are random: the audio is noise, only speed is real")
    print()


def _run(script: str, *arguments: str) -> None:
    """Run a build script in this environment; its output is the demo's progress."""
    subprocess.run([sys.executable, str(BUILD / script), *arguments], check=True)


if __name__ == "__main__":
    sys.exit(main())
