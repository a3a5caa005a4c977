"""One HTTP exchange at a time, never waiting: answers, silence, refusals."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from http_exchange import NO_ANSWER, TOO_LATE, Answer, Exchange
from server_files import free_port

DEADLINE_S = 10.0
HOST = "127.0.0.1"


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@contextmanager
def listening(*pieces: bytes, closes: bool = True) -> Iterator[tuple[tuple[str, int], list[bytes]]]:
    """A server that reads one request, sends `pieces` and closes, at once or at the end."""
    requests: list[bytes] = []
    may_close = threading.Event()
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                requests.append(connection.recv(65536))
                for piece in pieces:
                    connection.sendall(piece)
                assert closes or may_close.wait(DEADLINE_S)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname(), requests
        may_close.set()
        thread.join(DEADLINE_S)


def finish(exchange: Exchange) -> Answer:
    """Step as a select loop does."""
    while True:
        if (answer := exchange.step()) is not None:
            return answer
        assert select.select([exchange], [], [], DEADLINE_S)[0]


def test_answer_may_come_in_pieces() -> None:
    with listening(b"HTTP/1.1 20", b"0 OK\r\nA: b\r\n\r\nhel", b"lo") as (address, requests):
        assert finish(Exchange(address, "/metrics", DEADLINE_S)) == Answer(200, "hello")
    assert requests[0].startswith(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    assert b"Connection: close\r\n" in requests[0]


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"Content-Length: 5", b"hello"),
        (b"content-length:5", b"hello"),
        (b"Transfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n"),
    ],
)
def test_a_whole_answer_is_taken_though_the_connection_stays_open(head: bytes, body: bytes) -> None:
    pieces = (b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n", body[:3], body[3:])
    with listening(*pieces, closes=False) as (address, _):
        assert finish(Exchange(address, "/x", DEADLINE_S)) == Answer(200, body.decode())


def test_body_is_posted() -> None:
    with listening(b"HTTP/1.1 503 No\r\n\r\n{}") as (address, requests):
        assert finish(Exchange(address, "/x", DEADLINE_S, body='{"a": 1}')).status == 503
    assert requests[0].startswith(b"POST /x ")
    assert requests[0].endswith(b'Content-Length: 8\r\n\r\n{"a": 1}')


@pytest.mark.parametrize("piece", [b"", b"nonsense", b"HTTP/1.1 \r\n\r\n"])
def test_connection_that_is_closed_early_is_no_answer(piece: bytes) -> None:
    with listening(piece) as (address, _):
        answer = finish(Exchange(address, "/x", DEADLINE_S))
    assert answer.status == NO_ANSWER
    assert "no answer" in str(answer)


def test_nobody_there_is_no_answer() -> None:
    answer = finish(Exchange((HOST, free_port(HOST)), "/x", DEADLINE_S))
    assert answer.status == NO_ANSWER
    assert "refused" in str(answer)


def test_silence_is_too_late_at_the_limit() -> None:
    clock = Clock()
    with socket.create_server((HOST, 0)) as silent:
        exchange = Exchange(silent.getsockname(), "/x", 3.0, clock=clock)
        clock.now_s += 2.9
        assert exchange.step() is None
        clock.now_s += 0.1
        answer = exchange.step()
    assert answer is not None
    assert answer.status == TOO_LATE
    assert str(answer) == "no answer in 3 s"
    assert exchange.fileno() == -1
