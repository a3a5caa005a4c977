"""The proxy of the fault tests does to a connection what it says."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from fault_proxy import Fault, FaultProxy

ANSWER = bytes(range(256)) * 100
LIMIT_S = 30.0


@pytest.fixture(scope="module")
def speaker() -> Iterator[str]:
    """A server that says ANSWER to whoever says something."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                client, _ = listener.accept()
                with client:
                    if not client.recv(100):
                        return
                    client.sendall(ANSWER)

        thread = threading.Thread(target=serve)
        thread.start()
        host, port = listener.getsockname()
        yield f"{host}:{port}"
        socket.create_connection((host, port)).close()
        thread.join(LIMIT_S)


def connect(proxy: FaultProxy) -> socket.socket:
    host, _, port = proxy.url.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=LIMIT_S)


def answer(proxy: FaultProxy) -> bytes:
    """Say something and return what comes until the connection ends."""
    heard = b""
    with connect(proxy) as connection:
        connection.sendall(b"hello")
        while block := connection.recv(10_000):
            heard += block
    return heard


def test_without_a_fault_all_bytes_pass(speaker: str) -> None:
    with FaultProxy(speaker) as proxy:
        assert answer(proxy) == ANSWER
        assert answer(proxy) == ANSWER
        assert proxy.num_connections == 2


def test_a_cut_ends_the_answer_where_it_says(speaker: str) -> None:
    with FaultProxy(speaker, Fault(end="cut", after_bytes=8192)) as proxy:
        heard = answer(proxy)
    assert 8192 <= len(heard) < len(ANSWER)
    assert ANSWER.startswith(heard)


def test_a_reset_is_one(speaker: str) -> None:
    with (
        FaultProxy(speaker, Fault(end="reset", after_bytes=8192)) as proxy,
        pytest.raises(ConnectionResetError),
    ):
        answer(proxy)


def test_only_the_first_connections_are_hit(speaker: str) -> None:
    with FaultProxy(speaker, Fault(end="cut", num_connections=1)) as proxy:
        with connect(proxy) as connection:
            assert connection.recv(1) == b""
        assert answer(proxy) == ANSWER


def test_silence_keeps_the_connection_open(speaker: str) -> None:
    with FaultProxy(speaker, Fault(end="silence")) as proxy, connect(proxy) as connection:
        connection.sendall(b"hello")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)


@pytest.mark.parametrize("fault", [Fault(delay_s=0.05), Fault(bytes_per_s=50_000)])
def test_delays_and_throttles_keep_the_answer_whole(speaker: str, fault: Fault) -> None:
    with FaultProxy(speaker, fault) as proxy:
        start_s = time.monotonic()
        assert answer(proxy) == ANSWER
        # 25,600 bytes: at least 7 blocks of 4,096, or half a second at 50 kB/s.
        assert time.monotonic() - start_s > 0.3
