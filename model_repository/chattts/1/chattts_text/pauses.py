"""Pause tokens at the ends of clauses."""

import re
from collections.abc import Iterable

from .aligned import Edit
from .context import PLACEHOLDER, Context, Token

_CLAUSE_END = re.compile(rf"(?<=[^\s\d{PLACEHOLDER}])[，,；;：:](?=\s*[^\W_])(?!\d)")
_PAUSE = "[uv_break]"


def stage(text: str, context: Context) -> Iterable[Edit]:
    """See above; a clause that ends with a token of the caller's keeps that one."""
    for match in _CLAUSE_END.finditer(text):
        yield Edit(match.end(), match.end(), context.placeholder(Token(_PAUSE)))
