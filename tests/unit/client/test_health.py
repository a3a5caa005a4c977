"""What a client finds out about a server: health, models, metrics; twins and transports alike."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from chattts_client import (
    Health,
    ModelInfo,
    ProtocolError,
    RequestTimeoutError,
    ServerError,
    ServerUnavailableError,
)
from chattts_client._settings import TransportName
from unit.client.fake_triton import FakeTriton
from unit.client.twins import TWINS, AsyncTwin, SyncTwin, Twin

Kind = type[SyncTwin] | type[AsyncTwin]
METRICS = """\
# HELP chattts_running_requests Requests that chattts is speaking
# TYPE chattts_running_requests gauge
chattts_running_requests{version="1"} 2
chattts_running_requests{version="2"} 1
# TYPE chattts_requests_waiting gauge
chattts_requests_waiting{version="1",priority="2"} 4
# TYPE chattts_kv_blocks_used gauge
chattts_kv_blocks_used{version="1",engine="0"} 10
chattts_kv_blocks_used{version="1",engine="1"} 30
# TYPE nv_inference_request_success counter
nv_inference_request_success{model="chattts",version="1"} 7
"""


@pytest.fixture(params=["grpc", "http"])
def transport(request: pytest.FixtureRequest) -> TransportName:
    name: TransportName = request.param
    return name


@pytest.fixture(params=TWINS)
def twin(
    request: pytest.FixtureRequest, transport: TransportName, grpc_url: str, http_url: str
) -> Twin:
    return TWINS[request.param]({"grpc": grpc_url, "http": http_url}[transport], transport)


@pytest.fixture
def page() -> Iterator[Page]:
    page = Page()
    yield page
    page.close()


class Page:
    """A web server with one page: what it answers, or None for an answer that never ends."""

    def __init__(self) -> None:
        self.status = 200
        self.content: bytes | None = METRICS.encode()
        self.paths: list[str] = []
        self.ended = threading.Event()
        handler = type("Handler", (_PageHandler,), {"page": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()


class _PageHandler(BaseHTTPRequestHandler):
    page: Page

    def do_GET(self) -> None:
        self.page.paths.append(self.path)
        self.send_response(self.page.status)
        self.end_headers()
        if self.page.content is not None:
            self.wfile.write(self.page.content)
            return
        while not self.page.ended.wait(0.05):  # a byte now and then, so that no read is late
            try:
                self.wfile.write(b"#")
            except OSError:
                return

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output quiet."""


def test_a_healthy_server_tells_its_version_and_contract(twin: Twin, fake: FakeTriton) -> None:
    fake.facts = {"contract": 1}
    health = twin.health()
    assert health == Health(
        url=health.url,
        live=True,
        ready=True,
        reason="",
        server_version="2.51.0",
        contract=1,
        compatible=True,
    )
    assert health.url.startswith("127.0.0.1:")


def test_a_server_that_is_not_ready_says_why(twin: Twin, fake: FakeTriton) -> None:
    fake.is_ready = False
    health = twin.health()
    assert (health.live, health.ready, health.compatible) == (True, False, None)
    assert "the first speech has not ended" in health.reason
    assert health.server_version == "2.51.0"


def test_an_old_server_is_compatible_and_a_newer_one_is_named(twin: Twin, fake: FakeTriton) -> None:
    assert (twin.health().contract, twin.health().compatible) == (0, True)
    fake.facts = {"contract": 2}
    health = twin.health()
    assert (health.contract, health.compatible) == (2, False)
    assert (health.live, health.ready) == (True, False)
    assert health.reason == "the server speaks contract 2, this client contract 1"


@pytest.mark.parametrize("kind", TWINS.values())
def test_nobody_is_neither_live_nor_ready(kind: Kind, transport: TransportName) -> None:
    health = kind("127.0.0.1:1", transport).health(timeout_s=10)
    assert (health.live, health.ready, health.server_version) == (False, False, "")
    assert health.compatible is None
    assert "refused" in health.reason.lower() or "connect" in health.reason.lower()


@pytest.mark.parametrize("kind", TWINS.values())
def test_another_service_is_not_live(kind: Kind, transport: TransportName, page: Page) -> None:
    page.status = 404
    page.content = b"<html>"
    health = kind(page.url, transport).health(timeout_s=10)
    assert (health.live, health.ready, health.compatible) == (False, False, None)
    assert health.reason


def test_the_models_are_listed_by_version(twin: Twin, fake: FakeTriton) -> None:
    facts = {"checkpoint": "demo", "precision": "int8", "untrained": False}
    assert twin.models() == (
        ModelInfo(name="chattts", version="1", ready=True, **facts),  # type: ignore[arg-type]
        ModelInfo(name="chattts", version="2", ready=True, **facts),  # type: ignore[arg-type]
        ModelInfo(name="chattts_gpt", version="2", ready=True),
        ModelInfo(name="chattts_vocoder", version="", ready=False),
    )
    assert not fake.requests


def test_a_model_that_does_not_answer_is_not_ready(twin: Twin, fake: FakeTriton) -> None:
    fake.is_ready = False
    fake.versions = {"chattts": ["1"]}
    assert twin.models() == (ModelInfo(name="chattts", version="1", ready=False),)


@pytest.mark.parametrize("kind", TWINS.values())
def test_without_a_server_there_is_no_list_of_models(kind: Kind, transport: TransportName) -> None:
    with pytest.raises(ServerUnavailableError):
        kind("127.0.0.1:1", transport).models(timeout_s=10)


@pytest.mark.parametrize("kind", TWINS.values())
def test_the_metrics_are_numbers(kind: Kind, page: Page) -> None:
    found = kind("127.0.0.1:1", metrics_url=page.url, headers={"key": "k"}).metrics_snapshot()
    assert page.paths == ["/metrics"]
    assert (found.url, found.running, found.waiting) == (page.url, 3, 4)
    assert (found.kv_blocks_used, found.kv_blocks_total) == (40, None)
    assert found.sequences_running is None
    assert found.value("chattts_kv_blocks_used", engine="1") == 30
    assert found.value("chattts_kv_blocks_used", engine="7") is None
    assert found.value("nv_inference_request_success_total") == 7
    assert found.samples[0].labels == {"version": "1"}
    assert "samples" not in repr(found)


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (200, b"<html>" + b"no" * 1000),
        (200, b'{"status": "up"}'),
        (200, b"\xff"),
        (200, b""),
        (200, b"other_metric 1\n"),
        (301, b""),
        (401, b"who are you"),
        (404, b'{"error": "Not Found"}'),
        (404, b"<html>no</html>"),
    ],
)
@pytest.mark.parametrize("kind", TWINS.values())
def test_what_is_no_metrics_of_triton_is_named(
    kind: Kind, page: Page, status: int, content: bytes
) -> None:
    page.status, page.content = status, content
    with pytest.raises(ProtocolError, match="^metrics_url: not the metrics of Triton: ") as caught:
        kind("127.0.0.1:1", metrics_url=page.url).metrics_snapshot()
    assert (caught.value.field, caught.value.retryable) == ("metrics_url", False)
    assert "8002" in caught.value.hint
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize("kind", TWINS.values())
def test_another_port_of_triton_has_no_metrics(kind: Kind, http_url: str, grpc_url: str) -> None:
    for url in (http_url, grpc_url):
        with pytest.raises(ProtocolError, match="^metrics_url: ") as caught:
            kind("127.0.0.1:1", metrics_url=url).metrics_snapshot(timeout_s=10)
        assert "8002" in caught.value.hint


@pytest.mark.parametrize("kind", TWINS.values())
def test_the_metrics_have_their_errors(kind: Kind, page: Page) -> None:
    page.status, page.content = 500, b"no"
    with pytest.raises(ServerError, match="^HTTP status 500: no"):
        kind("127.0.0.1:1", metrics_url=page.url).metrics_snapshot()
    with pytest.raises(ServerUnavailableError, match="no connection") as caught:
        kind("127.0.0.1:1", metrics_url="127.0.0.1:1").metrics_snapshot()
    assert "metrics_url" in caught.value.hint


@pytest.mark.parametrize("kind", TWINS.values())
def test_an_answer_that_trickles_ends_at_the_limit(kind: Kind, page: Page) -> None:
    page.content = None
    with pytest.raises(RequestTimeoutError):
        kind("127.0.0.1:1", metrics_url=page.url).metrics_snapshot(timeout_s=0.3)
