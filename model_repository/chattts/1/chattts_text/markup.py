"""Control tokens, forced readings, pauses and the small part of SSML that we honour."""

from collections.abc import Iterable

from .aligned import Edit
from .context import Context


def stage(text: str, context: Context) -> Iterable[Edit]:
    """See above."""
    return ()
