"""What users have written, read and checked: text files, JSON, the speed."""

from __future__ import annotations

import json
import reprlib
from typing import Any, cast

SPEED = "speed"
"""The one switch of `options` that is a flag of its own."""
_SLOWEST, _FASTEST = 0.5, 2.0
SPEEDS = f"{_SLOWEST:g} ... {_FASTEST:g}"


def decode(content: bytes, name: str) -> str:
    """UTF-8, with or without a byte order mark.

    Raises:
        ValueError: it is not; the message names the source.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8: byte {error.start} is wrong") from error


def parse_switches(content: str) -> dict[str, Any]:
    """The JSON object of --options.

    Raises:
        ValueError: it is something else; the message shows where, and an example.
    """
    example = """write it like '{"trim": true}'"""
    try:
        value = load_json(content)
    except ValueError as error:
        raise ValueError(f"{content!r} {error}; {example}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{content!r} is no JSON object; {example}")
    return value


def load_json(content: str) -> object:
    """What a piece of JSON holds.

    Raises:
        ValueError: it is none, or has a key twice; the message goes on after its name.
    """
    try:
        return json.loads(content, object_pairs_hook=_without_doubles)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"is not JSON ({error})") from error


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"has the key {twice!r} twice")
    return found


def check_speed(value: object, name: str) -> None:
    """Refuse what is no speed.

    Raises:
        ValueError: the message begins with `name`.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not _SLOWEST <= cast(float, value) <= _FASTEST:
        raise ValueError(f"{name}: {reprlib.repr(value)} is no number in {SPEEDS}")
