"""What may arrive as the inputs of a model, right or absurd, and what a parser makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_st

Array = np.ndarray[Any, Any]

SHAPES = st.sampled_from([(), (0,), (1,), (2,), (4,), (1, 1), (3, 4), (0, 4), (2, 3)])
PLAIN_TYPES = st.sampled_from(
    ["?", "i1", "i4", "i8", "u1", "u8", "f2", "f4", "f8", "c8", "S3", "U3", "M8[s]"]
)
OBJECTS = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=20).map(str.encode),
    st.text(max_size=10),
    st.none(),
    st.integers(),
    st.floats(),
    st.lists(st.binary(max_size=3), max_size=2),
)


def arrays(dtype: Any) -> st.SearchStrategy[Array]:
    """Any array of a type: any shape, any values."""
    elements = OBJECTS if np.dtype(dtype) == np.object_ else None
    return numpy_st.arrays(dtype, SHAPES, elements=elements)


def scalars(dtype: Any) -> st.SearchStrategy[Array]:
    """One value of the right type, small or anything."""
    if np.dtype(dtype) == np.object_:
        return OBJECTS.filter(lambda value: isinstance(value, bytes)).map(_one_object)
    any_value = numpy_st.from_dtype(np.dtype(dtype))
    small = st.integers(0, 3).map(np.dtype(dtype).type)
    return (small | any_value).map(lambda value: np.array([value], dtype))


def tensors(types: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Array]]:
    """Some of the named inputs, each one value of its type, an array of it, or any array."""
    anything = PLAIN_TYPES.flatmap(arrays) | arrays(np.object_)
    return st.fixed_dictionaries(
        {},
        optional={name: scalars(t) | arrays(t) | anything for name, t in types.items()},
    )


def outcome(call: Callable[..., Any], *arguments: Any) -> tuple[Any, str]:
    """What a call returned, or what it refused; anything but a ValueError is a bug."""
    try:
        return call(*arguments), ""
    except ValueError as error:
        return None, str(error)


def _one_object(value: object) -> Array:
    array = np.empty(1, np.object_)
    array[0] = value
    return array
