"""Deliveries: which caller gets which chunk, pushed to one response stream or pulled one by one.

Knows no Triton: a `Reply` is whatever can answer a call. `Deliveries` is used by one thread, except
for `add`, which the threads that accept requests call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from .chunk import Chunk, join_chunks

PULL_LIMIT_S = 60.0
"""A pulled request that nobody asks after for this long is given up."""


class Reply(Protocol):
    """One call that waits for its answer."""

    def send(self, chunk: Chunk, is_final: bool) -> None:
        """Answer; after the final answer nothing may be asked of the reply any more."""

    def is_cancelled(self) -> bool:
        """Whether the caller has gone."""


class Delivery(Protocol):
    """One request's way to its caller."""

    def put(self, chunk: Chunk) -> bool:
        """Take a chunk; return whether nothing more will happen."""

    def ask(self, reply: Reply) -> bool:
        """Take a `next` call; return whether nothing more will happen.

        Raises:
            ValueError: there is no `next` for this request now.
        """

    def is_abandoned(self, now_s: float) -> bool:
        """Whether nobody will read what comes."""


class Push:
    """Every chunk is a response of the request itself."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def put(self, chunk: Chunk) -> bool:
        """See Delivery."""
        is_last = chunk.finish_reason is not None
        self._reply.send(chunk, is_final=is_last)
        return is_last

    def ask(self, reply: Reply) -> bool:
        """Refuse: see Delivery."""
        raise ValueError("next: the request was not made with pull")

    def is_abandoned(self, now_s: float) -> bool:
        """See Delivery."""
        return self._reply.is_cancelled()


class Pull:
    """The request and each `next` call get one answer; what comes in between is kept and joined."""

    def __init__(self, reply: Reply) -> None:
        self._waiting: Reply | None = reply
        self._kept: list[Chunk] = []
        self._idle_since_s: float | None = None
        """When it was first seen that nobody waits for the next chunk."""

    def put(self, chunk: Chunk) -> bool:
        """See Delivery."""
        self._kept.append(chunk)
        # Whoever cancels does not ask again, so the last chunk need not be kept.
        return self._answer() or chunk.finish_reason == "cancelled"

    def ask(self, reply: Reply) -> bool:
        """See Delivery."""
        if self._waiting is not None:
            raise ValueError("next: an earlier call for this request is not answered yet")
        self._waiting, self._idle_since_s = reply, None
        return self._answer()

    def is_abandoned(self, now_s: float) -> bool:
        """See Delivery."""
        if self._waiting is not None:
            return False
        if self._idle_since_s is None:
            self._idle_since_s = now_s
        return now_s - self._idle_since_s > PULL_LIMIT_S

    def _answer(self) -> bool:
        """Send what is kept, if somebody waits and there is anything."""
        if self._waiting is None or not self._kept:
            return False
        chunk = join_chunks(self._kept)
        self._kept.clear()
        waiting, self._waiting = self._waiting, None
        waiting.send(chunk, is_final=True)
        return chunk.finish_reason is not None


class Deliveries:
    """The deliveries of all requests that are not over."""

    def __init__(self) -> None:
        self._deliveries: dict[str, Delivery] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._deliveries)

    def add(self, request_id: str, delivery: Delivery, submit: Callable[[], None]) -> None:
        """Submit a request and know its delivery before its first chunk can come.

        A refused request's reply is never kept, since whoever is told of the refusal ends it.

        Raises:
            Exception: whatever `submit` raises.
        """
        with self._lock:
            submit()
            self._deliveries[request_id] = delivery

    def put(self, chunk: Chunk) -> None:
        """Deliver a chunk; those of a request that was given up are dropped."""
        delivery = self._find(chunk.request_id)
        if delivery is not None and delivery.put(chunk):
            self._forget(chunk.request_id)

    def ask(self, request_id: str, reply: Reply) -> None:
        """Answer a `next` call, now or when the next chunk comes.

        Raises:
            ValueError: no such request, or no `next` for it now.
        """
        delivery = self._find(request_id)
        if delivery is None:
            raise ValueError(f"next: {request_id!r} is not a running request")
        if delivery.ask(reply):
            self._forget(request_id)

    def give_up(self, now_s: float) -> list[str]:
        """Return the requests that nobody will read any more; pulled ones are forgotten."""
        with self._lock:
            known = list(self._deliveries.items())
        abandoned = [(key, delivery) for key, delivery in known if delivery.is_abandoned(now_s)]
        for request_id, delivery in abandoned:
            if isinstance(delivery, Pull):
                self._forget(request_id)
        return [request_id for request_id, _ in abandoned]

    def drop(self, request_id: str) -> None:
        """Forget a request whose caller could not be answered."""
        with self._lock:
            self._deliveries.pop(request_id, None)

    def _find(self, request_id: str) -> Delivery | None:
        with self._lock:
            return self._deliveries.get(request_id)

    def _forget(self, request_id: str) -> None:
        with self._lock:
            del self._deliveries[request_id]
