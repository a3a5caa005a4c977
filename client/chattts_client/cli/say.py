"""The command `say`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Annotated

from typer import BadParameter, Option

from .._audio import SUFFIXES, WAV_SUFFIX
from .._client import ChatTTSClient
from .._exceptions import ChatTTSError
from .._types import Audio, SpeechOptions
from . import output as out
from .options import FLAG, AsJson, Server, Speech, TextSource
from .sinks import STDOUT, StandardOutput, check_extras, open_sinks


def say(
    source: TextSource,
    server: Server,
    speech: Speech,
    output: Annotated[
        str | None,
        Option(
            "--output",
            "-o",
            metavar="FILE",
            help=".wav, .flac, .ogg or .mp3; - writes raw 16-bit samples to standard output.",
        ),
    ] = None,
    stream: Annotated[
        bool, Option("--stream", metavar=FLAG, help="Write each chunk as it is made.")
    ] = False,
    play: Annotated[
        bool, Option("--play", metavar=FLAG, help="Play it; with --stream as it is made.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Speak a text into a file, a pipe or the loudspeaker.

    Ctrl-C cancels on the server; with --stream the file holds what was spoken until then, also
    where a server breaks off.

    Raw samples for a player:

      chattts say "Hello." -o - --stream | aplay -q -r 24000 -f S16_LE -c 1

      chattts say "Hello." -o - --stream | ffplay -f s16le -ar 24000 -
    """
    _check(server, output, stream, play)
    text, options = source.read(), speech.given()
    with server.open() as client:
        speak = _stream if stream else _speak
        audio = speak(client, text, options, output, play)
    if stream and audio.duration_s:
        out.note(f"first audio after {audio.time_to_first_audio_s:.2f} s")
    out.note_warnings(audio)
    report = out.to_json({"path": output, **out.facts(audio)}) if as_json else _line(audio, output)
    if output == STDOUT:
        out.note(report)
    else:
        print(report)
    return 0


def _speak(
    client: ChatTTSClient, text: str, options: SpeechOptions, output: str | None, play: bool
) -> Audio:
    audio = client.synthesize(text, **options)
    if error := out.missing_audio(audio):
        raise error
    if output == STDOUT:
        StandardOutput().write(audio.samples)
    elif output is not None:
        audio.save(output)
    if play:
        audio.play()
    return audio


def _stream(
    client: ChatTTSClient, text: str, options: SpeechOptions, output: str | None, play: bool
) -> Audio:
    with client.stream(text, **options) as chunks, ExitStack() as stack:
        first, heard_s = next(chunks), 0.0
        if first.is_final and (error := out.missing_audio(chunks.result())):
            raise error
        sinks = open_sinks(stack, output, play, first.sample_rate)
        try:
            for chunk in chain((first,), chunks):
                for sink in sinks:
                    sink.write(chunk.samples)
                heard_s += chunk.duration_s
        except ChatTTSError:
            if output not in (None, STDOUT):
                out.note(f"{output} holds what came before: {heard_s:.2f} s")
            raise
        return chunks.result()


def _line(audio: Audio, output: str | None) -> str:
    return f"{output or 'played'}: {out.describe(audio)}"


def _check(server: Server, output: str | None, stream: bool, play: bool) -> None:
    """Find what cannot work before anything is sent."""
    if output is None and not play:
        raise BadParameter("say where to: -o FILE, -o - or --play", param_hint="--output")
    if server.http and stream:
        raise BadParameter("needs gRPC: leave --http out", param_hint="--stream")
    if output == STDOUT and sys.stdout.isatty():
        message = "samples are nothing for a terminal: write to a file or into a pipe"
        raise BadParameter(message, param_hint="--output")
    if output is None or output == STDOUT:
        check_extras("", play)
        return
    suffix = Path(output).suffix.lower()
    if suffix not in SUFFIXES:
        message = f"{output!r} does not end in {', '.join(SUFFIXES)}"
        raise BadParameter(message, param_hint="--output")
    if stream and suffix != WAV_SUFFIX:
        raise BadParameter(f"writes {WAV_SUFFIX} or -, not {suffix}", param_hint="--stream")
    check_extras(suffix, play)
    if not Path(output).parent.is_dir():
        raise FileNotFoundError(f"no folder {str(Path(output).parent)!r} for {output!r}")
