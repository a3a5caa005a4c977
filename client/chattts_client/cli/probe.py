"""What listens at an address, found out with plain sockets before any library gets in between."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

Kind = Literal["grpc", "triton-http", "metrics", "web", "tls", "unknown"]

_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""The beginning of an HTTP/2 connection, with empty settings."""
_FRAME_HEADER_BYTES = 9
_SETTINGS = 4
_MOST_BYTES = 100_000
_REFUSED = (401, 403)
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""Where gRPC looks for a proxy, the first one counts."""
_NO_PROXIES = ("no_grpc_proxy", "no_proxy")


@dataclass(frozen=True, slots=True)
class Place:
    """An address and how to talk to it."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    """None: not encrypted."""
    headers: Mapping[str, str] | None = None
    timeout_s: float = 3.0
    """For each connection and answer."""

    def connect(self) -> socket.socket:
        """Open a connection, encrypted if so asked.

        Raises:
            OSError: nothing listens there, or it is not TLS; `ssl.SSLCertVerificationError` if its
                certificate is not trusted.
        """
        plain = socket.create_connection((self.host, self.port), self.timeout_s)
        if self.tls is None:
            return plain
        try:
            return self.tls.wrap_socket(plain, server_hostname=self.host)
        except OSError:
            plain.close()
            raise


def identify(place: Place) -> Kind:
    """What speaks at a place where something listens."""
    if _speaks_http2(place):
        return "grpc"
    answer = _get(place, "/v2")
    if answer is not None:
        status, body = answer
        if status in _REFUSED or _is_triton(body):
            return "triton-http"
        found = _get(place, "/metrics")
        is_metrics = found is not None and found[0] == 200 and b"# TYPE " in found[1]
        return "metrics" if is_metrics else "web"
    return "tls" if place.tls is None and _speaks_tls(place) else "unknown"


def proxy_in_the_way(host: str) -> tuple[str, str] | None:
    """Name and value of the environment variable that sends gRPC to a proxy; None: it goes direct.

    Source: gRPC's documentation of its environment variables.
    """
    exempt = next((os.environ[name] for name in _NO_PROXIES if os.environ.get(name)), "")
    suffixes = [entry.strip().lstrip("*") for entry in exempt.split(",") if entry.strip()]
    if any(host.endswith(suffix) for suffix in suffixes):
        return None
    return next(((name, os.environ[name]) for name in _PROXIES if os.environ.get(name)), None)


def _speaks_http2(place: Place) -> bool:
    if place.tls is not None:
        place.tls.set_alpn_protocols(["h2"])
    with suppress(OSError), place.connect() as connection:
        connection.sendall(_HTTP2_PREFACE)
        answer = b""
        while len(answer) < _FRAME_HEADER_BYTES and (more := connection.recv(_MOST_BYTES)):
            answer += more
        return len(answer) >= _FRAME_HEADER_BYTES and answer[3] == _SETTINGS
    return False


def _speaks_tls(place: Place) -> bool:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with suppress(OSError):
        Place(place.host, place.port, context, timeout_s=place.timeout_s).connect().close()
        return True
    return False


def _get(place: Place, path: str) -> tuple[int, bytes] | None:
    """Status and body over HTTP/1.1; None: that is not what is spoken."""
    if place.tls is not None:
        place.tls.set_alpn_protocols(["http/1.1"])
    connection = http.client.HTTPConnection(place.host, place.port, timeout=place.timeout_s)
    try:
        connection.sock = place.connect()
        connection.request("GET", path, headers={**(place.headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _is_triton(body: bytes) -> bool:
    with suppress(ValueError):
        answer = json.loads(body)
        return isinstance(answer, dict) and "extensions" in answer
    return False
