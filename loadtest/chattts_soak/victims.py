"""Callers that take part in one request and then go, each in its own way, at a known moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal, get_args

from chattts_client import ChatTTSClient, RequestTimeoutError, SpeechOptions, SpeechStream

from .callers import LIMIT_S, EventStream
from .relay import Relay

Way = Literal["client cancel", "connection lost", "gRPC deadline", "HTTP stream dropped"]
WAYS: tuple[Way, ...] = get_args(Way)

Leave = Callable[[], float]
"""Goes, and returns the monotonic seconds at which it went."""


@contextmanager
def victim(
    way: Way, grpc_url: str, http_url: str, text: str, options: SpeechOptions, stay_s: float
) -> Iterator[Leave]:
    """Start to stream a text and read its first audio.

    Args:
        way: how the caller will go.
        grpc_url: HOST:PORT of the server.
        http_url: the same for HTTP.
        text: what to say; long enough not to end before the caller goes.
        options: of the request.
        stay_s: seconds until the deadline of the one caller that has one.
    """
    with ExitStack() as stack:
        if way == "HTTP stream dropped":
            events = EventStream(http_url, {"text": text, **options})
            stack.enter_context(events)
            next(iter(events))
            yield lambda: _now_after(events.close)
            return
        url, limit_s = grpc_url, LIMIT_S
        if way == "connection lost":
            relay = stack.enter_context(Relay(grpc_url))
            url = relay.url
        elif way == "gRPC deadline":
            limit_s = stay_s
        client = stack.enter_context(ChatTTSClient(url, max_retries=0))
        stream = client.stream(text, timeout_s=limit_s, **options)
        next(stream)
        if way == "connection lost":
            yield lambda: _now_after(relay.sever)
        elif way == "gRPC deadline":
            yield lambda: _now_after(lambda: _wait_for_deadline(stream))
        else:
            yield lambda: _now_after(stream.close)


def _now_after(leave: Callable[[], object]) -> float:
    leave()
    return time.monotonic()


def _wait_for_deadline(stream: SpeechStream) -> None:
    try:
        stream.result()
    except RequestTimeoutError:
        return
    raise AssertionError("the text was spoken before the deadline")
