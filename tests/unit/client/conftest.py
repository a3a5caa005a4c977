"""A fake server per test, over gRPC and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from unit.client.fake_triton import FakeTriton, serve_grpc, serve_http
from unit.client.twins import TWINS, Twin


@pytest.fixture
def fake() -> FakeTriton:
    return FakeTriton()


@pytest.fixture
def grpc_url(fake: FakeTriton) -> Iterator[str]:
    server, url = serve_grpc(fake)
    yield url
    server.stop(None).wait()


@pytest.fixture
def http_url(fake: FakeTriton) -> Iterator[str]:
    server, url = serve_http(fake)
    yield url
    server.shutdown()
    server.server_close()


@pytest.fixture(params=TWINS)
def grpc_twin(request: pytest.FixtureRequest, grpc_url: str) -> Twin:
    return TWINS[request.param](grpc_url)


@pytest.fixture(params=TWINS)
def http_twin(request: pytest.FixtureRequest, http_url: str) -> Twin:
    return TWINS[request.param](http_url, "http")
