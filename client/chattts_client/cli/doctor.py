"""The command `doctor`: one check after another, until the first that fails."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

from rich.table import Table
from rich.text import Text
from typer import Option

from .._client import ChatTTSClient
from .._exceptions import ChatTTSError
from .._extras import missing_extra
from .._health import Health
from .._protocol import STREAMING_MODEL, UNARY_MODEL
from .._settings import DEFAULT_METRICS_PORT, DEFAULT_URLS, Endpoint
from . import output as out
from .options import AsJson, Server
from .probe import Kind, Place, identify, proxy_in_the_way

Status = Literal["ok", "note", "fail"]

_EXTRAS = {
    "http": "geventhttpclient",
    "audio": "soundfile",
    "play": "sounddevice",
    "text": "pypinyin",
}
"""Extra to a module that it brings."""
_GRPC_PORT = DEFAULT_URLS["grpc"].rpartition(":")[2]
_HTTP_PORT = DEFAULT_URLS["http"].rpartition(":")[2]
_STYLES: dict[Status, str] = {"ok": "green", "note": "yellow", "fail": "bold red"}
_TEXT = "hello"
_STEPS = 48
"""One second of speech is enough to hear from every model."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check has found."""

    check: str
    status: Status
    detail: str
    advice: str = ""
    """What to do; empty if nothing needs to be done."""
    exit_code: int = 0


def doctor(
    server: Server,
    metrics_url: Annotated[
        str | None,
        Option(metavar="HOST:PORT", help=f"Default: port {DEFAULT_METRICS_PORT}, same host."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Find out why a server does not speak, check by check.

    Stops at the first check that fails; exit status 0 if none does.
    """
    findings = []
    for finding in _examine(server, metrics_url):
        findings.append(finding)
        if not as_json:
            _print(finding)
        if finding.status == "fail":
            break
    if as_json:
        out.print_json(findings)
    return findings[-1].exit_code


def _examine(server: Server, metrics_url: str | None) -> Iterator[Finding]:
    yield _client(server)
    with server.open(retries=0, metrics_url=metrics_url) as client:
        yield from _ask(client, server)


def _ask(client: ChatTTSClient, server: Server) -> Iterator[Finding]:
    endpoint = Endpoint(client.url)
    proxy = None if server.http else proxy_in_the_way(endpoint.host)
    if proxy:
        yield _proxy("note", *proxy, endpoint.host)
    yield _name(endpoint)
    context = ssl.create_default_context(cafile=server.ca_file) if server.is_encrypted else None
    place = Place(endpoint.host, endpoint.port, context, server.headers)
    yield _port(place)
    yield _protocol(place, server)
    health = client.health()
    is_blamed = proxy is not None and not health.live
    yield _proxy("fail", *proxy, endpoint.host) if proxy and is_blamed else _server(health)
    yield _models(client)
    yield _contract(health)
    yield from _speech(client)
    yield _metrics(client)


def _client(server: Server) -> Finding:
    there = [name for name, module in _EXTRAS.items() if importlib.util.find_spec(module)]
    absent = [name for name in _EXTRAS if name not in there]
    detail = f"chattts-client {importlib.metadata.version('chattts-client')}"
    detail += f", Python {platform.python_version()}, extras: {', '.join(there) or 'none'}"
    detail += f"; without {', '.join(absent)}" if absent else ""
    if server.http and "http" in absent:
        advice = missing_extra("--http", "[http]")
        return Finding("client", "fail", detail, advice, out.EXIT_USAGE)
    return Finding("client", "ok", detail)


def _proxy(status: Status, variable: str, value: str, host: str) -> Finding:
    address = value.rpartition("@")[2]  # what is before may be a password
    detail = f"{variable} sends gRPC to {address}"
    advice = f"if that is not wanted: unset {variable}, or set no_proxy={host}"
    return Finding("proxy", status, detail, advice, out.EXIT_UNAVAILABLE)


def _name(endpoint: Endpoint) -> Finding:
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except OSError as error:
        detail = f"{endpoint.host} has no address: {error.strerror or error}"
        advice = "check the spelling of --url or CHATTTS_URL, and the name service"
        return Finding("name", "fail", detail, advice, out.EXIT_UNAVAILABLE)
    addresses = ", ".join(dict.fromkeys(str(entry[4][0]) for entry in found))
    return Finding("name", "ok", f"{endpoint.host} is {addresses}")


def _port(place: Place) -> Finding:
    plain = Place(place.host, place.port, timeout_s=place.timeout_s)
    try:
        plain.connect().close()
    except TimeoutError:
        advice = "a firewall, or the wrong host: nothing refuses and nothing answers"
        return _closed(place, "does not answer", advice)
    except OSError as error:
        advice = f"start the server, or name its port: {_GRPC_PORT} is gRPC, {_HTTP_PORT} is HTTP"
        return _closed(place, f"is closed ({error.strerror or error})", advice)
    return Finding("port", "ok", f"something listens on {place.port}")


def _closed(place: Place, what: str, advice: str) -> Finding:
    others = [int(_GRPC_PORT), int(_HTTP_PORT), DEFAULT_METRICS_PORT]
    listening = [str(port) for port in others if port != place.port and _listens(place, port)]
    if listening:
        advice += f"; open on this host: {', '.join(listening)}"
    return Finding("port", "fail", f"port {place.port} {what}", advice, out.EXIT_UNAVAILABLE)


def _listens(place: Place, port: int) -> bool:
    with suppress(OSError):
        Place(place.host, port, timeout_s=1.0).connect().close()
        return True
    return False


def _protocol(place: Place, server: Server) -> Finding:
    if place.tls is not None and (problem := _tls_problem(place)):
        return problem
    kind = identify(place)
    wanted: Kind = "triton-http" if server.http else "grpc"
    if kind == wanted:
        encrypted = ", encrypted" if place.tls else ""
        return Finding("protocol", "ok", f"{'HTTP' if server.http else 'gRPC'}{encrypted}")
    use_grpc = f"the gRPC port is {_GRPC_PORT} unless the server was told otherwise"
    use_http = f"the HTTP port is {_HTTP_PORT} unless the server was told otherwise"
    right = use_http if server.http else use_grpc
    detail, advice = {
        "grpc": ("this port speaks gRPC, not HTTP/1", f"leave --http out; {use_http}"),
        "triton-http": ("this is Triton's HTTP port", f"{use_grpc}; or add --http"),
        "metrics": ("this is a port of metrics", right),
        "web": ("this is a web server, but not Triton", f"check --url; {right}"),
        "tls": ("this port is encrypted", "add --tls, and --ca-file if it is your own authority"),
        "unknown": ("what listens here speaks neither gRPC nor HTTP", f"check --url; {right}"),
    }[kind]
    return Finding("protocol", "fail", detail, advice, out.EXIT_PROTOCOL)


def _tls_problem(place: Place) -> Finding | None:
    try:
        place.connect().close()
    except ssl.SSLCertVerificationError as error:
        advice = "name the authority with --ca-file, and the host as its certificate does"
        detail = f"its certificate is not trusted: {error.verify_message}"
        return Finding("tls", "fail", detail, advice, out.EXIT_UNAVAILABLE)
    except OSError:
        detail, advice = "this port is not encrypted", "leave --tls and --ca-file out"
        return Finding("tls", "fail", detail, advice, out.EXIT_UNAVAILABLE)
    return None


def _server(health: Health) -> Finding:
    if not health.live:
        advice = "look into the server's log; is this Triton, and has it finished starting?"
        return Finding("server", "fail", health.reason, advice, out.EXIT_UNAVAILABLE)
    return Finding("server", "ok", f"Triton {health.server_version}".strip())


def _models(client: ChatTTSClient) -> Finding:
    wanted = UNARY_MODEL if client.transport == "http" else STREAMING_MODEL
    try:
        models = client.models()
    except ChatTTSError as error:
        return _failed("models", error)
    names = list(dict.fromkeys(model.name for model in models))
    if wanted not in names:
        advice = "is it another server? else build the repository, and see why it is not loaded"
        detail = f"the server has no model {wanted!r}, but {', '.join(names) or 'none of ours'}"
        return Finding("models", "fail", detail, advice, out.EXIT_PROTOCOL)
    ready = {model.name for model in models if model.ready}
    waiting = [name for name in names if name not in ready]
    if waiting:
        advice = "wait if the server has just started; else its log says why they do not load"
        detail = f"not ready: {', '.join(waiting)}"
        return Finding("models", "fail", detail, advice, out.EXIT_UNAVAILABLE)
    return Finding("models", "ok", ", ".join(names))


def _contract(health: Health) -> Finding:
    if health.compatible is False:
        advice = "install the client of the server's release, or bring the server up to date"
        return Finding("contract", "fail", health.reason, advice, out.EXIT_PROTOCOL)
    if not health.ready:
        advice = "the server's log says more; a supervised one restarts by itself"
        return Finding("contract", "fail", health.reason, advice, out.EXIT_UNAVAILABLE)
    if not health.contract:
        advice = "bring the server up to date: what is newer than it, it refuses"
        return Finding("contract", "note", "an old server: it names no contract", advice)
    return Finding("contract", "ok", f"version {health.contract}, as this client")


def _speech(client: ChatTTSClient) -> Iterator[Finding]:
    try:
        audio = client.synthesize(_TEXT, max_new_tokens=_STEPS, seed=1)
    except ChatTTSError as error:
        yield _failed("speech", error)
        return
    took = f"{audio.duration_s:.2f} s of audio in {audio.elapsed_s:.2f} s"
    yield Finding("speech", "ok", took)
    weights = f"{audio.checkpoint}, {audio.precision}"
    if audio.untrained:
        advice = "the audio is noise; build the repository from a trained checkpoint"
        yield Finding("weights", "note", f"UNTRAINED: {weights}", advice)
    else:
        yield Finding("weights", "ok", weights)


def _metrics(client: ChatTTSClient) -> Finding:
    try:
        found = client.metrics_snapshot()
    except ChatTTSError as error:
        advice = "only dashboards need them; --metrics-url, or open the port"
        return Finding("metrics", "note", f"{client.metrics_url}: {error}", advice)
    return Finding("metrics", "ok", f"{found.running or 0} running, {found.waiting or 0} waiting")


def _failed(check: str, error: ChatTTSError) -> Finding:
    return Finding(
        check, "fail", f"{error} ({error.code})", out.advice(error), out.exit_code(error)
    )


def _print(finding: Finding) -> None:
    console = out.terminal()
    advice = f"-> {finding.advice}" if finding.advice else ""
    if not console.is_terminal:
        print(f"{finding.status:4}  {finding.check:8}  {finding.detail}")
        if advice:
            print(f"{'':16}{advice}")
        return
    row = Table.grid(padding=(0, 2))
    row.add_column(width=4, style=_STYLES[finding.status])
    row.add_column(width=8)
    row.add_column()
    row.add_row(finding.status, finding.check, Text(finding.detail))
    if advice:
        row.add_row("", "", Text(advice))
    console.print(row)
