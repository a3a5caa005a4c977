"""Characters that the model does not know: a homophone, or a warning."""

from collections.abc import Iterable

from .aligned import Edit
from .context import Context


def stage(text: str, context: Context) -> Iterable[Edit]:
    """See above."""
    return ()
