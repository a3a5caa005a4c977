"""Speak a text with a ChatTTS server, ask how it would be read, list voices, or ask for health.

Examples:
  python -m chattts_client say "The cat reads a book." -o cat.wav --voice en --seed 7
  echo "A long text." | python -m chattts_client say - -o text.wav --stream
  python -m chattts_client normalize "The 3:20 train, $4.50." --offline

Results go to standard output, progress and warnings to standard error. Exit status: 0 done,
1 file error, 2 wrong request, 3 no server, 4 timeout, 5 cancelled, 6 server error, 7 not
understood, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, cast

from ._answers import read_prepared
from ._audio import WavWriter
from ._client import ChatTTSClient
from ._exceptions import (
    ChatTTSError,
    InvalidRequestError,
    ProtocolError,
    RequestCancelledError,
    RequestTimeoutError,
    ServerError,
    ServerUnavailableError,
)
from ._settings import DEFAULT_TIMEOUT_S, DEFAULT_URLS, TransportName
from ._types import Audio, NormalizedText, SpeechOptions, SpeechWarning, Voice

_NORMALIZE_OPTIONS = ("language", "options", "model_version")
EXIT_FILE = 1
EXIT_USAGE = 2
EXIT_NOT_READY = 3
EXIT_INTERRUPTED = 130
EXIT_CODES: dict[type[ChatTTSError], int] = {
    InvalidRequestError: EXIT_USAGE,
    ServerUnavailableError: EXIT_NOT_READY,
    RequestTimeoutError: 4,
    RequestCancelledError: 5,
    ServerError: 6,
    ProtocolError: 7,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        _check(parser, arguments)
        with _client(arguments) as client:
            return int(arguments.run(client, arguments))
    except ChatTTSError as error:
        _report_error(error)
        return EXIT_CODES[type(error)]
    except OSError as error:
        _note(f"error: {error}")
        return EXIT_FILE
    except (ImportError, ValueError) as error:
        _note(f"error: {error}")
        return EXIT_USAGE
    except KeyboardInterrupt:
        _note("interrupted")
        return EXIT_INTERRUPTED


def _say(client: ChatTTSClient, arguments: argparse.Namespace) -> int:
    text = _read_text(arguments.text)
    options = {name: getattr(arguments, name) for name in SpeechOptions.__annotations__}
    given = {name: value for name, value in options.items() if value is not None}
    audio = (_say_streaming if arguments.stream else _say_at_once)(
        client, text, arguments.output, cast(SpeechOptions, given)
    )
    _report(audio, arguments)
    return 0


def _say_at_once(client: ChatTTSClient, text: str, path: str, options: SpeechOptions) -> Audio:
    audio = client.synthesize(text, **options)
    audio.save(path)
    return audio


def _say_streaming(client: ChatTTSClient, text: str, path: str, options: SpeechOptions) -> Audio:
    with client.stream(text, **options) as stream:
        first = next(stream)
        with WavWriter(path, first.sample_rate) as file:
            file.write(first.samples)
            for chunk in stream:
                file.write(chunk.samples)
        return stream.result()


def _normalize(client: ChatTTSClient, arguments: argparse.Namespace) -> int:
    text = _read_text(arguments.text)
    if arguments.offline:
        found = _prepare(text, arguments.options, arguments.language)
    else:
        options = {name: getattr(arguments, name) for name in _NORMALIZE_OPTIONS}
        found = client.normalize(text, **cast(SpeechOptions, options))
    if arguments.json:
        print(json.dumps(asdict(found), ensure_ascii=False))
        return 0
    for segment in found.segments:
        pause = f", then {segment.pause_ms} ms of silence" if segment.pause_ms else ""
        print(f"{segment.text.strip()}\t({segment.estimated_s:.1f} s{pause})")
    for warning in found.warnings:
        _note(f"warning: {_place(warning)}{warning.message} ({warning.code})")
    return 0


def _prepare(text: str, options: dict[str, Any] | None, language: str | None) -> NormalizedText:
    try:
        from chattts_text.offline import prepare
    except ImportError as error:
        needed = "normalize --offline needs the extra `text` of chattts-client"
        raise ImportError(f"{needed}: {error}") from error
    prepared = prepare(text, options, cast(Any, language or "auto"))
    return read_prepared(prepared.as_json())


def _place(warning: SpeechWarning) -> str:
    if warning.start is None:
        return ""
    spoken = f" -> {warning.spoken!r}" if warning.spoken else ""
    return f"characters {warning.start} to {warning.end}, {warning.text!r}{spoken}: "


def _voices(client: ChatTTSClient, arguments: argparse.Namespace) -> int:
    voices = client.voices()
    if arguments.json:
        print(json.dumps([asdict(voice) for voice in voices], ensure_ascii=False))
    else:
        for voice in voices:
            print(_voice_line(voice))
    return 0


def _health(client: ChatTTSClient, arguments: argparse.Namespace) -> int:
    is_ready = client.health().ready
    if arguments.json:
        print(json.dumps({"url": client.url, "ready": is_ready}))
    else:
        print(f"{client.url}: {'ready' if is_ready else 'not ready'}")
    return 0 if is_ready else EXIT_NOT_READY


def _client(arguments: argparse.Namespace) -> ChatTTSClient:
    timeout_s = None if arguments.timeout == 0 else arguments.timeout
    transport: TransportName = "http" if arguments.http else "grpc"
    return ChatTTSClient(arguments.url, transport=transport, timeout_s=timeout_s)


def _read_text(argument: str) -> str:
    return sys.stdin.buffer.read().decode() if argument == "-" else argument


def _voice_line(voice: Voice) -> str:
    heard = "auditioned" if voice.auditioned else "not auditioned"
    languages = ", ".join(voice.languages)
    columns = (voice.name, languages, voice.gender, voice.kind, heard, voice.description)
    return "\t".join(columns)


def _report(audio: Audio, arguments: argparse.Namespace) -> None:
    _note(f"first audio after {audio.time_to_first_audio_s:.2f} s")
    for warning in audio.warnings:
        _note(f"warning: {_place(warning)}{warning.message} ({warning.code})")
    if audio.untrained:
        _note("notice: the server runs UNTRAINED weights; this audio is noise, not speech")
    report = _facts(audio, arguments.output)
    if arguments.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        print(
            f"{report['path']}: {audio.duration_s:.2f} s, voice {audio.voice or 'none'}, "
            f"seed {audio.seed}, ended by {', '.join(audio.finish_reasons)}, "
            f"real-time factor {audio.real_time_factor:.2f}"
        )


def _facts(audio: Audio, path: str) -> dict[str, Any]:
    summary = asdict(audio)
    del summary["samples"]
    return {
        "path": path,
        **summary,
        "duration_s": audio.duration_s,
        "real_time_factor": audio.elapsed_s / audio.duration_s if audio.duration_s else None,
    }


def _report_error(error: ChatTTSError) -> None:
    request = f", request {error.request_id}" if error.request_id else ""
    hint = "; trying again may help" if error.retryable else ""
    _note(f"error: {error} ({error.code}{request}){hint}")


def _note(message: str) -> None:
    print(message, file=sys.stderr)


def _check(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    if arguments.run is not _say:
        return
    if arguments.http and arguments.stream:
        parser.error("--stream needs gRPC: leave --http out")
    if not arguments.output.lower().endswith(".wav"):
        parser.error(f"--output must end in .wav: {arguments.output}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m chattts_client",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_say(commands)
    _add_normalize(commands)
    _add_command(
        commands,
        "voices",
        _voices,
        "list the voices: name, languages, gender, kind, whether heard, description",
    )
    _add_command(commands, "health", _health, "ask whether the server is ready")
    return parser


def _add_command(commands: Any, name: str, run: Any, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary)
    parser.set_defaults(run=run)
    urls = f"{DEFAULT_URLS['grpc']}, with --http {DEFAULT_URLS['http']}"
    parser.add_argument("--url", metavar="HOST:PORT", help=f"where the server is ({urls})")
    parser.add_argument("--http", action="store_true", help="use HTTP instead of gRPC")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON line")
    parser.add_argument(
        "--timeout",
        type=float,
        default=DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
        help=f"give up after this time, 0 = never ({DEFAULT_TIMEOUT_S:g})",
    )
    return parser


def _add_normalize(commands: Any) -> None:
    summary = "show how a text would be read: segments, warnings, with --json the alignment"
    parser = _add_command(commands, "normalize", _normalize, summary)
    parser.add_argument("text", help="what would be said; - reads standard input")
    parser.add_argument(
        "--offline",
        action="store_true",
        help="without a server, whatever its voice can read (needs the extra `text`)",
    )
    _add_text_options(parser)


def _add_text_options(parser: Any) -> None:
    parser.add_argument("--language", choices=("auto", "zh", "en"), help="rules that read the text")
    parser.add_argument(
        "--options", type=json.loads, metavar="JSON", help="rarely used switches of the server"
    )
    parser.add_argument("--model-version", help="which one to ask; default: the highest served")


def _add_say(commands: Any) -> None:
    parser = _add_command(commands, "say", _say, "speak a text into a WAV file")
    parser.add_argument("text", help="what to say; - reads standard input")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the .wav to write")
    parser.add_argument("--stream", action="store_true", help="write each chunk as it is made")
    speech = parser.add_argument_group("speech")
    speech.add_argument("--voice", help="a name from `voices`, or a speaker string")
    _add_text_options(speech)
    speech.add_argument("--style", help="control tokens such as [speed_5][oral_2]")
    speech.add_argument(
        "--refine", action="store_true", default=None, help="let the model add its own pauses"
    )
    speech.add_argument("--seed", type=int, help="same request and seed, same samples")
    speech.add_argument("--priority", type=int, help="1 (first) ... 3 (last)")
    speech.add_argument("--deadline-ms", type=int, help="the server stops with what it has by then")
    speech.add_argument(
        "--queue-deadline-ms", type=int, help="the server gives up if it has not begun by then"
    )
    speech.add_argument(
        "--latency",
        choices=("exact", "low"),
        help="with --stream; exact: as without it, low: sooner and nearly the same (exact)",
    )
    sampling = parser.add_argument_group("sampling")
    sampling.add_argument("--temperature", type=float, help="0.00001 ... 2")
    sampling.add_argument("--top-p", type=float, help="nucleus mass, up to 1")
    sampling.add_argument("--top-k", type=int, help="candidates kept")
    sampling.add_argument("--repetition-penalty", type=float, help="0.5 ... 2")
    sampling.add_argument("--min-new-tokens", type=int, help="steps before the end is allowed")
    sampling.add_argument("--max-new-tokens", type=int, help="most steps per segment, 1 ... 2048")


if __name__ == "__main__":
    sys.exit(main())
