"""Traffic: what is asked how often, by how many threads and tasks, and bursts now and then.

All threads deal from one shuffled deck, and so do all tasks: two runs with one seed ask the same in
the same order, at other moments.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import Random

from chattts_client import AsyncChatTTSClient

from . import asynchronous, good, leaving, malformed
from .callers import LIMIT_S, Target
from .outcomes import Outcome, Tally
from .utterances import Repertoire

Kind = Callable[[Target, Repertoire, Random], Outcome]
AsyncKind = Callable[[AsyncChatTTSClient, Repertoire, Random], Awaitable[Outcome]]
_POLL_S = 0.05

LEFT_AT_THE_END = "left at the end"

KINDS: Mapping[str, tuple[int, Kind]] = {
    "stream": (14, good.stream),
    "at once": (8, good.at_once),
    "http": (5, good.http),
    "unary grpc": (4, good.unary_grpc),
    "http stream": (2, good.http_stream),
    "long": (3, good.long),
    "shaped": (4, good.shaped),
    "slow reader": (4, good.slow_reader),
    "late reader": (2, good.late_reader),
    "low latency": (4, good.low_latency),
    "deadline": (5, good.deadline),
    "queue deadline": (3, good.queue_deadline),
    "left before first": (8, leaving.before_first),
    "left between": (8, leaving.between),
    LEFT_AT_THE_END: (4, leaving.at_the_end),
    "connection closed": (3, leaving.close_connection),
    "connection lost": (3, leaving.lose_connection),
    "time limit": (6, leaving.time_limit),
    "http stream dropped": (6, leaving.drop_http_stream),
    "unary dropped": (3, leaving.drop_unary),
    "bad text": (4, malformed.bad_text),
    "bad option": (6, malformed.bad_option),
    "bad shape": (3, malformed.bad_shape),
    "bad body": (3, malformed.bad_body),
}
"""Name to how many cards of it lie in a deck, and what it does."""
ASYNC_KINDS: Mapping[str, tuple[int, AsyncKind]] = {
    "async stream": (8, asynchronous.stream),
    "async at once": (4, asynchronous.at_once),
    "async left": (6, asynchronous.leave),
    "async cancelled": (3, asynchronous.cancel_task),
}
"""The same for asyncio, over gRPC."""
ASYNC_HTTP_KINDS: Mapping[str, tuple[int, AsyncKind]] = {"async http": (1, asynchronous.at_once)}
"""The same over HTTP, for a task of its own, since a client has one transport."""
ALL_KINDS = (*KINDS, *ASYNC_KINDS, *ASYNC_HTTP_KINDS, asynchronous.BURST)


@dataclass(frozen=True, slots=True)
class Volume:
    """How much traffic there is at once."""

    num_threads: int = 8
    num_tasks: int = 4
    burst_size: int = 80
    """Requests at once of one segment each: more than the front model takes."""
    long_burst_size: int = 16
    """Requests at once for many segments each: large answers at the same time."""
    burst_every_s: float = 30.0
    """Seconds from one burst to the next; the two sizes take turns."""
    first_burst_s: float = 2.0


WARM_UP = Volume(burst_every_s=5.0)
"""More bursts than later, so that heaps, pools and shared memory have had their largest size."""


class Deck:
    """A deck of kinds that is dealt over and over, shuffled each time; for several threads."""

    def __init__(self, kinds: Mapping[str, tuple[int, object]], seed: str) -> None:
        self._cards = [name for name, (count, _) in kinds.items() for _ in range(count)]
        self._seed = seed
        self._chance = Random(seed)
        self._num_dealt = 0
        self._lock = threading.Lock()

    def deal(self) -> tuple[str, Random]:
        """Return the next kind, and the chance that decides everything else about its request."""
        with self._lock:
            place = self._num_dealt % len(self._cards)
            if place == 0:
                self._chance.shuffle(self._cards)
            self._num_dealt += 1
            return self._cards[place], Random(f"{self._seed} {self._num_dealt}")


class Traffic:
    """One stretch of traffic; `start`, then `stop` and `join`."""

    def __init__(
        self, target: Target, repertoire: Repertoire, tally: Tally, volume: Volume, seed: str
    ) -> None:
        self._target = target
        self._repertoire = repertoire
        self._tally = tally
        self._volume = volume
        self._deck = Deck(KINDS, f"{seed} threads")
        self._async_deck = Deck(ASYNC_KINDS, f"{seed} tasks")
        self._async_http_deck = Deck(ASYNC_HTTP_KINDS, f"{seed} http")
        self._chance = Random(f"{seed} bursts")
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"caller {number}")
            for number in range(volume.num_threads)
        ]
        self._threads.append(threading.Thread(target=self._work_in_loop, name="async callers"))

    def start(self) -> None:
        """Start all callers."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Begin no more requests."""
        self._is_over.set()

    def join(self) -> None:
        """Wait for those under way; each has a time limit."""
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while not self._is_over.is_set():
            name, chance = self._deck.deal()
            try:
                outcome = KINDS[name][1](self._target, self._repertoire, chance)
            except Exception as error:
                self._tally.add_error(name, error)
            else:
                self._tally.add(name, outcome)

    def _work_in_loop(self) -> None:
        asyncio.run(self._run_tasks())

    async def _run_tasks(self) -> None:
        async with (
            AsyncChatTTSClient(self._target.grpc_url, timeout_s=LIMIT_S, max_retries=0) as grpc,
            AsyncChatTTSClient(
                self._target.http_url, transport="http", timeout_s=LIMIT_S, max_retries=0
            ) as http,
        ):
            tasks = [self._task(grpc, self._async_deck) for _ in range(self._volume.num_tasks)]
            http_task = self._task(http, self._async_http_deck)
            await asyncio.gather(*tasks, http_task, self._bursts())

    async def _task(self, client: AsyncChatTTSClient, deck: Deck) -> None:
        kinds = {**ASYNC_KINDS, **ASYNC_HTTP_KINDS}
        while not self._is_over.is_set():
            name, chance = deck.deal()
            try:
                outcome = await kinds[name][1](client, self._repertoire, chance)
            except Exception as error:
                self._tally.add_error(name, error)
            else:
                self._tally.add(name, outcome)

    async def _bursts(self) -> None:
        longest = max(self._repertoire.short, key=lambda one: len(one.samples))
        volume = self._volume
        kinds = (longest, volume.burst_size), (self._repertoire.long[0], volume.long_burst_size)
        next_s = time.monotonic() + volume.first_burst_s
        for utterance, size in itertools.cycle(kinds):
            while time.monotonic() < next_s and not self._is_over.is_set():
                await asyncio.sleep(_POLL_S)
            if self._is_over.is_set():
                return
            # From here: a burst that takes longer than the time between two is not made up for.
            next_s = time.monotonic() + volume.burst_every_s
            url = self._target.grpc_url
            await asynchronous.burst(url, utterance, size, self._chance, self._tally)
