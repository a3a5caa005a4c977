"""What is asked of many utterances, and those of them that are looked ahead.

`_many` speaks them, in threads or in tasks; the rules that both share are here.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from ._exceptions import ChatTTSError, InvalidRequestError
from ._protocol import speech_request
from ._types import Audio, SpeechOptions

Item = str | tuple[str, SpeechOptions]
"""A text, or a text with options of its own, which come before those of the call."""
Progress = Callable[[int], None]
"""Takes how many utterances have ended so far, well or not."""
Options = Mapping[str, object]
DEFAULT_CONCURRENCY: Final = 8

_WINDOW = 2
"""Utterances that are looked ahead, in multiples of `concurrency`."""


class End(enum.Enum):
    """Stands behind the last item."""

    TOKEN = enum.auto()


END: Final = End.TOKEN


class _Job(Protocol):
    """What futures and tasks have in common."""

    def done(self) -> bool:
        """Whether it has ended."""

    def cancelled(self) -> bool:
        """Whether it was given up."""

    def exception(self) -> BaseException | None:
        """How it failed; None if it did not. Only once it is done."""

    def result(self) -> Any:
        """What it made. Only once it is done."""


J = TypeVar("J", bound=_Job)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of many utterances, apart from how each is spoken; checked when it is made.

    Raises:
        InvalidRequestError: a part of it is wrong, as far as that shows before an item is read.
        TypeError: an unknown option.
    """

    items: Iterable[Item] | AsyncIterable[Item]
    """In the order of the results; read only a little ahead of them."""
    options: Options
    """Those of the call."""
    concurrency: int
    """How many run at once."""
    on_progress: Progress | None
    """Called where the results are taken, never at the same time as the caller's own code."""
    return_errors: bool
    """Whether an error takes the place of its utterance instead of ending all."""

    def __post_init__(self) -> None:
        if isinstance(self.items, (str, bytes)):
            message = "items: one text is not many; give a list of texts"
            raise InvalidRequestError(message, field="items")
        is_whole = isinstance(self.concurrency, int) and not isinstance(self.concurrency, bool)
        if not is_whole or self.concurrency < 1:
            message = f"concurrency: {self.concurrency!r} is not a whole number from 1"
            raise InvalidRequestError(message, field="concurrency")
        if self.on_progress is not None and not callable(self.on_progress):
            message = f"on_progress: {self.on_progress!r} cannot be called"
            raise InvalidRequestError(message, field="on_progress")
        speech_request("", self.options, stream=False)

    def split(self, item: Item) -> tuple[str, Options]:
        """The text of an item and all its options.

        Raises:
            InvalidRequestError: it is neither a text nor a pair.
        """
        if isinstance(item, str):
            return item, self.options
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Mapping):
            return item[0], {**self.options, **item[1]}
        message = f"items: {item!r} is neither a text nor a pair of text and options"
        raise InvalidRequestError(message, field="items")


class Window(Generic[J]):
    """The utterances that are looked ahead, the next one to be handed over first."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._num_taken = 0
        self._num_reported = 0
        self.jobs: deque[J] = deque()
        """Each makes an Audio."""
        self.reading: J | None = None
        """Fetches the next item and begins it: makes one of the jobs, or END. It stays once that or
        an error has ended the source."""

    @property
    def may_read(self) -> bool:
        """Whether the next item is wanted and not asked for yet."""
        return self.reading is None and self._has_room

    def has_begun(self) -> bool:
        """Whether the next item was there; its utterance then is one of the jobs."""
        job = self._begun()
        if job is None or not self._has_room:
            return False
        self.jobs.append(job)
        self.reading = None
        return True

    def _begun(self) -> J | None:
        if self.reading is None or not self.reading.done() or self.reading.cancelled():
            return None
        if self.reading.exception() is not None or self.reading.result() is END:
            return None
        job: J = self.reading.result()
        return job

    @property
    def is_ready(self) -> bool:
        """Whether the next one to be handed over has ended."""
        return bool(self.jobs) and self.jobs[0].done()

    @property
    def _has_room(self) -> bool:
        """Whether a further one may begin."""
        return len(self.jobs) < _WINDOW * self._plan.concurrency and not self._has_failed

    @property
    def _has_failed(self) -> bool:
        """Whether one has failed that will end all, so that no further one should begin."""
        if self._plan.return_errors:
            return False
        return any(job.done() and job.exception() is not None for job in self.jobs)

    def all(self) -> list[J]:
        """Everything that was begun and not handed over, the wait for the next item included."""
        return [*self.jobs, *(one for one in (self.reading, self._begun()) if one is not None)]

    def running(self) -> list[J]:
        """What has not ended of all that."""
        return [job for job in self.all() if not job.done()]

    def report(self) -> None:
        """Tell the caller how many have ended, if more have than were told."""
        num_ended = self._num_taken + sum(job.done() for job in self.jobs)
        if self._plan.on_progress is not None and num_ended > self._num_reported:
            self._plan.on_progress(num_ended)
        self._num_reported = num_ended

    def take(self) -> Audio | ChatTTSError:
        """Hand over the first one, which has ended."""
        job = self.jobs.popleft()
        self._num_taken += 1
        error = job.exception()
        if isinstance(error, ChatTTSError) and self._plan.return_errors:
            return error
        audio: Audio = job.result()
        return audio

    def finish(self) -> None:
        """Raise what has ended the source instead of its last item; all else was handed over."""
        if self.reading is not None:
            self.reading.result()
