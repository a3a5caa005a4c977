"""Run: serve a repository, warm it up with the traffic, soak it, and look at what is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chattts_bench.built import Built
from chattts_client import ChatTTSClient, ChatTTSError
from launcher import EmbeddedServer

from . import verdict
from .callers import LIMIT_S, Target
from .outcomes import Outcome, Tally, WrongAnswerError
from .traffic import ALL_KINDS, WARM_UP, Traffic, Volume
from .utterances import Repertoire
from .watch import ServerLostError, Snapshot, Watch

_WARM_UP_SHARE = 0.2
_LEAST_WARM_UP_S = 20.0
LINE_EVERY_S = 10.0
_SNAPSHOTS = 50
"""A short run takes its snapshots more often, about as many in all."""
_REST_LIMIT_S = 20.0
_LOG_TAIL_LINES = 60
_TRACEBACK = "Traceback (most recent call last)"
_MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for."""

    repository: Path
    """A built model repository."""
    seconds: float
    """Seconds of traffic, warm-up included."""
    seed: int

    @property
    def warm_up_s(self) -> float:
        """Seconds after which memory, pools and threads should have their size; half at most."""
        return min(self.seconds / 2, max(_LEAST_WARM_UP_S, _WARM_UP_SHARE * self.seconds))

    @property
    def soak_s(self) -> float:
        """Seconds of traffic after the warm-up."""
        return self.seconds - self.warm_up_s


@dataclass(slots=True)
class Record:
    """What is known so far; a run that is interrupted reports it as it is."""

    warm: Tally = field(default_factory=Tally)
    soaked: Tally = field(default_factory=Tally)
    under_load: list[Snapshot] = field(default_factory=list)
    """Taken during the soak, not during the warm-up."""
    at_rest: list[Snapshot] = field(default_factory=list)
    """Without requests: after the warm-up and after the soak."""
    faults: list[str] = field(default_factory=list)
    """Why the run failed; empty if it did not."""
    log_tail: str = ""
    """The end of the server's log, if the run failed."""
    is_partial: bool = False
    """Interrupted, or ended by a server that was lost."""


def run(options: Options) -> Record:
    """Soak one server; an interrupt ends the traffic early, a second one everything."""
    record = Record()
    server = EmbeddedServer(options.repository)
    server.start()
    try:
        _Soak(server, options, record).run()
    except ServerLostError as error:
        record.is_partial = True
        record.faults.append(f"the server was lost: {error}")
    finally:
        log = server.log()
        server.kill()
    record.faults += _faults(record, options, log)
    if record.faults:
        record.log_tail = "\n".join(log.splitlines()[-_LOG_TAIL_LINES:])
    return record


def _faults(record: Record, options: Options, log: str) -> Iterator[str]:
    wanted = () if record.is_partial else ALL_KINDS
    yield from verdict.faults_of_traffic(record.warm, ())
    yield from verdict.faults_of_traffic(record.soaked, wanted)
    if not record.is_partial:
        growths = verdict.growth_under_load(record.under_load, record.soaked)
        yield from verdict.faults_of_growth(growths, "under load", options.soak_s)
        before, after = record.at_rest
        growths = verdict.growth_at_rest(before, after, record.soaked)
        yield from verdict.faults_of_growth(growths, "at rest", options.soak_s)
    if record.at_rest:
        yield from verdict.faults_at_rest(record.at_rest[0], record.at_rest[-1])
    if _TRACEBACK in log:
        yield f"{log.count(_TRACEBACK)} tracebacks in the server's log"


class _Soak:
    """Traffic against one running server."""

    def __init__(self, server: EmbeddedServer, options: Options, record: Record) -> None:
        self._server = server
        self._options = options
        self._record = record
        self._watch = Watch(server)
        self._started_s = time.monotonic()
        self._line_due_s = LINE_EVERY_S
        with ChatTTSClient(server.grpc_url, timeout_s=LIMIT_S, max_retries=0) as client:
            built = Built(options.repository)
            self._repertoire = Repertoire.speak(client, built.context_steps)

    def run(self) -> None:
        """Warm up, rest, soak, rest, and speak the references once more."""
        options, record = self._options, self._record
        say(f"warm-up for {options.warm_up_s:.0f} s, soak for {options.soak_s:.0f} s")
        is_whole = self._stretch("warm-up", WARM_UP, options.warm_up_s, record.warm, [])
        record.at_rest.append(self._watch.rest(_REST_LIMIT_S))
        if is_whole:
            is_whole = self._stretch(
                "soak", Volume(), options.soak_s, record.soaked, record.under_load
            )
            record.at_rest.append(self._watch.rest(_REST_LIMIT_S))
        record.is_partial = not is_whole
        self._speak_again()

    def _stretch(
        self,
        name: str,
        volume: Volume,
        seconds: float,
        tally: Tally,
        snapshots: list[Snapshot],
    ) -> bool:
        """Run traffic and look at the server meanwhile; return whether it ran to its end."""
        end_s = time.monotonic() + seconds
        seed = f"{self._options.seed} {name}"
        with Target.connect(self._server.grpc_url, self._server.http_url) as target:
            traffic = Traffic(target, self._repertoire, tally, volume, seed)
            traffic.start()
            try:
                self._look_until(end_s, name, tally, snapshots)
            except KeyboardInterrupt:
                say("interrupted: waiting for the requests under way")
                return False
            finally:
                traffic.stop()
                traffic.join()
        return True

    def _look_until(self, end_s: float, name: str, tally: Tally, snapshots: list[Snapshot]) -> None:
        interval_s = min(LINE_EVERY_S, self._options.seconds / _SNAPSHOTS)
        while (left_s := end_s - time.monotonic()) > 0:
            time.sleep(min(interval_s, left_s))
            snapshots.append(self._watch.snapshot())
            elapsed_s = time.monotonic() - self._started_s
            if elapsed_s >= self._line_due_s:
                say(f"{elapsed_s:5.0f} s {name}  {line(tally, snapshots[-1])}")
                self._line_due_s += LINE_EVERY_S

    def _speak_again(self) -> None:
        """Compare the references with what the server makes of them now."""
        try:
            with ChatTTSClient(self._server.grpc_url, timeout_s=LIMIT_S, max_retries=0) as client:
                for utterance in self._repertoire.all:
                    audio = client.synthesize(utterance.text, **utterance.options)
                    utterance.check_whole(audio.samples)
        except (ChatTTSError, WrongAnswerError) as error:
            self._record.faults.append(f"a reference afterwards: {error}")


def line(tally: Tally, now: Snapshot) -> str:
    """Return one line about the traffic so far and the server at this moment."""
    counts = tally.by_outcome()
    ended = " ".join(f"{outcome.value} {counts.get(outcome, 0)}" for outcome in Outcome)
    held = " ".join(
        f"{name} {part.rss / _MEGABYTE:.0f} ({part.pss / _MEGABYTE:.0f})"
        for name, part in sorted(now.parts.items())
    )
    return (
        f"done {sum(counts.values())}: {ended} | running {now.num_running:g} "
        f"blocks {now.blocks_used:g} | MB RSS (PSS): {held} | "
        f"shm {now.shared_memory / _MEGABYTE:.1f} MB "
        f"threads {sum(part.num_threads for part in now.parts.values())} "
        f"files {sum(part.num_fds for part in now.parts.values())}"
    )


def say(text: str) -> None:
    """Print progress."""
    print(text, file=sys.stderr, flush=True)
