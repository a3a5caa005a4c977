"""Queues in front of servers that slow down with every request they take, by discrete events.

A server works on up to `max_num_seqs` requests at once. Each of them advances by
1 / service_s(n, s) of itself per second, where n is how many run and s its seconds of audio; the
others wait in the order of their arrival. Arrivals, at random times (Poisson) or as they were in a
real run, go to the server with the fewest.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from .profile import Profile

WARM_UP_SHARE = 0.1
"""Of the requests; they meet servers that are emptier than later ones."""
_DONE = 1e-9


@dataclass(slots=True, eq=False)
class _Job:
    arrived_s: float
    audio_s: float
    left: float = 1.0
    ended_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What so many servers make of a load."""

    servers: int
    qps: float
    """Arrivals per second."""
    latency_mean_s: float
    """Seconds from arrival to the last audio."""
    latency_p50_s: float
    latency_p95_s: float
    latency_p99_s: float
    refused_share: float
    """Requests that found `max_streams` at every server."""
    running_mean: float
    """Requests running at once per server, on average over time."""


@dataclass(slots=True, eq=False)
class _Server:
    """One server's running and waiting requests, as a simpy process."""

    environment: simpy.Environment
    profile: Profile
    running: list[_Job] = field(default_factory=list)
    waiting: deque[_Job] = field(default_factory=deque)
    busy_s: float = 0.0
    """Seconds times requests running."""
    arrival: simpy.Event = field(init=False)

    def __post_init__(self) -> None:
        self.arrival = self.environment.event()

    @property
    def load(self) -> int:
        return len(self.running) + len(self.waiting)

    def take(self, job: _Job) -> None:
        self.waiting.append(job)
        if not self.arrival.triggered:
            self.arrival.succeed()

    def run(self) -> Iterator[Any]:
        while True:
            self._admit()
            if not self.running:
                yield self.arrival
                self.arrival = self.environment.event()
                continue
            speeds = [
                1.0 / self.profile.service_s(len(self.running), job.audio_s) for job in self.running
            ]
            next_end_s = min(
                job.left / speed for job, speed in zip(self.running, speeds, strict=True)
            )
            started_s = self.environment.now
            yield self.environment.timeout(next_end_s) | self.arrival
            if self.arrival.triggered:
                self.arrival = self.environment.event()
            self._advance(self.environment.now - started_s, speeds)

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self.profile.max_num_seqs:
            self.running.append(self.waiting.popleft())

    def _advance(self, elapsed_s: float, speeds: Sequence[float]) -> None:
        self.busy_s += elapsed_s * len(self.running)
        for job, speed in zip(self.running, speeds, strict=True):
            job.left -= elapsed_s * speed
        for job in self.running:
            job.ended_s = self.environment.now  # the last time counts
        self.running = [job for job in self.running if job.left > _DONE]


@dataclass(frozen=True, slots=True)
class Served:
    """What became of some arrivals."""

    latencies_s: list[float]
    """Seconds from arrival to the last audio, in the order of arrival, without the refused ones."""
    refused: int
    """Requests that found `max_streams` at every server."""
    running_mean: float
    """Requests running at once per server, on average over time."""


def serve(profile: Profile, servers: int, arrivals: Iterable[tuple[float, float]]) -> Served:
    """Serve requests that arrive at given times.

    Args:
        profile: what one server can do.
        servers: how many of them, at least 1.
        arrivals: seconds since any moment, not descending, and seconds of audio.
    """
    environment = simpy.Environment()
    pool = [_Server(environment, profile) for _ in range(servers)]
    jobs: list[_Job] = []
    refused = 0

    def arrive() -> Iterator[Any]:
        nonlocal refused
        first_s = None
        for arrived_s, audio_s in arrivals:
            first_s = arrived_s if first_s is None else first_s
            yield environment.timeout(max(0.0, arrived_s - first_s - environment.now))
            server = min(pool, key=lambda one: one.load)
            if server.load >= profile.max_streams:
                refused += 1
            else:
                jobs.append(_Job(environment.now, audio_s))
                server.take(jobs[-1])

    for server in pool:
        environment.process(server.run())  # type: ignore[arg-type]
    environment.process(arrive())  # type: ignore[arg-type]
    environment.run()
    return Served(
        latencies_s=[job.ended_s - job.arrived_s for job in jobs],
        refused=refused,
        running_mean=sum(one.busy_s for one in pool) / servers / environment.now,
    )


def simulate(
    profile: Profile,
    servers: int,
    qps: float,
    audio_lengths_s: Sequence[float],
    num_requests: int = 10_000,
    seed: int = 1,
) -> Outcome:
    """Let requests arrive at random times and be served.

    Args:
        profile: what one server can do.
        servers: how many of them, at least 1.
        qps: arrivals per second, above 0.
        audio_lengths_s: seconds of audio of a request, drawn from these.
        num_requests: how many arrive in all.
        seed: of arrivals and lengths.
    """
    served = serve(profile, servers, _at_random(qps, audio_lengths_s, num_requests, seed))
    settled = served.latencies_s[int(WARM_UP_SHARE * len(served.latencies_s)) :]
    return Outcome(
        servers=servers,
        qps=qps,
        latency_mean_s=float(np.mean(settled)),
        latency_p50_s=float(np.percentile(settled, 50)),
        latency_p95_s=float(np.percentile(settled, 95)),
        latency_p99_s=float(np.percentile(settled, 99)),
        refused_share=served.refused / num_requests,
        running_mean=served.running_mean,
    )


def _at_random(
    qps: float, audio_lengths_s: Sequence[float], num_requests: int, seed: int
) -> Iterator[tuple[float, float]]:
    draw = random.Random(seed)
    now_s = 0.0
    for _ in range(num_requests):
        now_s += draw.expovariate(qps)
        yield now_s, draw.choice(audio_lengths_s)


def _most_per_s(profile: Profile, audio_lengths_s: Sequence[float]) -> float:
    """Requests per second of one server that always has as many as suit it best."""
    mean_s = float(np.mean(audio_lengths_s))
    counts = range(1, profile.max_num_seqs + 1)
    return max(count / profile.service_s(count, mean_s) for count in counts)


def fewest_servers(
    profile: Profile,
    qps: float,
    audio_lengths_s: Sequence[float],
    p99_s: float,
    most: int = 1000,
    num_requests: int = 10_000,
) -> Outcome | None:
    """The outcome with the fewest servers whose p99 is within the limit and that refuse nobody.

    None where no number up to `most` does: one request alone takes longer than the limit, or so
    many servers finish fewer requests per second than arrive.
    """

    def is_enough(outcome: Outcome) -> bool:
        return outcome.latency_p99_s <= p99_s and not outcome.refused_share

    def tried(servers: int) -> Outcome:
        return simulate(profile, servers, qps, audio_lengths_s, num_requests)

    alone_s = [profile.service_s(1, audio_s) for audio_s in audio_lengths_s]
    if np.percentile(alone_s, 99) > p99_s or qps > most * _most_per_s(profile, audio_lengths_s):
        return None
    enough, best = 1, tried(1)
    while not is_enough(best):
        if enough >= most:
            return None
        enough = min(2 * enough, most)
        best = tried(enough)
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        outcome = tried(middle)
        if is_enough(outcome):
            enough, best = middle, outcome
        else:
            too_few = middle
    return best
