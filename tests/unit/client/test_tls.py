"""Encrypted connections, against servers with certificates of an authority of the test's own."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
import trustme
from chattts_client import AsyncChatTTSClient, ChatTTSClient, ServerUnavailableError, Tls
from chattts_client._settings import TransportName
from cryptography.hazmat.primitives import serialization
from unit.client.fake_answers import utterance
from unit.client.fake_triton import FakeTriton, serve_grpc, serve_http
from unit.client.twins import TWINS, AsyncTwin, SyncTwin

Client = type[ChatTTSClient] | type[AsyncChatTTSClient]
Kind = type[SyncTwin] | type[AsyncTwin]


class Certificates:
    """Files of an authority, and of a server and a client that it has signed."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.ca_file = folder / "ca.pem"
        authority.cert_pem.write_to_path(str(self.ca_file))
        self.server = authority.issue_cert("127.0.0.1", "localhost")
        client = authority.issue_cert("caller@example.org")
        self.client_cert, self.client_key = folder / "client.pem", folder / "client.key"
        client.private_key_pem.write_to_path(str(self.client_key))
        client.cert_chain_pems[0].write_to_path(str(self.client_cert))
        self.trusted = Tls(ca_file=self.ca_file)
        self.mutual = Tls(self.ca_file, self.client_cert, self.client_key)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@contextmanager
def serving(
    fake: FakeTriton, transport: TransportName, certificates: Certificates, *, mutual: bool
) -> Iterator[str]:
    """An encrypted server; with `mutual` it asks its callers for a certificate."""
    if transport == "grpc":
        pair = (
            certificates.server.private_key_pem.bytes(),
            certificates.server.cert_chain_pems[0].bytes(),
        )
        authority = certificates.ca_file.read_bytes()
        grpc_server, url = serve_grpc(
            fake, grpc.ssl_server_credentials([pair], authority, require_client_auth=mutual)
        )
        yield url
        grpc_server.stop(None).wait()
        return
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificates.server.configure_cert(context)
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificates.ca_file)
    http_server, url = serve_http(fake, context)
    yield url
    http_server.shutdown()
    http_server.server_close()


CLIENTS = pytest.mark.parametrize("client", [ChatTTSClient, AsyncChatTTSClient])
TRANSPORTS = pytest.mark.parametrize("transport", ["grpc", "http"])


def refused(client: Client, transport: TransportName, tls: Tls) -> str:
    """What a client says of certificates that it does not take."""
    with pytest.raises(ValueError, match="^tls: ") as caught:
        client(transport=transport, tls=tls)
    return str(caught.value)


@TRANSPORTS
@CLIENTS
def test_a_file_that_is_no_good_is_named(
    client: Client, transport: TransportName, certificates: Certificates, tmp_path: Path
) -> None:
    missing, garbage = tmp_path / "missing.pem", tmp_path / "garbage.pem"
    garbage.write_text("no PEM")
    cert, key = certificates.client_cert, certificates.client_key
    for tls, field, file, why in (
        (Tls(missing), "ca_file", missing, "cannot be read: No such file"),
        (Tls(str(tmp_path)), "ca_file", tmp_path, "cannot be read: Is a directory"),
        (Tls(garbage), "ca_file", garbage, "holds no certificate in PEM: "),
        (Tls(key), "ca_file", key, "holds no certificate in PEM: "),
        (Tls(5), "ca_file", 5, "is no path"),  # type: ignore[arg-type] # what is tested
        (Tls(None, missing, key), "cert_file", missing, "cannot be read: "),
        (Tls(None, garbage, key), "cert_file", garbage, "holds no certificate in PEM: "),
        (Tls(None, cert, missing), "key_file", missing, "cannot be read: "),
        (Tls(None, cert, garbage), "key_file", garbage, "holds no private key in PEM"),
    ):
        assert refused(client, transport, tls).startswith(f"tls: {field} '{file}' {why}")


@TRANSPORTS
@CLIENTS
def test_a_key_that_belongs_to_another_certificate_is_named(
    client: Client, transport: TransportName, certificates: Certificates, tmp_path: Path
) -> None:
    cert, other = certificates.client_cert, tmp_path / "other.key"
    certificates.server.private_key_pem.write_to_path(str(other))
    problem = f"tls: key_file '{other}' is not the key of cert_file '{cert}'"
    assert refused(client, transport, Tls(None, cert, other)) == problem


@TRANSPORTS
@CLIENTS
def test_an_encrypted_key_is_refused_and_asks_nobody(
    client: Client, transport: TransportName, certificates: Certificates, tmp_path: Path
) -> None:
    plain = serialization.load_pem_private_key(certificates.client_key.read_bytes(), None)
    locked = tmp_path / "locked.key"
    locked.write_bytes(
        plain.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    message = refused(client, transport, Tls(None, certificates.client_cert, locked))
    assert message == f"tls: key_file '{locked}' is encrypted; decrypt it first"


@pytest.fixture(autouse=True)
def _one_response(fake: FakeTriton) -> None:
    fake.script = lambda inputs, request: iter(utterance(1))


@pytest.mark.parametrize("kind", TWINS.values())
@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_trusted_server_speaks_and_others_are_refused(
    kind: Kind, transport: TransportName, fake: FakeTriton, certificates: Certificates
) -> None:
    with serving(fake, transport, certificates, mutual=False) as url:
        trusting = kind(url, transport, tls=certificates.trusted)
        assert trusting.synthesize("hello").seed == 7
        assert trusting.health().ready
        with pytest.raises(ServerUnavailableError) as caught:
            kind(url, transport, tls=True).synthesize("hello")  # not one of the system's
        assert not caught.value.retryable
        assert "tls" in caught.value.hint
        health = kind(url, transport, tls=True).health()
        assert (health.live, health.ready) == (False, False)


@pytest.mark.parametrize("kind", TWINS.values())
@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_true_trusts_whom_the_system_trusts(
    kind: Kind,
    transport: TransportName,
    fake: FakeTriton,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca_file))
    with serving(fake, transport, certificates, mutual=False) as url:
        assert kind(url, transport, tls=True).synthesize("hello").seed == 7


def test_the_systems_list_may_be_a_folder(
    fake: FakeTriton, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "5ad8a5d6.0").write_bytes(certificates.ca_file.read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    with serving(fake, "grpc", certificates, mutual=False) as url:
        for kind in TWINS.values():
            assert kind(url, tls=True).synthesize("hello").seed == 7


@pytest.mark.parametrize("kind", TWINS.values())
@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_server_may_ask_for_the_callers_certificate(
    kind: Kind, transport: TransportName, fake: FakeTriton, certificates: Certificates
) -> None:
    with serving(fake, transport, certificates, mutual=True) as url:
        known = kind(url, transport, tls=certificates.mutual)
        assert known.synthesize("hello").seed == 7
        assert known.health().ready
        with pytest.raises(ServerUnavailableError):
            kind(url, transport, tls=certificates.trusted, max_retries=0).synthesize("hello")


@pytest.mark.parametrize("kind", TWINS.values())
def test_a_server_without_encryption_is_named(kind: Kind, grpc_url: str, http_url: str) -> None:
    for url, transport in ((grpc_url, "grpc"), (http_url, "http")):
        with pytest.raises(ServerUnavailableError) as caught:
            kind(url, transport, tls=True, max_retries=0).synthesize("hello")  # type: ignore[arg-type]
        assert "tls" in caught.value.hint
