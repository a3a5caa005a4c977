"""Commands whose options are dataclasses, as functions that typer understands."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints


def flattened(function: Callable[..., int]) -> Callable[..., int]:
    """A command whose dataclass arguments have become one option per field."""
    # not get_type_hints: before Python 3.11 it wraps what has the default None, extras and all
    hints = inspect.get_annotations(function, eval_str=True)
    groups = {name: hint for name, hint in hints.items() if _is_group(hint)}
    parameters: list[inspect.Parameter] = []
    for name in inspect.signature(function).parameters:
        if name in groups:
            parameters += _parameters(groups[name])
        else:
            default = inspect.signature(function).parameters[name].default
            parameters.append(_parameter(name, default, hints[name]))

    @functools.wraps(function)
    def call(**values: Any) -> int:
        built = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return function(**built, **values)

    vars(call)["__signature__"] = inspect.Signature(parameters)
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def _is_group(hint: Any) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)


def _parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [_parameter(field.name, field.default, hints[field.name]) for field in fields(group)]


def _parameter(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
