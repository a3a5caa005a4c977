"""The lines of a batch: read from text, CSV or JSONL, and checked before anything is sent."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args, get_type_hints

from .._exceptions import InvalidRequestError
from .._protocol import speech_request
from .._types import SpeechOptions
from .inputs import SPEED, check_speed, load_json, parse_switches

Format = Literal["text", "csv", "jsonl"]
FORMATS: Mapping[str, Format] = {
    ".txt": "text",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
"""Suffix of a file to what it holds."""
TEXT = "text"
NAME = "name"
_KINDS: Mapping[str, Any] = {**get_type_hints(SpeechOptions), SPEED: float}
COLUMNS = (TEXT, NAME, *_KINDS)
"""What a line may have: the options of speech, `speed`, and the stem of its file."""
_GOOD_NAME = re.compile(r"\w[\w.-]*")
_LONGEST_NAME_BYTES = 200
"""File systems take 255, with the suffix."""
_SWITCHES = "options"
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class Line:
    """One utterance of a batch."""

    number: int
    """Where it is in the input, from 1; in CSV the header is line 1."""
    name: str
    """Stem of its file."""
    text: str
    """What to say."""
    options: SpeechOptions
    """How, with the defaults of the batch."""

    @property
    def key(self) -> str:
        """SHA-256 of what it says and how: another text or option, another key."""
        content = json.dumps([self.text, self.options], ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def read_lines(content: str, kind: Format, source: str, defaults: SpeechOptions) -> list[Line]:
    """All lines, in order; blank ones are left out.

    Args:
        content: the whole input.
        kind: how it is written.
        source: its name, for messages.
        defaults: options of lines that do not say otherwise.

    Raises:
        ValueError: a line or column is wrong; the message names it.
    """
    records = {"text": _text_records, "csv": _csv_records, "jsonl": _json_records}[kind]
    is_csv, lines, places = kind == "csv", [], dict[str, int]()
    for number, record in records(content, source):
        try:
            typed = {key: _value(key, cell) for key, cell in record.items()} if is_csv else record
            line = _line(number, typed, defaults)
            first = places.setdefault(line.name.casefold(), number)
            if first != number:
                raise ValueError(f"name: {line.name!r} is that of line {first} too")
        except (ValueError, InvalidRequestError) as error:
            raise ValueError(f"{source}, line {number}: {error}") from error
        lines.append(line)
    return lines


def _text_records(content: str, source: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            yield number, {TEXT: line.strip()}


def _csv_records(content: str, source: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(io.StringIO(content, newline=""), strict=True)
    number = 1
    try:
        columns = reader.fieldnames or ()
        for column in columns:
            _check_known(column, f"{source}: column")
            if columns.count(column) > 1:
                raise ValueError(f"{source}: column {column!r} is there twice")
        if TEXT not in columns:
            raise ValueError(f"{source}: no column {TEXT!r}")
        number = reader.line_num + 1
        for row in reader:
            if None in row:
                raise ValueError(f"{source}, line {number}: more cells than columns")
            yield number, {name: cell for name, cell in row.items() if cell}
            number = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"{source}, line {number}: {error}") from error


def _json_records(content: str, source: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{source}, line {number}"
        try:
            record = load_json(line)
        except ValueError as error:
            raise ValueError(f"{place} {error}") from error
        if not isinstance(record, dict):
            raise ValueError(f"{place}: not a JSON object")
        for key in record:
            _check_known(key, f"{place}: key")
        yield number, {key: value for key, value in record.items() if value is not None}


def _check_known(name: str, place: str) -> None:
    if name not in COLUMNS:
        raise ValueError(f"{place} {name!r} is unknown; known are {', '.join(COLUMNS)}")


def _line(number: int, record: dict[str, Any], defaults: SpeechOptions) -> Line:
    text, name = record.pop(TEXT, ""), record.pop(NAME, f"{number:05d}")
    if not isinstance(text, str):
        raise ValueError(f"{TEXT}: {reprlib.repr(text)} is no string")
    if not text.strip():
        raise ValueError(f"{TEXT}: there is none")
    if not isinstance(name, str) or not _GOOD_NAME.fullmatch(name):
        raise ValueError(f"{NAME}: {name!r} is no stem of a file: letters, digits, _ . -")
    if len(name.encode()) > _LONGEST_NAME_BYTES:
        raise ValueError(f"{NAME}: {name[:20]!r}… is longer than {_LONGEST_NAME_BYTES} bytes")
    switches = {**defaults.get("options", {}), **_own_switches(record)}
    options: dict[str, Any] = {**defaults, **record}
    if switches:
        options[_SWITCHES] = switches
    speech_request(text, options, stream=False)  # refuses wrong values
    return Line(number, name, text, cast(SpeechOptions, options))


def _own_switches(record: dict[str, Any]) -> dict[str, Any]:
    switches = record.pop(_SWITCHES, {})
    if not isinstance(switches, dict):
        raise ValueError(f"{_SWITCHES}: {switches!r} is no JSON object")
    if SPEED not in record:
        return switches
    check_speed(record[SPEED], SPEED)
    return {**switches, SPEED: record.pop(SPEED)}


def _value(name: str, cell: str) -> object:
    """A cell of a CSV file as what its column holds."""
    kind = _KINDS.get(name, str)
    if name == _SWITCHES:
        return parse_switches(cell)
    if kind is bool:
        if cell.casefold() not in _BOOLEANS:
            raise ValueError(f"{name}: {cell!r} is neither true nor false")
        return _BOOLEANS[cell.casefold()]
    if kind in (int, float):
        try:
            return kind(cell)
        except ValueError as error:
            raise ValueError(f"{name}: {cell!r} is no number") from error
    if (choices := get_args(kind)) and cell not in choices:
        raise ValueError(f"{name}: {cell!r} is none of {', '.join(choices)}")
    return cell
