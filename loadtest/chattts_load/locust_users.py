"""Locust users, one class per way to ask, and one that does not wait for answers.

Importing this imports locust, which patches the standard library for gevent.
"""

from __future__ import annotations

import random
import time
from typing import Any, ClassVar

import gevent  # type: ignore[import-untyped]
from gevent.pool import Group  # type: ignore[import-untyped]
from locust import User, constant, task
from locust.env import Environment

from .callers import OPENERS, Caller, call
from .records import Record, RecordWriter
from .texts import TextMix

PAUSE_AFTER_ERROR_S = 0.5
"""So that a server that refuses is not asked in a tight loop."""
MOST_IN_FLIGHT = 512
"""Arrivals beyond it are failures that were not sent: the server has lost the race."""
_DRAIN_S = 60.0


class LoadEnvironment(Environment):
    """What the locustfile hangs on locust's environment, for types only."""

    text_mix: TextMix
    record_writer: RecordWriter | None
    parsed_options: Any


class SpeechUser(User):
    """Asks again as soon as the answer has come."""

    abstract = True
    wait_time = constant(0)
    kind: ClassVar[str] = ""
    environment: LoadEnvironment

    def on_start(self) -> None:
        """Open the connection."""
        self.caller = open_caller(self.environment, self.kind)

    def on_stop(self) -> None:
        """Close it."""
        self.caller.close()

    @task
    def speak(self) -> None:
        """Speak one text."""
        record = call(self.caller, self.kind, *self.environment.text_mix.draw())
        tell(self.environment, record)
        if record.error:
            gevent.sleep(PAUSE_AFTER_ERROR_S)


class StreamUser(SpeechUser):
    """gRPC streaming."""

    kind = "stream"
    weight = 8


class UnaryUser(SpeechUser):
    """Unary gRPC."""

    kind = "unary"


class HttpUser(SpeechUser):
    """HTTP."""

    kind = "http"


class OpenLoop(User):
    """One generator of streams at random times, whether or not earlier ones have ended.

    Callers on the internet do not wait for each other: where users that wait slow down with the
    server, these arrivals queue up.
    """

    wait_time = constant(0)
    environment: LoadEnvironment

    def on_start(self) -> None:
        """Begin the schedule."""
        options = self.environment.parsed_options
        self._rate = options.rate
        self._random = random.Random(options.text_seed + 1)
        self._next_at = time.perf_counter()
        self._idle: list[Caller] = []
        self._running = Group()

    def on_stop(self) -> None:
        """Wait for what is still being spoken."""
        self._running.join(timeout=_DRAIN_S)
        for caller in self._idle:
            caller.close()

    @task
    def arrive(self) -> None:
        """Wait for the next time of arrival, and send a request."""
        self._next_at += self._random.expovariate(self._rate)
        gevent.sleep(max(0.0, self._next_at - time.perf_counter()))
        if len(self._running) < MOST_IN_FLIGHT:
            self._running.spawn(self._speak)
        else:
            error = RuntimeError("not sent: too many in flight")
            fire(self.environment, "stream", "full", 0.0, 0, error)

    def _speak(self) -> None:
        caller = self._idle.pop() if self._idle else open_caller(self.environment, "stream")
        tell(self.environment, call(caller, "stream", *self.environment.text_mix.draw()))
        self._idle.append(caller)


def open_caller(environment: LoadEnvironment, kind: str) -> Caller:
    """Connect a caller of a kind to the server that locust was told."""
    options = environment.parsed_options
    return OPENERS[kind](options.http_url if kind == "http" else options.grpc_url)


def tell(environment: LoadEnvironment, record: Record) -> None:
    """Give a record to locust's statistics and to the file of records.

    "full" is the request. The others are entries beside it that do not count in the totals: first
    audio in ms, the real-time factor in thousandths, and each stream that ran dry with its ms.
    """
    error = RuntimeError(record.error) if record.error else None
    fire(environment, record.kind, f"full {record.length}", record.latency_s, record.audio_s, error)
    if record.is_ok:
        entry(environment, record, "first audio", 1000 * record.first_audio_s)
        entry(environment, record, "real-time factor ‰", 1000 * record.real_time_factor)
        if record.waits:
            entry(environment, record, "underrun", 1000 * record.waited_s)
    if environment.record_writer:
        environment.record_writer.write(record)


def fire(
    environment: LoadEnvironment,
    kind: str,
    name: str,
    latency_s: float,
    audio_s: float,
    error: Exception | None,
) -> None:
    """Report one request to locust; its length counts as milliseconds of audio."""
    request: Any = environment.events.request
    request.fire(
        request_type=kind,
        name=name,
        response_time=1000 * latency_s,
        response_length=round(1000 * audio_s),
        exception=error,
        context={},
    )


def entry(environment: LoadEnvironment, record: Record, name: str, value: float) -> None:
    """Add a figure to an entry of its own."""
    statistics: Any = environment.stats.get(f"{name} {record.length}", record.kind)
    statistics.log(value, 0)
