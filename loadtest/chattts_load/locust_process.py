"""Locust in a process of its own: it patches the standard library, and its load is its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .records import Record, read_records
from .shapes import Shape

_LOCUSTFILE = Path(__file__).resolve().parents[1] / "locustfile.py"
_CLASSES = {"stream": "StreamUser", "unary": "UnaryUser", "http": "HttpUser"}
_DRAIN_S = 45
"""For the last requests to end."""
_START_AND_END_S = 20
_TRIES = 3


class LocustError(Exception):
    """Locust itself failed; the message has its last lines."""


class LocustHangsError(LocustError):
    """Locust did not come to its end: gRPC's support for gevent locks up now and then."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked, and how."""

    grpc_url: str
    http_url: str
    kinds: Sequence[str] = ("stream",)
    """Ways to ask, keys of callers.OPENERS; streams are eight times as frequent as the others."""
    lengths: str = "short=3,medium=5,long=2"
    languages: str = "en=7,zh=3"
    """Weights as texts.read_weights takes them."""


def start_locust(
    folder: Path, name: str, target: Target, shape: Shape, rate: float = 1.0
) -> LocustProcess:
    """Start locust.

    Args:
        folder: for its CSV files, its log and the records.
        name: what these files' names begin with.
        target: what is asked.
        shape: how many users when.
        rate: arrivals per second, for the shape poisson only.
    """
    records = folder / f"{name}_records.jsonl"
    command = [sys.executable, "-m", "locust", "--locustfile", str(_LOCUSTFILE), "--headless"]
    command += ["--only-summary", "--loglevel", "WARNING", "--exit-code-on-error", "0"]
    command += ["--csv", str(folder / name), "--stop-timeout", str(_DRAIN_S)]
    command += ["--grpc-url", target.grpc_url, "--http-url", target.http_url]
    command += ["--lengths", target.lengths, "--languages", target.languages]
    command += ["--shape", shape.name, "--most-users", str(shape.users)]
    command += ["--shape-s", str(shape.seconds), "--rate", str(rate), "--records", str(records)]
    command += ["OpenLoop", *(_CLASSES[kind] for kind in target.kinds)]
    log = folder / f"{name}_locust.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    return LocustProcess(process, log, records, shape.seconds + _DRAIN_S + _START_AND_END_S)


def run_locust(
    folder: Path, name: str, target: Target, shape: Shape, rate: float = 1.0
) -> list[Record]:
    """Run locust to its end, once more where it hangs; arguments as `start_locust`.

    Raises:
        LocustError: it failed, or hung each time.
    """
    for _ in range(_TRIES - 1):
        with contextlib.suppress(LocustHangsError):
            return start_locust(folder, name, target, shape, rate).finish()
    return start_locust(folder, name, target, shape, rate).finish()


@dataclass(frozen=True, slots=True)
class LocustProcess:
    """A locust that runs."""

    process: subprocess.Popen[bytes]
    log: Path
    records: Path
    limit_s: float
    """How long it may take, at most."""

    def finish(self) -> list[Record]:
        """Wait for its end and return what it saw.

        Raises:
            LocustError: it failed.
            LocustHangsError: it is not over within its limit.
        """
        try:
            code = self.process.wait(self.limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise LocustHangsError(f"locust hangs after {self.limit_s:g} s") from None
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        if code or not self.records.is_file():
            last = "\n".join(self.log.read_text(errors="replace").splitlines()[-10:])
            raise LocustError(f"locust ended with {code}:\n{last}")
        return read_records(self.records)
