"""Closing a client over HTTP wakes the calls that wait, wherever they are."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from chattts_client import AsyncChatTTSClient, ChatTTSClient, RequestCancelledError
from chattts_client import _retry as retry
from unit.client.fake_answers import WAIT_S, Failure, Inputs, Outputs, Request, fail, utterance
from unit.client.fake_triton import FakeTriton


class Asked:
    """A script that answers late, and tells when it was asked."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.may_answer = threading.Event()

    def __call__(self, inputs: Inputs, request: Request) -> Iterator[Outputs]:
        self.asked.set()
        self.may_answer.wait(WAIT_S)
        return iter(utterance(1))


@pytest.fixture
def script(fake: FakeTriton) -> Iterator[Asked]:
    script = Asked()
    fake.script = script
    yield script
    script.may_answer.set()


def close_once(is_waiting: Callable[[], object], client: ChatTTSClient) -> threading.Thread:
    """Close the client from another thread, once its call waits."""

    def close() -> None:
        is_waiting()
        client.close()

    thread = threading.Thread(target=close)
    thread.start()
    return thread


def assert_closing_wakes(url: str, is_waiting: Callable[[], object], **settings: Any) -> None:
    client = ChatTTSClient(url, transport="http", timeout_s=None, **settings)
    closer = close_once(is_waiting, client)
    with pytest.raises(RequestCancelledError, match="was closed") as caught:
        client.synthesize("hello")
    assert caught.value.request_id
    closer.join(WAIT_S)


async def closed_while_it_waits(
    url: str, is_waiting: Callable[[], object], **settings: Any
) -> None:
    client = AsyncChatTTSClient(url, transport="http", timeout_s=None, **settings)
    call = asyncio.create_task(client.synthesize("hello"))
    await asyncio.to_thread(is_waiting)
    await client.close()
    with pytest.raises(RequestCancelledError, match="was closed") as caught:
        await call
    assert caught.value.request_id


def test_closing_wakes_who_waits_for_an_answer(http_url: str, script: Asked) -> None:
    assert_closing_wakes(http_url, lambda: script.asked.wait(WAIT_S))


def test_closing_wakes_a_task_that_waits_for_an_answer(http_url: str, script: Asked) -> None:
    asyncio.run(closed_while_it_waits(http_url, lambda: script.asked.wait(WAIT_S)))


def test_closing_wakes_who_waits_on_a_kept_connection(
    http_url: str, script: Asked, fake: FakeTriton
) -> None:
    with ChatTTSClient(http_url, transport="http", timeout_s=None) as client:
        assert client.health().ready
        closer = close_once(lambda: script.asked.wait(WAIT_S), client)
        with pytest.raises(RequestCancelledError):
            client.synthesize("hello")
        closer.join(WAIT_S)
    assert (fake.num_connections, len(fake.requests)) == (1, 1)  # not asked again


def test_closing_wakes_a_question(http_url: str, script: Asked) -> None:
    async def run() -> None:
        client = AsyncChatTTSClient(http_url, transport="http", timeout_s=None)
        call = asyncio.create_task(client.voices())
        await asyncio.to_thread(script.asked.wait, WAIT_S)
        await client.close()
        with pytest.raises(RequestCancelledError):
            await call

    client = ChatTTSClient(http_url, transport="http", timeout_s=None)
    closer = close_once(lambda: script.asked.wait(WAIT_S), client)
    with pytest.raises(RequestCancelledError):
        client.voices()
    closer.join(WAIT_S)
    script.asked.clear()
    asyncio.run(run())


def test_closing_wakes_who_waits_for_the_encryption() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as mute:
        url = f"127.0.0.1:{mute.getsockname()[1]}"
        held = []

        def accept() -> None:
            connection = mute.accept()[0]
            held.append(connection)
            connection.recv(1)  # the handshake has begun

        assert_closing_wakes(url, accept, tls=True)
        asyncio.run(closed_while_it_waits(url, accept, tls=True))
        for connection in held:
            connection.close()


def test_closing_wakes_who_waits_for_the_connection() -> None:
    with closing(socket.create_server(("127.0.0.1", 0), backlog=0)) as full:
        address = full.getsockname()
        url = f"127.0.0.1:{address[1]}"
        with closing(socket.create_connection(address)):  # the one that the queue has room for
            moment = threading.Event()
            assert_closing_wakes(url, lambda: moment.wait(0.2))
            asyncio.run(closed_while_it_waits(url, lambda: moment.wait(0.2)))


def test_closing_ends_what_waits_for_its_retry(
    http_url: str, fake: FakeTriton, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "_BACKOFF", lambda state: 0.1)
    fake.script = fail(Failure("503", "full"))
    moment = threading.Event()
    assert_closing_wakes(http_url, lambda: moment.wait(0.3), max_retries=1000)
    asyncio.run(closed_while_it_waits(http_url, lambda: moment.wait(0.3), max_retries=1000))
