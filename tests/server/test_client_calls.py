"""The client's questions and its ways to a server: health, models, metrics, TLS, keys, refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import trustme
from chattts_client import (
    AsyncChatTTSClient,
    ChatTTSClient,
    Health,
    InvalidRequestError,
    ModelInfo,
    ProtocolError,
    ServerError,
    ServerUnavailableError,
    SpeechOptions,
    Tls,
)
from chattts_client._settings import Endpoint, TransportName
from chattts_client._web import Connections
from launcher import EmbeddedServer
from speech_calls import stream

TEXT = "One. Two."
SHORT: SpeechOptions = {"seed": 7, "max_new_tokens": 60}
MIDDLING: SpeechOptions = {"seed": 7, "max_new_tokens": 600, "min_new_tokens": 600}
LONG: SpeechOptions = {"seed": 7, "max_new_tokens": 2048, "min_new_tokens": 2000}
MODELS = ("chattts", "chattts_unary", "chattts_gpt", "chattts_vocoder")
MAX_STREAMS = 64
KEY = {"triton-grpc-protocol-caller": "secret"}


def place(server: EmbeddedServer, transport: TransportName) -> dict[str, Any]:
    """Arguments of a client for a server."""
    url = {"grpc": server.grpc_url, "http": server.http_url}[transport]
    metrics_url = server.metrics_url.removeprefix("http://").removesuffix("/metrics")
    return {"url": url, "transport": transport, "metrics_url": metrics_url}


@pytest.fixture(params=["grpc", "http"])
def arguments(request: pytest.FixtureRequest, tiny_server: EmbeddedServer) -> dict[str, Any]:
    return place(tiny_server, request.param)


def test_the_server_says_how_it_is(arguments: dict[str, Any]) -> None:
    async def ask() -> tuple[Health, tuple[ModelInfo, ...]]:
        async with AsyncChatTTSClient(**arguments) as client:
            return await client.health(), await client.models()

    with ChatTTSClient(**arguments) as client:
        health, models = client.health(), client.models()
    assert asyncio.run(ask()) == (health, models)
    assert health == Health(
        url=arguments["url"],
        live=True,
        ready=True,
        reason="",
        server_version="2.51.0",
        contract=1,
        compatible=True,
    )
    # NOTE: this server keeps its list of models to who has its control token.
    assert tuple(model.name for model in models) == MODELS
    assert all(model.ready and model.version == "1" for model in models)
    speaker = models[0]
    assert speaker.precision == "fp32"
    assert (speaker.checkpoint, speaker.untrained) == ("tiny", False)


def test_health_does_not_wait_behind_speech(tiny_server: EmbeddedServer) -> None:
    arguments = place(tiny_server, "http")
    with ChatTTSClient(**arguments) as client, ThreadPoolExecutor(8) as threads:
        running = [threads.submit(client.synthesize, TEXT, **MIDDLING) for _ in range(8)]
        health = client.health(timeout_s=20)
        are_done = [future.done() for future in running]
        assert all(len(future.result().samples) > 0 for future in running)
    assert health.ready
    assert not all(are_done)


def test_the_metrics_follow_a_request(
    arguments: dict[str, Any], tiny_server: EmbeddedServer
) -> None:
    with ChatTTSClient(tiny_server.grpc_url) as speaker, speaker.stream(TEXT, **LONG) as speech:
        next(speech)
        with ChatTTSClient(**arguments) as client:
            during = client.metrics_snapshot()
    assert during.running == 1
    assert during.waiting is not None
    assert during.kv_blocks_total is not None
    assert during.kv_blocks_total > 0
    assert during.value("nv_inference_request_success_total", model="chattts") is not None


def test_every_response_names_the_contract(tiny_server: EmbeddedServer) -> None:
    responses = stream(tiny_server, text=TEXT, seed=7, max_new_tokens=60)
    assert len(responses) > 1
    assert {response.metadata["contract"] for response in responses} == {1}
    for switch in ("list_voices", "dry_run", "health"):
        (answer,) = stream(tiny_server, text="Hi.", options=json.dumps({switch: True}))
        assert answer.metadata["contract"] == 1


def test_a_full_server_says_when_to_come_back(tiny_server: EmbeddedServer) -> None:
    with ChatTTSClient(tiny_server.grpc_url, max_retries=0) as client, ExitStack() as streams:
        for _ in range(MAX_STREAMS):
            streams.enter_context(client.stream(TEXT, **LONG))
        with pytest.raises(ServerUnavailableError, match="64 requests are running") as caught:
            client.synthesize(TEXT, **SHORT)
    assert (caught.value.retry_after_s, caught.value.retryable) == (1.0, True)
    assert "fewer" in caught.value.hint


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the certificates of an authority and of a server."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    server = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    server.private_key_pem.write_to_path(str(folder / "server.key"))
    server.cert_chain_pems[0].write_to_path(str(folder / "server.pem"))
    return folder


@pytest.fixture(scope="module")
def guarded_server(tiny_repository: Path, certificates: Path) -> Iterator[EmbeddedServer]:
    """A server whose gRPC port is encrypted and asks for a key."""
    flags = [
        "--grpc-use-ssl=true",
        f"--grpc-server-cert={certificates / 'server.pem'}",
        f"--grpc-server-key={certificates / 'server.key'}",
        "--grpc-restricted-protocol=health,metadata,inference:caller=secret",
    ]
    server = EmbeddedServer(tiny_repository, extra_args=flags)
    server.start()
    yield server
    server.kill()


def test_a_guarded_server_speaks_to_who_has_key_and_certificate(
    guarded_server: EmbeddedServer, certificates: Path
) -> None:
    tls = Tls(ca_file=certificates / "ca.pem")
    with ChatTTSClient(guarded_server.grpc_url, tls=tls, headers=KEY) as client:
        assert len(client.synthesize(TEXT, **SHORT).samples) > 0
        assert client.health().ready
        assert {model.name for model in client.models()} == set(MODELS)
        with client.stream(TEXT, **LONG) as speech:
            next(speech)  # and leave: the request that stops it carries the key too


def test_a_guarded_server_refuses_others_by_name(
    guarded_server: EmbeddedServer, certificates: Path
) -> None:
    tls = Tls(ca_file=certificates / "ca.pem")
    with ChatTTSClient(guarded_server.grpc_url, tls=tls) as without_key:
        with pytest.raises(InvalidRequestError, match="restricted") as refused:
            without_key.synthesize(TEXT, **SHORT)
        health = without_key.health()
    assert (refused.value.field, refused.value.retryable) == ("headers", False)
    assert (health.live, health.ready) == (True, False)
    for tls_without_trust in (True, False):
        arguments: dict[str, Any] = {"tls": tls_without_trust, "timeout_s": 20, "headers": KEY}
        with ChatTTSClient(guarded_server.grpc_url, **arguments) as stranger:
            with pytest.raises(ServerUnavailableError) as caught:
                stranger.synthesize(TEXT, **SHORT)
            assert caught.value.hint
            assert not stranger.health().live


def test_a_restricted_api_over_http_is_a_matter_of_headers(tiny_server: EmbeddedServer) -> None:
    with closing(Connections(Endpoint(tiny_server.http_url))) as connections:
        answer = connections.ask("/v2/repository/index", 20, body=b"{}")
    error = answer.error()
    assert isinstance(error, InvalidRequestError)
    assert (error.field, error.retryable) == ("headers", False)


@pytest.mark.parametrize("asked", ["grpc", "http"])
def test_the_port_of_the_other_transport_is_named(
    tiny_server: EmbeddedServer, asked: TransportName
) -> None:
    url = {"grpc": tiny_server.http_url, "http": tiny_server.grpc_url}[asked]
    with (
        ChatTTSClient(url, transport=asked, timeout_s=20, max_retries=0) as client,
        pytest.raises((ProtocolError, ServerUnavailableError)) as caught,
    ):
        client.synthesize(TEXT, **SHORT)
    assert "port" in caught.value.hint


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_server_without_our_models_is_live_and_says_so(
    server_factory: Callable[[Path], EmbeddedServer],
    throw_away_repository: Path,
    transport: TransportName,
) -> None:
    server = server_factory(throw_away_repository)
    with ChatTTSClient(**place(server, transport)) as client:
        health = client.health()
        assert client.models() == ()
        with pytest.raises(ServerError, match="unknown model") as caught:
            client.synthesize(TEXT, **SHORT)
    assert (health.live, health.ready, health.server_version) == (True, False, "2.51.0")
    assert "unknown model" in health.reason
    assert "no ChatTTS models" in caught.value.hint
