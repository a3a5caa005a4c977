"""Mixed traffic that moves every line of the dashboard: callers of all kinds, some wrong."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Sequence
from types import TracebackType

from chattts_client import ChatTTSClient, ChatTTSError

_LIMIT_S = 60.0


class Traffic:
    """Callers in threads, each with one request after the other, until the context is left.

    Args:
        grpc_url: HOST:PORT.
        http_url: HOST:PORT.
        texts: what they say, in turn.
        num_callers: how many there are at once.
    """

    def __init__(
        self, grpc_url: str, http_url: str, texts: Sequence[str], num_callers: int
    ) -> None:
        self._grpc_url = grpc_url
        self._http_url = http_url
        self._texts = texts
        self._has_to_end = threading.Event()
        self._threads = [
            threading.Thread(target=self._call, args=(number,)) for number in range(num_callers)
        ]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._has_to_end.set()
        for thread in self._threads:
            thread.join()

    def run_for(self, seconds: float) -> None:
        """Let it run."""
        time.sleep(seconds)

    def _call(self, first: int) -> None:
        kinds = itertools.cycle((_stream, _stream, _once, _cut, _leave, _wrong, _unreadable))
        with (
            ChatTTSClient(self._grpc_url, timeout_s=_LIMIT_S, max_retries=0) as grpc,
            ChatTTSClient(
                self._http_url, transport="http", timeout_s=_LIMIT_S, max_retries=0
            ) as http,
        ):
            for seed, kind in enumerate(itertools.islice(kinds, first, None), first):
                if self._has_to_end.is_set():
                    return
                client = http if kind is _once else grpc
                with contextlib.suppress(ChatTTSError):  # some are meant to fail
                    kind(client, self._texts[seed % len(self._texts)], seed)


def _stream(client: ChatTTSClient, text: str, seed: int) -> None:
    with client.stream(text, seed=seed) as stream:
        for _ in stream:
            pass


def _once(client: ChatTTSClient, text: str, seed: int) -> None:
    client.synthesize(text, seed=seed)


def _cut(client: ChatTTSClient, text: str, seed: int) -> None:
    client.synthesize(text, seed=seed, max_new_tokens=30)


def _leave(client: ChatTTSClient, text: str, seed: int) -> None:
    with client.stream(text, seed=seed) as stream:
        next(iter(stream))


def _wrong(client: ChatTTSClient, text: str, seed: int) -> None:
    client.synthesize(text, seed=seed, temperature=9.0)


def _unreadable(client: ChatTTSClient, text: str, seed: int) -> None:
    client.synthesize(text + " {a|hang2}", seed=seed)
