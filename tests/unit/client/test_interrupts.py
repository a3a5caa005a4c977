"""Ctrl-C at any moment of a stream: the process goes on, and nothing waits for ever."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from chattts_client import ChatTTSClient, _main_thread
from chattts_client._main_thread import Interruptible
from unit.client.fake_answers import Inputs, Outputs, Request, utterance
from unit.client.fake_triton import FakeTriton

INTERRUPTED = """
import random, signal, sys
from chattts_client import ChatTTSClient

signal.signal(signal.SIGALRM, signal.default_int_handler)
random.seed(0)
count = 0
for _ in range(30):
    try:
        with ChatTTSClient(sys.argv[1]) as client, client.stream("hello") as stream:
            next(stream)
            signal.setitimer(signal.ITIMER_REAL, 1e-4 + random.random() * 0.03)
            for _ in stream:
                pass
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        count += 1
print(count)
"""
LIMIT_S = 60.0


def many_chunks(inputs: Inputs, request: Request) -> Iterator[Outputs]:
    for chunk in utterance(400)[:-1]:
        if request.cancelled.wait(1e-4):
            return
        yield chunk
    request.cancelled.wait(LIMIT_S)


def test_an_interrupted_stream_ends(grpc_url: str, fake: FakeTriton) -> None:
    fake.script = many_chunks
    command = [sys.executable, "-c", INTERRUPTED, grpc_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == 30


def test_only_other_threads_run_the_blocking_code() -> None:
    ran_in: list[int] = []

    class Call:
        def receive(self) -> None:
            ran_in.append(threading.get_ident())

        stop = cancel = receive

    class Transport:
        def start(self, request: Any, timeout_s: float | None) -> Call:
            ran_in.append(threading.get_ident())
            return Call()

        def ask(self, asked: Any, timeout_s: float | None) -> dict[str, object]:
            ran_in.append(threading.get_ident())
            return {}

        def close(self) -> None:
            ran_in.append(threading.get_ident())

    transport: Any = Interruptible(Transport())
    call = transport.start(None, None)
    call.receive()
    call.stop()
    transport.ask(None, None)
    transport.close()
    assert len(ran_in) == 5
    assert threading.get_ident() not in ran_in
    for helper in threading.enumerate():
        if helper.name == "chattts-client-call":
            helper.join(LIMIT_S)
            assert not helper.is_alive()


def test_a_call_is_dropped_also_while_a_thread_is_being_started() -> None:
    cancelled = threading.Event()

    class Call:
        def receive(self) -> None: ...

        stop = receive

        def cancel(self) -> None:
            cancelled.set()

    class Transport:
        def start(self, request: Any, timeout_s: float | None) -> Call:
            return Call()

        def close(self) -> None: ...

    transport: Any = Interruptible(Transport())
    call = transport.start(None, None)
    with threading._active_limbo_lock:  # type: ignore[attr-defined] # as `Thread.start` holds it
        del call
    assert cancelled.is_set()
    transport.close()


def test_an_interrupted_read_loses_no_response(
    grpc_url: str, fake: FakeTriton, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()

    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        first, *rest = utterance(3)
        yield first
        may_go_on.wait(LIMIT_S)
        yield from rest

    wait = _main_thread._Job.wait

    def interrupted(job: Any, limit_s: float | None = None) -> Any:
        raise KeyboardInterrupt

    fake.script = script
    with ChatTTSClient(grpc_url) as client, client.stream("hello") as stream:
        next(stream)
        monkeypatch.setattr(_main_thread._Job, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(stream)
        monkeypatch.setattr(_main_thread._Job, "wait", wait)
        may_go_on.set()
        assert [chunk.index for chunk in stream] == [1, 2]
