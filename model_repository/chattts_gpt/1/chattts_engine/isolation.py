"""Isolation: work on several sequences at once that raises ends only the sequence to blame."""

from __future__ import annotations

import logging
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from typing import TypeVar

from .runner import RunnerDeadError
from .sequence import Sequence

T = TypeVar("T")

_logger = logging.getLogger(__name__)


def isolated(
    sequences: SequenceOf[Sequence],
    work: Callable[[SequenceOf[Sequence]], T],
    fail: Callable[[Sequence, str], None],
) -> list[tuple[SequenceOf[Sequence], T]]:
    """Do work on sequences at once; if that raises, on each alone, and fail whom it raises for.

    Args:
        sequences: of one call; none is no work.
        work: gives a sequence the same bits whoever is beside it, and may be repeated after it
            raised: the positions are written again with the same values.
        fail: told each culprit and why.

    Returns:
        The sequences in order, cut into parts, each with its result: one part if nothing raised.

    Raises:
        RunnerDeadError: nothing can be computed any more, for nobody.
    """
    if not sequences:
        return []
    try:
        return [(sequences, work(sequences))]
    except RunnerDeadError:
        raise
    except Exception as error:
        if len(sequences) == 1:
            _logger.exception("request %s failed", sequences[0].id)
            fail(sequences[0], f"the engine failed: {type(error).__name__}: {error}")
            return []
        _logger.warning("work on %d requests failed (%s); each alone", len(sequences), error)
    return [part for sequence in sequences for part in isolated([sequence], work, fail)]
