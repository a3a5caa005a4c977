"""`doctor`: each thing that can be wrong is found, named, and comes with advice."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pytest
import trustme
from chattts_client import ChatTTSClient, ServerUnavailableError
from chattts_client.cli import main
from chattts_client.cli.doctor import Finding
from chattts_client.cli.probe import Place, identify, proxy_in_the_way
from unit.client.fake_answers import Failure, fail, outputs
from unit.client.fake_triton import FakeTriton

TRITON = b'{"name": "triton", "version": "2.51.0", "extensions": []}'
METRICS = b"# HELP nv_x Number\n# TYPE nv_x counter\nnv_x 1\n"
PROXIES = ("grpc_proxy", "https_proxy", "http_proxy", "no_grpc_proxy", "no_proxy")
Doctor = Callable[..., tuple[int, list[Finding]]]


@contextmanager
def web_server(pages: dict[str, bytes], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Pages by path on a free port; 404 for every other."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign] # probes leave early
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def closed_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        return int(probe.getsockname()[1])


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Run it and return its status and what it found."""

    def run(url: str, *flags: str) -> tuple[int, list[Finding]]:
        status = main(["doctor", "--url", url, "--timeout", "5", "--json", *flags])
        found = [Finding(**entry) for entry in json.loads(capsys.readouterr().out)]
        return status, found

    return run


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the server says of itself: good, until a test changes it."""
    names = ("chattts", "chattts_unary", "chattts_gpt", "chattts_vocoder")
    said = SimpleNamespace(
        health=SimpleNamespace(
            live=True, ready=True, reason="", server_version="2.51.0", contract=1, compatible=True
        ),
        models=[SimpleNamespace(name=name, ready=True) for name in names],
        metrics=SimpleNamespace(running=1, waiting=None),
    )

    def metrics(client: ChatTTSClient) -> Any:
        if said.metrics is None:
            raise ServerUnavailableError("nobody answers")
        return said.metrics

    monkeypatch.setattr(ChatTTSClient, "health", lambda client: said.health)
    monkeypatch.setattr(ChatTTSClient, "models", lambda client: said.models, raising=False)
    monkeypatch.setattr(ChatTTSClient, "metrics_snapshot", metrics, raising=False)
    return said


def assert_fails(result: tuple[int, list[Finding]], check: str, detail: str, advice: str) -> None:
    status, found = result
    assert [one.status for one in found[:-1] if one.status == "fail"] == []
    assert (found[-1].check, found[-1].status) == (check, "fail")
    assert detail in found[-1].detail
    assert advice in found[-1].advice
    assert status == found[-1].exit_code != 0


def test_nothing_is_found_at_a_good_server(
    doctor: Doctor, healthy: SimpleNamespace, grpc_url: str
) -> None:
    status, found = doctor(grpc_url)
    assert status == 0
    assert {one.status for one in found} == {"ok"}
    checks = "client name port protocol server models contract speech weights metrics"
    assert [one.check for one in found] == checks.split()


def test_people_get_a_line_per_check_and_advice(
    healthy: SimpleNamespace, grpc_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy.models[2].ready = False
    assert main(["doctor", "--url", grpc_url]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("ok    port      something listens on ")
    assert lines[-2] == "fail  models    not ready: chattts_gpt"
    assert lines[-1].startswith(" " * 16 + "-> wait if the server has just started")


def test_a_name_without_an_address(doctor: Doctor) -> None:
    assert_fails(doctor("no-such-host.invalid:8001"), "name", "has no address", "spelling")


def test_a_closed_port(doctor: Doctor) -> None:
    result = doctor(f"127.0.0.1:{closed_port()}")
    assert_fails(result, "port", "is closed", "8001 is gRPC, 8000 is HTTP")


def test_http_on_the_grpc_port(doctor: Doctor, grpc_url: str) -> None:
    assert_fails(doctor(grpc_url, "--http"), "protocol", "speaks gRPC, not HTTP", "leave --http")


@pytest.mark.parametrize(
    ("pages", "detail", "advice"),
    [
        ({"/v2": TRITON}, "Triton's HTTP port", "or add --http"),
        ({"/metrics": METRICS}, "a port of metrics", "the gRPC port is 8001"),
        ({"/": b"hello"}, "not Triton", "check --url"),
    ],
)
def test_another_port_than_the_one_of_grpc(
    doctor: Doctor, pages: dict[str, bytes], detail: str, advice: str
) -> None:
    with web_server(pages) as port:
        assert_fails(doctor(f"127.0.0.1:{port}"), "protocol", detail, advice)


def test_what_answers_nothing_is_unknown() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as mute:
        place = Place("127.0.0.1", mute.getsockname()[1], timeout_s=0.05)
        assert identify(place) == "unknown"


def test_encryption_that_only_one_side_wants(
    doctor: Doctor, healthy: SimpleNamespace, grpc_url: str, tmp_path: Path
) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    trusted = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(trusted)
    flags = ("--ca-file", str(trusted))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    with web_server({"/v2": TRITON}, context) as port:
        url = f"127.0.0.1:{port}"
        assert_fails(doctor(url), "protocol", "this port is encrypted", "add --tls")
        assert_fails(doctor(url, "--tls"), "tls", "not trusted", "--ca-file")
        assert_fails(doctor(url, *flags), "protocol", "Triton's HTTP port", "--http")
    assert_fails(doctor(grpc_url, "--tls"), "tls", "is not encrypted", "leave --tls")
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    credentials = grpc.ssl_server_credentials([(certificate.private_key_pem.bytes(), chain)])
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    _, found = doctor(f"127.0.0.1:{port}", *flags)
    server.stop(None).wait()
    assert [(one.status, one.detail) for one in found if one.check == "protocol"] == [
        ("ok", "gRPC, encrypted")
    ]


def test_a_proxy_is_named_and_blamed(
    doctor: Doctor, healthy: SimpleNamespace, grpc_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://user:secret@proxy:3128")
    healthy.health.live = False
    result = doctor(grpc_url)
    assert_fails(result, "proxy", "http_proxy sends gRPC to proxy:3128", "no_proxy=127.0.0.1")
    assert [one.status for one in result[1] if one.check == "proxy"] == ["note", "fail"]
    assert "secret" not in str(result)
    assert proxy_in_the_way("127.0.0.1") is not None
    monkeypatch.setenv("no_proxy", "example.com, 127.0.0.1")
    assert proxy_in_the_way("127.0.0.1") is None


def test_a_server_that_is_not_triton(
    doctor: Doctor, healthy: SimpleNamespace, grpc_url: str
) -> None:
    healthy.health = SimpleNamespace(live=False, reason="not a Triton server: Method not found")
    assert_fails(doctor(grpc_url), "server", "not a Triton server", "is this Triton")


def test_a_missing_model(doctor: Doctor, healthy: SimpleNamespace, grpc_url: str) -> None:
    del healthy.models[0]
    detail = "has no model 'chattts', but chattts_unary, chattts_gpt, chattts_vocoder"
    assert_fails(doctor(grpc_url), "models", detail, "another server")
    healthy.models.clear()
    assert_fails(doctor(grpc_url), "models", "but none of ours", "another server")


def test_a_model_that_is_not_ready(doctor: Doctor, healthy: SimpleNamespace, grpc_url: str) -> None:
    healthy.models[3].ready = False
    assert_fails(doctor(grpc_url), "models", "not ready: chattts_vocoder", "wait")


def test_another_contract(doctor: Doctor, healthy: SimpleNamespace, grpc_url: str) -> None:
    healthy.health.compatible, healthy.health.ready = False, False
    healthy.health.reason = "the server's contract is 9, this client's is 1"
    assert_fails(doctor(grpc_url), "contract", "contract is 9", "up to date")


def test_models_that_do_not_answer(doctor: Doctor, healthy: SimpleNamespace, grpc_url: str) -> None:
    healthy.health.ready, healthy.health.reason = False, "chattts_gpt has died or hangs"
    assert_fails(doctor(grpc_url), "contract", "has died or hangs", "restarts by itself")


def test_an_old_server_is_noted(doctor: Doctor, healthy: SimpleNamespace, grpc_url: str) -> None:
    healthy.health.contract = 0
    status, found = doctor(grpc_url)
    (contract,) = [one for one in found if one.check == "contract"]
    assert (status, contract.status) == (0, "note")
    assert "old server" in contract.detail


def test_speech_that_fails(
    doctor: Doctor, healthy: SimpleNamespace, grpc_url: str, fake: FakeTriton
) -> None:
    fake.script = fail(Failure("INTERNAL", "no blocks"))
    status, found = doctor(grpc_url)
    assert (status, found[-1].check, found[-1].status) == (6, "speech", "fail")
    assert found[-1].detail == "no blocks (INTERNAL)"


def test_untrained_weights_and_missing_metrics_are_noted(
    doctor: Doctor, healthy: SimpleNamespace, grpc_url: str, fake: FakeTriton
) -> None:
    samples = np.ones(24_000, dtype=np.float32)
    fake.script = lambda *_: iter([outputs(samples, is_final=True, untrained=True)])
    healthy.metrics = None
    status, found = doctor(grpc_url, "--metrics-url", "127.0.0.1:9")
    assert status == 0
    weights, metrics = found[-2:]
    assert (weights.status, weights.detail) == ("note", "UNTRAINED: demo, int8")
    assert (metrics.status, metrics.detail) == ("note", "127.0.0.1:9: nobody answers")


def test_http_is_examined_too(
    doctor: Doctor, healthy: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ChatTTSClient,
        "synthesize",
        lambda client, text, **options: SimpleNamespace(
            duration_s=1.0, elapsed_s=0.1, untrained=False, checkpoint="demo", precision="int8"
        ),
    )
    with web_server({"/v2": TRITON}) as port:
        status, found = doctor(f"127.0.0.1:{port}", "--http")
    assert status == 0
    assert {one.status for one in found} == {"ok"}


def test_http_without_its_extra_is_found_first(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chattts_client.cli.doctor.importlib.util.find_spec", lambda name: None)
    status, (finding,) = doctor("127.0.0.1:1", "--http")
    assert (status, finding.check, finding.status) == (2, "client", "fail")
    assert "pip install '.[http]'" in finding.advice
