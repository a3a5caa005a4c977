"""Certificates of encrypted connections; a file that is no good is named when a client is made."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from os import PathLike
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates of an encrypted connection; without any, the system's roots are trusted."""

    ca_file: str | PathLike[str] | None = None
    """PEM file of the authorities that may have signed the server's certificate."""
    cert_file: str | PathLike[str] | None = None
    """PEM file of this client's certificate, for a server that asks for one."""
    key_file: str | PathLike[str] | None = None
    """PEM file of its private key, not encrypted."""

    def __post_init__(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("tls: cert_file and key_file belong together; one is missing")


def ssl_context(tls: Tls) -> ssl.SSLContext:
    """The certificates of `tls` as the standard library takes them.

    Raises:
        ValueError: a file cannot be read, holds something else, or does not fit the other one; the
            message names its field and its path.
    """
    if tls.ca_file is not None:
        _check_certificates("ca_file", tls.ca_file)
    context = ssl.create_default_context(cafile=tls.ca_file)
    if tls.cert_file is not None and tls.key_file is not None:
        _check_certificates("cert_file", tls.cert_file)
        _check_readable("key_file", tls.key_file)
        _load_pair(context, tls.cert_file, tls.key_file)
    return context


def _check_certificates(field: str, file: str | PathLike[str]) -> None:
    _check_readable(field, file)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
    except ssl.SSLError as error:
        raise _unusable(field, file, f"holds no certificate in PEM: {error.reason}") from error


def _check_readable(field: str, file: str | PathLike[str]) -> None:
    try:
        Path(file).read_bytes()
    except OSError as error:
        raise _unusable(field, file, f"cannot be read: {error.strerror}") from error
    except TypeError as error:
        raise _unusable(field, file, "is no path") from error


def _load_pair(
    context: ssl.SSLContext, cert_file: str | PathLike[str], key_file: str | PathLike[str]
) -> None:
    def password() -> bytes:  # else OpenSSL asks for it on the terminal
        raise _unusable("key_file", key_file, "is encrypted; decrypt it first")

    try:
        context.load_cert_chain(cert_file, key_file, password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            problem = f"is not the key of cert_file {str(cert_file)!r}"
        else:
            problem = f"holds no private key in PEM for its certificate: {error.reason}"
        raise _unusable("key_file", key_file, problem) from error


def _unusable(field: str, file: object, problem: str) -> ValueError:
    return ValueError(f"tls: {field} {str(file)!r} {problem}")
