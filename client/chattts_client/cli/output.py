"""What the commands print: results to standard output, all else to standard error, one line each.

Here too: the exit status of each error.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, Literal, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .._exceptions import (
    ChatTTSError,
    InvalidRequestError,
    ProtocolError,
    RequestCancelledError,
    RequestTimeoutError,
    ServerError,
    ServerUnavailableError,
)
from .._types import Audio, SpeechWarning
from .streams import note as note

EXIT_FILE = 1
EXIT_USAGE = 2
EXIT_UNAVAILABLE = 3
EXIT_PROTOCOL = 7
_LOCAL_CODES = {EXIT_FILE: "FILE", EXIT_USAGE: "USAGE"}
"""What went wrong before or beside the request, as the JSON of an error names it."""
EXIT_CODES: dict[type[ChatTTSError], int] = {
    InvalidRequestError: EXIT_USAGE,
    ServerUnavailableError: EXIT_UNAVAILABLE,
    RequestTimeoutError: 4,
    RequestCancelledError: 5,
    ServerError: 6,
    ProtocolError: EXIT_PROTOCOL,
}


UNTRAINED = "notice: the server runs UNTRAINED weights; this audio is noise, not speech"
_COMMAND_NAMES = {
    "transport='http'": "--http",
    "health()": "`chattts doctor`",
    "models()": "`chattts models`",
    "metrics_url": "--metrics-url",
    "ca_file": "--ca-file",
    "timeout_s": "--timeout",
    "headers": "--header",
    "url": "--url",
    "max_retries": "--retries",
    "deadline_ms or queue_deadline_ms": "--deadline-ms or --queue-deadline-ms",
    "transport='grpc'": "gRPC, without --http",
}
_PYTHON_NAMES = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in _COMMAND_NAMES))


def exit_code(error: BaseException) -> int:
    """The exit status for an error that ends a command."""
    if isinstance(error, ChatTTSError):
        return next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind))
    return EXIT_FILE if isinstance(error, OSError) else EXIT_USAGE


def explain(error: BaseException) -> str:
    """One sentence about an error: what happened, its code and request, what to do."""
    if not isinstance(error, ChatTTSError):
        return _as_command(str(error)) or type(error).__name__
    request = f", request {error.request_id}" if error.request_id else ""
    return f"{error} ({error.code}{request}). {advice(error)}".rstrip()


def report_error(message: str, error: BaseException, status: int, json_to: TextIO | None) -> int:
    """Say that a command has failed.

    Args:
        message: one sentence for people, to standard error.
        error: what ended the command.
        status: the exit status.
        json_to: where a line of JSON goes as well; None: it was not asked for.

    Returns:
        The exit status.
    """
    note(f"error: {message}")
    if json_to is not None:
        known = {"code": _LOCAL_CODES.get(status, "UNKNOWN"), "message": message}
        if isinstance(error, ChatTTSError):
            known = {"code": error.code, "message": str(error)}
        details = {key: getattr(error, key, None) or None for key in ("field", "request_id")}
        retryable = bool(getattr(error, "retryable", False))
        found = {**known, **details, "retryable": retryable, "exit": status}
        print(to_json({"error": found}), file=json_to)
    return status


def advice(error: ChatTTSError) -> str:
    """The hint of an error, with the names of the command line instead of those of Python."""
    return _as_command(error.hint)


def _as_command(message: str) -> str:
    return _PYTHON_NAMES.sub(lambda match: _COMMAND_NAMES[match[0]], message)


def print_json(value: object) -> None:
    """Print a result as one line of JSON; numbers that JSON does not have become null."""
    print(to_json(value))


def to_json(value: object) -> str:
    """Dataclasses and plain values as one line of JSON."""
    return json.dumps(_finite(_plain(value)), ensure_ascii=False, allow_nan=False)


def facts(audio: Audio) -> dict[str, Any]:
    """What is known about an utterance, without its samples."""
    known = {field.name: getattr(audio, field.name) for field in fields(audio)}
    del known["samples"]
    measured = {"duration_s": audio.duration_s, "real_time_factor": audio.real_time_factor}
    return {**known, **measured}


def describe(audio: Audio) -> str:
    """An utterance in one line for people."""
    parts = [f"{audio.duration_s:.2f} s" if audio.duration_s else "no audio"]
    parts += [f"voice {audio.voice or 'none'}", f"seed {audio.seed}"]
    if audio.finish_reasons:
        parts.append(f"ended by {', '.join(audio.finish_reasons)}")
    if audio.real_time_factor is not None:
        parts.append(f"real-time factor {audio.real_time_factor:.2f}")
    return ", ".join(parts)


def missing_audio(audio: Audio) -> RequestTimeoutError | None:
    """The error of an utterance whose deadline came before its audio; None: it has what it can."""
    if audio.duration_s or "deadline" not in audio.finish_reasons:
        return None
    return RequestTimeoutError(
        "the deadline came before the first audio",
        request_id=audio.request_id,
        hint="Allow more time with deadline_ms or queue_deadline_ms.",
    )


def note_warnings(audio: Audio) -> None:
    """Say what the caller should know about an utterance that was spoken all the same."""
    for warning in audio.warnings:
        note(f"warning: {describe_warning(warning)}")
    if audio.quality:
        note(f"warning: the server found faults in the audio: {', '.join(audio.quality)}")
    if audio.untrained:
        note(UNTRAINED)


def describe_warning(warning: SpeechWarning) -> str:
    """A warning in one line, with its place in the text."""
    spoken = f" -> {warning.spoken!r}" if warning.spoken else ""
    place = f"characters {warning.start} to {warning.end}, {warning.text!r}{spoken}: "
    return f"{place if warning.start is not None else ''}{warning.message} ({warning.code})"


def terminal() -> Console:
    """Standard output for people; with escape sequences only on a terminal without NO_COLOR."""
    return _console(is_error=False)


def progress() -> Progress:
    """A bar on standard error, invisible where that is no terminal."""
    console = _console(is_error=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def color_system() -> Literal["auto"] | None:
    """What rich may use: nothing with NO_COLOR; its own `no_color` leaves bold and italics."""
    return None if os.environ.get("NO_COLOR") else "auto"


def _console(*, is_error: bool) -> Console:
    return Console(stderr=is_error, highlight=False, color_system=color_system())


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
