"""The commands that ask what there is: `voices`, `models` and `health`."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from .._health import ModelInfo
from .._types import Voice
from . import output as out
from .options import AsJson, ModelVersion, Server


def voices(server: Server, model_version: ModelVersion = None, as_json: AsJson = False) -> int:
    """List the voices.

    Name, languages, gender, kind, whether somebody has listened to it, description.
    """
    with server.open() as client:
        found = client.voices(model_version=model_version or "")
    if as_json:
        out.print_json(found)
        return 0
    columns = ("name", "languages", "gender", "kind", "heard", "description")
    _print_rows(columns, [_voice_row(voice) for voice in found])
    return 0


def models(server: Server, as_json: AsJson = False) -> int:
    """List the models of the server and whether they are ready.

    A line per served version: name, version, state, weights, precision.
    """
    with server.open() as client:
        found = client.models()
    if as_json:
        out.print_json(found)
        return 0
    columns = ("name", "version", "state", "weights", "precision")
    _print_rows(columns, [_model_row(model) for model in found])
    return 0


def health(server: Server, as_json: AsJson = False) -> int:
    """Ask whether the server is ready.

    Exit status 3 if it is not; the line says why.
    """
    with server.open() as client:
        found = client.health()
    if as_json:
        out.print_json(found)
    else:
        reason = f": {found.reason}" if found.reason else ""
        print(f"{found.url}: {'ready' if found.ready else 'not ready'}{reason}")
    return 0 if found.ready else out.EXIT_UNAVAILABLE


def _voice_row(voice: Voice) -> tuple[str, ...]:
    heard = "auditioned" if voice.auditioned else "not auditioned"
    languages = ", ".join(voice.languages)
    return voice.name, languages, voice.gender, voice.kind, heard, voice.description


def _model_row(model: ModelInfo) -> tuple[str, ...]:
    state = "ready" if model.ready else "not ready"
    weights = f"{model.checkpoint} (UNTRAINED)" if model.untrained else model.checkpoint
    return model.name, model.version, state, weights, model.precision


def _print_rows(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """A table on a terminal; elsewhere a line per row, with tabs between the columns."""
    console = out.terminal()
    if not console.is_terminal:
        for row in rows:
            print("\t".join(row))
        return
    table = Table(*columns, box=None, header_style="bold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
