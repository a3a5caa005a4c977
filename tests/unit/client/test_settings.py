"""What a client is told when it is made: wrong arguments are refused by name, at once."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest
from chattts_client import AsyncChatTTSClient, ChatTTSClient, InvalidRequestError, Tls
from chattts_client._settings import Endpoint, TransportName
from unit.client.fake_answers import utterance
from unit.client.fake_triton import FakeTriton
from unit.client.twins import TWINS, AsyncTwin, SyncTwin, Twin

CLIENTS = (ChatTTSClient, AsyncChatTTSClient)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "is empty"),
        ("localhost", "has no port"),
        ("localhost:", "has no port"),
        (":8001", "has no host"),
        (":", "has no port"),
        ("localhost:0", "has a port outside 1 ... 65535"),
        ("localhost:65536", "has a port outside"),
        ("localhost:80a", "has a port outside"),
        ("localhost:" + "9" * 5000, "has a port outside"),
        ("http://localhost:8000", "has a scheme"),
        ("me:secret@localhost:8001", "has a user"),
        ("localhost:8001/", "has a path"),
        ("localhost:8001?a=1", "has a query"),
        ("local host:8001", "has a space"),
        ("localhost:8001\n", "has a space or a control"),
        ("::1:8001", "has more than one colon"),
        ("[::x]:8001", "has no valid address"),
        (8001, "is not a str"),
    ],
)
@pytest.mark.parametrize("name", ["url", "metrics_url"])
def test_an_address_is_host_and_port(name: str, url: Any, problem: str) -> None:
    for kind in CLIENTS:
        with pytest.raises(ValueError, match=rf"^{name}: .*{problem}.*; write HOST:PORT"):
            kind(**{name: url})


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [("localhost:8001", "localhost", 8001), ("[::1]:8001", "::1", 8001), ("a.b:1", "a.b", 1)],
)
def test_a_good_address_is_taken_as_it_is(url: str, host: str, port: int) -> None:
    with ChatTTSClient(url) as client:
        assert client.url == url
        assert client.metrics_url == f"{url.removesuffix(f':{port}')}:8002"
    assert (Endpoint(url).host, Endpoint(url).port) == (host, port)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"transport": ["grpc"]}, r"transport: \['grpc'\] is neither"),
        ({"transport": "tcp"}, "transport: 'tcp' is neither 'grpc' nor 'http'"),
        ({"timeout_s": 0}, "timeout_s: 0 is not above 0"),
        ({"timeout_s": "5"}, "timeout_s: '5' is not a number of seconds"),
        ({"timeout_s": np.array([1, 2])}, r"timeout_s: array\(\[1, 2\]\) is not a number"),
        ({"timeout_s": True}, "timeout_s: True is not a number of seconds"),
        ({"timeout_s": float("inf")}, "timeout_s: inf is not finite; None means no limit"),
        ({"max_retries": -1}, "max_retries: -1 is not a whole number from 0"),
        ({"max_retries": 1.0}, "max_retries: 1.0 is not"),
        ({"tls": "yes"}, "tls: 'yes' is neither a bool nor a Tls"),
        ({"headers": [("a", "b")]}, "headers: a list is not a mapping"),
        ({"headers": []}, "headers: a list is not a mapping"),
        ({"headers": {"a b": "c"}}, "headers: 'a b' is no name of a header"),
        ({"headers": {1: "c"}}, "headers: 1 is no name of a header"),
        ({"headers": {"Key": "1", "key": "2"}}, "headers: 'key' is there twice"),
        ({"headers": {"Content-Length": "1"}}, "headers: 'Content-Length' is set by the client"),
        ({"headers": {"grpc-timeout": "1S"}}, "headers: 'grpc-timeout' is set by the client"),
        ({"headers": {"trace-bin": "1"}}, "headers: 'trace-bin' is set .* or binary"),
        ({"rate_limit": 5}, "rate_limit: 5 is not"),
        ({"cache": "folder"}, "cache: 'folder' is not"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(arguments: dict[str, Any], message: str) -> None:
    for kind in CLIENTS:
        with pytest.raises(ValueError, match=f"^{message}"):
            kind(**arguments)


@pytest.mark.parametrize("value", ["a\r\nb: c", "kl\u00fc", 5])
def test_a_wrong_header_does_not_show_its_value(value: Any) -> None:
    with pytest.raises(ValueError, match="value of 'authorization' is not printable") as caught:
        ChatTTSClient(headers={"authorization": value})
    assert str(value) not in str(caught.value)


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize(
    ("name", "meant"),
    [("foo", ""), ("timeout", "; did you mean 'timeout_s'?"), ("unknow", "")],
)
def test_an_unknown_argument_is_named(kind: Any, name: str, meant: str) -> None:
    message = re.escape(f"{kind.__name__}: unknown argument {name!r}{meant}")
    with pytest.raises(TypeError, match=f"^{message}$"):
        kind("localhost:8001", **{name: 1})


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("take_over", [copy.copy, pickle.dumps])
def test_a_client_is_neither_copied_nor_pickled(kind: Any, take_over: Any) -> None:
    with pytest.raises(TypeError, match=f"^{kind.__name__}: not to be copied or pickled; make one"):
        take_over(kind("localhost:8001"))


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(ValueError, match="^tls: cert_file and key_file belong together"):
        Tls(cert_file="client.pem")


@pytest.mark.parametrize("timeout_s", ["5", "soon", True, float("inf"), [1]])
def test_a_wrong_limit_of_a_call_is_a_wrong_request(grpc_twin: Twin, timeout_s: Any) -> None:
    for call in (grpc_twin.voices, grpc_twin.health, grpc_twin.models, grpc_twin.metrics_snapshot):
        with pytest.raises(InvalidRequestError, match="^timeout_s: ") as caught:
            call(timeout_s=timeout_s)
        assert caught.value.field == "timeout_s"


@pytest.mark.parametrize("kind", TWINS.values())
@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_headers_go_with_every_call(
    kind: type[SyncTwin | AsyncTwin],
    transport: TransportName,
    grpc_url: str,
    http_url: str,
    fake: FakeTriton,
) -> None:
    fake.key = "secret"
    fake.script = lambda inputs, request: iter(utterance(1))
    url = {"grpc": grpc_url, "http": http_url}[transport]
    bare, keyed = kind(url, transport), kind(url, transport, headers={"Key": "secret"})
    keyed.synthesize("hello")
    assert keyed.health().ready
    assert keyed.health().server_version == "2.51.0"
    assert {model.name for model in keyed.models()} == set(fake.versions)
    with pytest.raises(InvalidRequestError, match="restricted") as caught:
        bare.synthesize("hello")
    assert (caught.value.field, caught.value.retryable) == ("headers", False)
    health = bare.health()
    assert (health.live, health.ready) == (True, False)
    assert "restricted" in health.reason


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_limit_may_be_longer_than_timers_count(
    transport: TransportName, grpc_url: str, http_url: str, fake: FakeTriton
) -> None:
    fake.script = lambda inputs, request: iter(utterance(1))
    url = {"grpc": grpc_url, "http": http_url}[transport]
    for kind in TWINS.values():
        assert kind(url, transport, timeout_s=1e300).synthesize("hello").seed == 7
        assert kind(url, transport, timeout_s=1e300).health().ready


def test_a_closed_client_says_so(grpc_url: str) -> None:
    client = ChatTTSClient(grpc_url)
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="^the client is closed"):
        client.synthesize("hello")


def test_an_async_client_without_a_loop_says_how_it_is_called() -> None:
    client = AsyncChatTTSClient("localhost:8001")
    for call in (client.stream, client.synthesize_many):
        with pytest.raises(RuntimeError, match="`async for`.* ChatTTSClient does the same"):
            list(call("hello"))  # type: ignore[call-overload] # the point of the test


def test_an_async_client_belongs_to_one_loop(grpc_url: str) -> None:
    client = AsyncChatTTSClient(grpc_url)

    async def speak() -> None:
        await client.synthesize("hello")

    async def leave() -> None:
        await client.synthesize("hello")
        await client.close()

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(speak())
        with pytest.raises(RuntimeError, match="^the client belongs to another event loop"):
            asyncio.run(speak())
        loop.run_until_complete(leave())
