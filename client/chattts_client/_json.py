"""Typed access to the JSON objects of a response: what does not fit is a `ProtocolError`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeVar

from ._exceptions import ProtocolError

JsonObject = Mapping[str, object]
T = TypeVar("T")


def parse_object(content: bytes | str) -> JsonObject:
    """Parse one JSON object."""
    try:
        value = json.loads(content)
    except ValueError as error:
        raise ProtocolError(f"the answer is not JSON: {error}") from error
    return _expect("the answer", value, dict)


def get(source: JsonObject, key: str, kind: type[T]) -> T:
    """The value of `key`, which must be a `kind`."""
    return _expect(f"{key!r}", source.get(key), kind)


def get_number(source: JsonObject, key: str) -> float:
    """The value of `key`, which must be a number."""
    value = source.get(key)
    return float(value) if isinstance(value, int) else get(source, key, float)


def get_optional_number(source: JsonObject, key: str) -> float | None:
    """The value of `key`, which must be a number or null."""
    return None if source.get(key) is None else get_number(source, key)


def get_list(source: JsonObject, key: str, kind: type[T]) -> tuple[T, ...]:
    """The items of `key`, each of which must be a `kind`."""
    return tuple(_expect(f"an item of {key!r}", item, kind) for item in get(source, key, list))


def _expect(what: str, value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise ProtocolError(f"{what} is {value!r} instead of a {kind.__name__}")
    return value
