"""Traditional characters become simplified ones, by phrase (OpenCC, loaded when first needed)."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from .aligned import Edit
from .context import Context
from .language import HAN

_HAN_RUN = re.compile(rf"[{HAN}]+")
_TRADITIONAL = frozenset("乾後於徵夥菸麽")


def stage(text: str, context: Context) -> Iterable[Edit]:
    """See above; a run of Han that is simplified throughout is never touched."""
    for run in _HAN_RUN.finditer(text):
        if not _is_simplified(run[0]):
            yield from _converted(run[0], run.start())


def _is_simplified(han: str) -> bool:
    """Say whether all characters are in GB 2312, and none is traditional although it is there."""
    try:
        han.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return _TRADITIONAL.isdisjoint(han)


def _converted(han: str, start: int) -> Iterator[Edit]:
    simplified = _converter()(han)
    if len(simplified) != len(han):
        yield Edit(start, start + len(han), simplified)
        return
    for offset, (old, new) in enumerate(zip(han, simplified, strict=True)):
        if old != new:
            yield Edit(start + offset, start + offset + 1, new)


@cache
def _converter() -> Callable[[str], str]:
    from opencc import OpenCC

    convert: Callable[[str], str] = OpenCC("t2s").convert
    return convert
