"""What callers see when a process of the embedded server dies or hangs while eight of them listen.

    python loadtest/recovery.py
    python loadtest/recovery.py --runs 10 --repository /tmp/a --only "chattts_gpt SIGKILL"

For each process: seconds from the signal to the end of the last caller's wait, to the first failed
health check, and until the next request succeeds, whose samples must be those of a request before.
Needs the extras `serve` and `http`. Progress goes to standard error, the table to standard output.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from chattts_client import ChatTTSClient, ChatTTSError, SpeechOptions

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "embedded")]

from launcher import EmbeddedServer  # noqa: E402
from server_processes import children  # noqa: E402

NUM_CALLERS = 8
LIMIT_S = 60.0
"""Nobody waits longer, for anything."""
FINISHED = "finished"

_SERVER = "tritonserver"
_UNARY = "chattts_unary"
_NUM_UNARY = 4
"""Requests that chattts_unary takes at a time."""
_LONG: SpeechOptions = {"seed": 1, "min_new_tokens": 2048, "max_new_tokens": 2048}
_LONG_TEXT = "hello world. " * 20
_SHORT: SpeechOptions = {"seed": 2, "min_new_tokens": 60, "max_new_tokens": 60}
_RETRY_S = 0.02
_HEALTH_S = 0.1


@dataclass(frozen=True)
class Fault:
    """What happens to which process."""

    victim: str
    """A model, whose first process is meant, or tritonserver."""
    number: signal.Signals = signal.SIGKILL

    def __str__(self) -> str:
        return f"{self.victim} {self.number.name}"


FAULTS = (
    *(Fault(name) for name in ("chattts", "chattts_gpt", "chattts_vocoder", _UNARY, _SERVER)),
    Fault("chattts", signal.SIGSTOP),
    Fault("chattts_vocoder", signal.SIGSTOP),
)


@dataclass
class Recovery:
    """What was seen after one fault; seconds count from the signal."""

    callers: Counter[str] = field(default_factory=Counter)
    """How the waits ended: FINISHED, or the error's class and code."""
    last_caller_s: float = 0.0
    """When the last one ended."""
    unhealthy_s: float = 0.0
    """When a health check had failed."""
    answered_s: float = 0.0
    """When a new request had been answered."""
    is_same: bool = False
    """Its samples are those of the same request before."""


class Callers:
    """Listeners to long texts, in threads; for `_UNARY` some of them wait for one long answer."""

    def __init__(self, server: EmbeddedServer, victim: str) -> None:
        self.ends: list[tuple[float, str]] = []
        """Monotonic time and how, of each wait that has ended."""
        self._server = server
        num_unary = _NUM_UNARY if victim == _UNARY else 0
        waits = [self._wait_unary] * num_unary + [self._listen] * (NUM_CALLERS - num_unary)
        self._threads = [threading.Thread(target=self._call, args=(wait,)) for wait in waits]
        self._num_heard = threading.Semaphore(0)
        self._num_streams = NUM_CALLERS - num_unary

    def start(self) -> None:
        """Return when every stream has had a piece of audio."""
        for thread in self._threads:
            thread.start()
        for _ in range(self._num_streams):
            assert self._num_heard.acquire(timeout=LIMIT_S), "no first audio"

    def join(self) -> None:
        """Wait until all have ended."""
        for thread in self._threads:
            thread.join(LIMIT_S)

    def _call(self, wait: object) -> None:
        assert callable(wait)
        how = FINISHED
        try:
            wait()
        except ChatTTSError as error:
            how = f"{type(error).__name__} {error.code}"
        except Exception as error:  # what a caller must not see
            how = f"{type(error).__name__}: {error}"
        self.ends.append((time.monotonic(), how))

    def _listen(self) -> None:
        with (
            ChatTTSClient(self._server.grpc_url, timeout_s=LIMIT_S, max_retries=0) as client,
            client.stream(_LONG_TEXT, **_LONG) as stream,
        ):
            next(stream)
            self._num_heard.release()
            for _ in stream:
                pass

    def _wait_unary(self) -> None:
        url = self._server.http_url
        with ChatTTSClient(url, transport="http", timeout_s=LIMIT_S, max_retries=0) as client:
            client.synthesize(_LONG_TEXT, **_LONG)


def speak(server: EmbeddedServer) -> npt.NDArray[np.float32]:
    """Return the samples of a short request."""
    with ChatTTSClient(server.grpc_url, timeout_s=LIMIT_S, max_retries=0) as client:
        return client.synthesize("hello", **_SHORT).samples


def speak_again(server: EmbeddedServer) -> npt.NDArray[np.float32]:
    """Ask until there is an answer."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            return speak(server)
        except ChatTTSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_S)


def process_of(server: EmbeddedServer, victim: str) -> int:
    """Return the process id of a model's first process, or of tritonserver."""
    assert server.pid is not None
    if victim == _SERVER:
        return server.pid
    for pid in children(server.pid):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        if f"/{victim}/" in words[1]:
            return pid
    raise LookupError(f"{victim} has no process")


def recover(server: EmbeddedServer, fault: Fault, expected: npt.NDArray[np.float32]) -> Recovery:
    """Strike a server, started with `restart`, in the middle of streams, and watch it come back.

    Args:
        server: it runs.
        fault: what happens.
        expected: samples of `speak` before.
    """
    seen = Recovery()
    callers = Callers(server, fault.victim)
    callers.start()
    watcher = threading.Thread(target=_watch_health, args=(server, seen))
    struck_s = time.monotonic()
    os.kill(process_of(server, fault.victim), fault.number)
    watcher.start()
    callers.join()
    samples = speak_again(server)
    seen.answered_s = time.monotonic() - struck_s
    watcher.join()
    seen.unhealthy_s -= struck_s
    seen.is_same = samples.tobytes() == expected.tobytes()
    seen.callers = Counter(how for _, how in callers.ends)
    seen.last_caller_s = max(at_s for at_s, _ in callers.ends) - struck_s
    return seen


def _watch_health(server: EmbeddedServer, seen: Recovery) -> None:
    deadline = time.monotonic() + LIMIT_S
    while server.is_healthy() and time.monotonic() < deadline:
        time.sleep(_HEALTH_S)
    seen.unhealthy_s = time.monotonic()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3, help="per fault; default: %(default)s")
    parser.add_argument(
        "--repository", type=Path, default=_ROOT / "model_repository", help="default: %(default)s"
    )
    parser.add_argument(
        "--only",
        nargs="*",
        choices=[str(fault) for fault in FAULTS],
        default=[str(fault) for fault in FAULTS],
        metavar="FAULT",
        help=f"of: {', '.join(map(str, FAULTS))}; default: all",
    )
    arguments = parser.parse_args(argv)
    rows = []
    is_good = True
    for fault in [fault for fault in FAULTS if str(fault) in arguments.only]:
        runs = []
        for number in range(arguments.runs):
            with EmbeddedServer(arguments.repository, restart=True) as server:
                runs.append(recover(server, fault, speak(server)))
                server.kill()
            print(f"{fault} {number + 1}: {runs[-1]}", file=sys.stderr)
        is_good &= all(run.is_same for run in runs)
        rows.append(_row(fault, runs))
    print("\n".join(["fault | callers | last caller s | unhealthy s | answered s", *rows]))
    return 0 if is_good else 1


def _row(fault: Fault, runs: Sequence[Recovery]) -> str:
    ends = sum((run.callers for run in runs), Counter())
    callers = ", ".join(f"{count} {how}" for how, count in ends.most_common())
    times = (
        [run.last_caller_s for run in runs],
        [run.unhealthy_s for run in runs],
        [run.answered_s for run in runs],
    )
    shown = [f"{statistics.median(values):.2f} (max {max(values):.2f})" for values in times]
    return " | ".join([str(fault), callers, *shown])


if __name__ == "__main__":
    sys.exit(main())
