"""The command `bench`: a short load, step by step, and what each step took."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from rich.table import Table
from typer import Argument, BadParameter, Option

from .._client import ChatTTSClient
from .._exceptions import ChatTTSError, RequestCancelledError
from .._stream import SpeechStream
from .._types import SpeechOptions
from . import output as out
from .options import AsJson, Server, Speech

_TABLE_COLUMNS = 120
_TEXT = "hello anna, how are you today"


@dataclass(frozen=True, slots=True)
class Sample:
    """One good request."""

    first_audio_s: float | None
    """Seconds to the first samples; None over HTTP, which answers once."""
    latency_s: float
    """Seconds to the last samples."""
    audio_s: float
    """Seconds of audio."""


@dataclass(frozen=True, slots=True)
class Step:
    """All requests of one concurrency."""

    concurrency: int
    wall_s: float
    samples: Sequence[Sample]
    errors: Sequence[ChatTTSError]

    def figures(self) -> dict[str, Any]:
        """What is measured; None where nothing was."""
        first = [one.first_audio_s for one in self.samples if one.first_audio_s is not None]
        latency = [one.latency_s for one in self.samples]
        factors = [one.latency_s / one.audio_s for one in self.samples if one.audio_s]
        return {
            "concurrency": self.concurrency,
            "requests": len(self.samples) + len(self.errors),
            "errors": len(self.errors),
            "requests_per_s": len(self.samples) / self.wall_s,
            "audio_s_per_s": sum(one.audio_s for one in self.samples) / self.wall_s,
            "first_audio_p50_s": _percentile(first, 50),
            "first_audio_p95_s": _percentile(first, 95),
            "latency_p50_s": _percentile(latency, 50),
            "latency_p95_s": _percentile(latency, 95),
            "latency_p99_s": _percentile(latency, 99),
            "real_time_factor_p50": _percentile(factors, 50),
        }


def bench(
    server: Server,
    speech: Speech,
    text: Annotated[str, Argument(metavar="TEXT", help="What every request says.")] = _TEXT,
    concurrency: Annotated[
        str, Option("--concurrency", "-j", metavar="N,N", help="Requests at once, per step.")
    ] = "1,4,8",
    requests: Annotated[int, Option("--requests", "-n", min=1, metavar="N", help="Per step.")] = 16,
    as_json: AsJson = False,
) -> int:
    """Put a short load on the server and print a table.

    Rate, time to first audio, latency and real-time factor for each number of requests at once.

    One request is made before, unmeasured. Refused requests are not tried again but counted.
    """
    steps, options = _steps(concurrency, requests), speech.given()
    with server.open(retries=0) as client, out.progress() as bar:
        task = bar.add_task("requests", total=len(steps) * requests)
        load = _Load(client, text, options)
        load.ask()
        measured = [_measure(load, one, requests, lambda: bar.advance(task)) for one in steps]
    figures = [step.figures() for step in measured]
    if as_json:
        out.print_json({"text": text, "steps": figures})
    else:
        console = out.terminal()
        console.width = max(console.width, _TABLE_COLUMNS)  # figures are never cut off
        console.print(_table(figures))
    errors = [error for step in measured for error in step.errors]
    for message in sorted({f"{error} ({error.code})" for error in errors}):
        out.note(f"error: {message}")
    return out.exit_code(errors[0]) if errors else 0


def _steps(concurrency: str, requests: int) -> list[int]:
    parts = [part.strip() for part in concurrency.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        message = f"{concurrency!r} is not whole numbers above 0, such as 1,4,8"
        raise BadParameter(message, param_hint="--concurrency")
    if max(map(int, parts)) > requests:
        out.note(f"warning: {requests} requests per step: never more than that at once")
    return list(dict.fromkeys(min(int(part), requests) for part in parts))


class _Load:
    """The requests, which can be stopped from another thread; HTTP cannot: it answers once."""

    def __init__(self, client: ChatTTSClient, text: str, options: SpeechOptions) -> None:
        self._client = client
        self._text = text
        self._options = options
        self._streams: set[SpeechStream] = set()
        self._is_stopped = False

    def ask(self) -> Sample:
        """Make one request."""
        if self._client.transport == "http":
            audio = self._client.synthesize(self._text, **self._options)
            return Sample(None, audio.elapsed_s, audio.duration_s)
        with self._client.stream(self._text, **self._options) as stream:
            self._streams.add(stream)
            if self._is_stopped:
                raise RequestCancelledError("interrupted", request_id=stream.request_id)
            audio = stream.result()
        self._streams.discard(stream)
        return Sample(audio.time_to_first_audio_s, audio.elapsed_s, audio.duration_s)

    def stop(self) -> None:
        """Cancel what runs, on the server too, and whatever begins later."""
        self._is_stopped = True
        for stream in tuple(self._streams):
            stream.close()


def _measure(load: _Load, concurrency: int, requests: int, on_done: Callable[[], None]) -> Step:
    samples: list[Sample] = []
    errors: list[ChatTTSError] = []
    start_s = time.perf_counter()
    with ThreadPoolExecutor(concurrency) as threads:
        try:
            for answer in as_completed([threads.submit(load.ask) for _ in range(requests)]):
                try:
                    samples.append(answer.result())
                except ChatTTSError as error:
                    errors.append(error)
                on_done()
        except KeyboardInterrupt:
            threads.shutdown(wait=False, cancel_futures=True)
            load.stop()
            raise
    return Step(concurrency, time.perf_counter() - start_s, samples, errors)


def _percentile(values: Sequence[float], percent: float) -> float | None:
    return float(np.percentile(values, percent)) if values else None


def _table(figures: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="seconds, unless it says otherwise", box=None, header_style="bold")
    headers = ("at\nonce", "err-\nors", "req/s", "audio\ns/s", "first\np50", "p95")
    for header in (*headers, "whole\np50", "p95", "p99", "real-time\nfactor"):
        table.add_column(header, justify="right", no_wrap=True)
    for row in figures:
        cells = [f"{row['concurrency']}", f"{row['errors']}"]
        cells += [f"{row[key]:.2f}" for key in ("requests_per_s", "audio_s_per_s")]
        keys = ["first_audio_p50_s", "first_audio_p95_s"]
        keys += ["latency_p50_s", "latency_p95_s", "latency_p99_s", "real_time_factor_p50"]
        cells += ["-" if row[key] is None else f"{row[key]:.3f}" for key in keys]
        table.add_row(*cells)
    return table
