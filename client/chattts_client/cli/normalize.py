"""The command `normalize`."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Option

from .._answers import read_prepared
from .._exceptions import InvalidRequestError
from .._extras import missing_extra
from .._types import NormalizedText, SpeechOptions
from . import output as out
from .options import FLAG, AsJson, Reading, Server, TextSource


def normalize(
    source: TextSource,
    server: Server,
    reading: Reading,
    offline: Annotated[
        bool,
        Option(
            "--offline",
            metavar=FLAG,
            help="Without a server, whatever its voice can read; needs the extra `text`.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Show how a text would be read, without speaking it.

    Segments go to standard output, warnings to standard error; --json has the alignment too.
    """
    text, options = source.read(), reading.given()
    if offline:
        found = _prepare(text, options)
    else:
        with server.open() as client:
            found = client.normalize(text, **options)
    if as_json:
        out.print_json(found)
        return 0
    for segment in found.segments:
        pause = f", then {segment.pause_ms} ms of silence" if segment.pause_ms else ""
        print(f"{segment.text.strip()}\t({segment.estimated_s:.1f} s{pause})")
    for warning in found.warnings:
        out.note(f"warning: {out.describe_warning(warning)}")
    return 0


def _prepare(text: str, options: SpeechOptions) -> NormalizedText:
    if not text.strip():
        raise InvalidRequestError("text: there is none", field="text")  # as a server says
    try:
        from chattts_text.offline import prepare
    except ImportError as error:
        raise ImportError(f"{missing_extra('--offline', '[text]')} ({error})") from error
    switches: Any = options.get("options")
    return read_prepared(prepare(text, switches, options.get("language", "auto")).as_json())
