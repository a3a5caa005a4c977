"""The command `batch`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from rich.progress import Progress
from typer import Argument, BadParameter, Option

from .._client import ChatTTSClient
from .._exceptions import ChatTTSError
from .._types import Audio
from . import output as out
from .inputs import decode
from .interrupts import EXIT_INTERRUPTED, handled_by
from .lines import FORMATS, Format, Line, read_lines
from .manifest import STANDARD_INPUT, Manifest
from .options import FLAG, AsJson, Server, Speech
from .sinks import check_extras

_Failure: TypeAlias = ChatTTSError | ValueError | OSError


@dataclass
class _Run:
    """What has become of the lines so far."""

    folder: Path
    suffix: str
    manifest: Manifest
    total: int
    kept: int
    spoken: int = 0
    audio_s: float = 0.0
    failures: list[tuple[Line, _Failure]] = field(default_factory=list)
    in_a_row: int = 0
    warned: int = 0
    untrained: bool = False

    def take(self, line: Line, answer: Audio | ChatTTSError) -> None:
        """Write the file of a line, or note its failure."""
        if isinstance(answer, Audio):
            answer = out.missing_audio(answer) or answer
        if isinstance(answer, ChatTTSError):
            self._fail(line, answer, code=answer.code, request_id=answer.request_id)
            return
        path = self.folder / f"{line.name}.{self.suffix}"
        try:
            answer.save(path)
            size = {"file": path.name, "bytes": path.stat().st_size}
            self.manifest.add(line, {**size, **out.facts(answer)})
        except (ValueError, OSError) as error:  # no audio, which this format cannot hold; the disk
            self._fail(line, error, request_id=answer.request_id)
            return
        self.in_a_row = 0
        self.spoken += 1
        self.audio_s += answer.duration_s
        self.warned += bool(answer.warnings or answer.quality)
        self.untrained |= answer.untrained

    def _fail(self, line: Line, error: _Failure, **known: str) -> None:
        self.failures.append((line, error))
        self.in_a_row += 1
        with suppress(OSError):  # the disk again; what is not in the manifest is not done
            self.manifest.add(line, {"error": str(error), **known})


def batch(
    source: Annotated[
        str, Argument(metavar="FILE", help=".txt, .csv or .jsonl; - reads standard input.")
    ],
    server: Server,
    speech: Speech,
    output: Annotated[
        Path, Option("--output", "-o", metavar="FOLDER", help="Where files and manifest go.")
    ],
    input_format: Annotated[
        Format | None, Option("--input-format", help="Default: by the suffix.")
    ] = None,
    suffix: Annotated[
        Literal["wav", "flac", "ogg", "mp3"], Option("--format", help="Of the audio files.")
    ] = "wav",
    concurrency: Annotated[
        int, Option("--concurrency", "-j", min=1, metavar="N", help="Lines at once.")
    ] = 8,
    give_up_after: Annotated[
        int, Option(min=0, metavar="N", help="Stop after N failures in a row, 0 = never.")
    ] = 10,
    overwrite: Annotated[
        bool,
        Option("--overwrite", metavar=FLAG, help="Also files that another input has made."),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Speak many lines into a folder; interrupted, it can go on.

    Each line becomes a file, and manifest.jsonl says what became of each.

    A text file has one utterance per line. A CSV file has a column `text`, JSONL the key `text`;
    further columns or keys are `name` (the stem of the file) and the speech options with an
    underscore, such as `voice`, `seed` or `max_new_tokens`; they go before those given here.

    The same command again speaks only what is missing, failed or has changed. Another input whose
    names are in the folder already is refused.
    """
    check_extras(f".{suffix}", play=False)
    lines = _read(source, input_format, speech)
    if not lines:
        out.note(f"warning: {source}: there is no line to speak")
    output.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(output, _place(source))
    pending = [line for line in lines if not manifest.is_done(line, f"{line.name}.{suffix}")]
    run = _Run(output, suffix, manifest, len(lines), len(lines) - len(pending))
    try:
        if not overwrite:
            manifest.check(lines)
        with server.open() as client, out.progress() as bar:
            _speak(client, pending, concurrency, give_up_after, run, bar)
    except KeyboardInterrupt:
        done = run.kept + run.spoken
        out.note(f"interrupted: {done} of {run.total} lines are done; run it again to go on")
        return EXIT_INTERRUPTED
    finally:
        manifest.close(lines)
    _report(run, as_json)
    return out.exit_code(run.failures[0][1]) if run.failures else 0


def _read(source: str, input_format: Format | None, speech: Speech) -> list[Line]:
    kind = input_format or FORMATS.get(Path(source).suffix.lower())
    if kind is None:
        known = ", ".join(FORMATS)
        message = f"{source!r} does not end in {known}: say --input-format text, csv or jsonl"
        raise BadParameter(message, param_hint="FILE")
    is_input = source == "-"
    content = sys.stdin.buffer.read() if is_input else Path(source).read_bytes()
    name = STANDARD_INPUT if is_input else source
    return read_lines(decode(content, name), kind, name, speech.given())


def _place(source: str) -> str:
    """The input as the manifest names it, whatever the working folder."""
    return STANDARD_INPUT if source == "-" else str(Path(source).resolve())


def _speak(
    client: ChatTTSClient,
    lines: Sequence[Line],
    concurrency: int,
    give_up_after: int,
    run: _Run,
    bar: Progress,
) -> None:
    task = bar.add_task("lines", total=run.total, completed=run.kept)
    items = ((line.text, line.options) for line in lines)
    answers = client.synthesize_many(items, concurrency=concurrency, return_errors=True)
    with closing(answers):
        for line, answer in zip(lines, answers, strict=True):
            with _uninterrupted():
                run.take(line, answer)
            bar.advance(task)
            if run.in_a_row == give_up_after != 0:
                break


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the end: a file and its line in the manifest belong together."""
    came: list[int] = []
    with handled_by(lambda number, frame: came.append(number), signal.default_int_handler):
        yield
    if came:
        raise KeyboardInterrupt


def _report(run: _Run, as_json: bool) -> None:
    for line, error in run.failures:
        out.note(f"line {line.number} ({line.name}): {out.explain(error)}")
    if run.warned:
        out.note(f"warning: {run.warned} of the spoken lines have warnings; the manifest has them")
    if run.untrained:
        out.note(out.UNTRAINED)
    left = run.total - run.kept - run.spoken - len(run.failures)
    if left:
        out.note(f"given up after {run.in_a_row} failed lines in a row; {left} were not tried")
    counts = {
        "lines": run.total,
        "kept": run.kept,
        "spoken": run.spoken,
        "failed": len(run.failures),
        "not_tried": left,
    }
    if as_json:
        out.print_json({**counts, "audio_s": run.audio_s, "manifest": str(run.manifest.path)})
    else:
        print(
            f"{run.folder}: {run.total} lines, {run.spoken} spoken, {run.kept} kept, "
            f"{len(run.failures)} failed, {run.audio_s:.1f} s of new audio"
        )
