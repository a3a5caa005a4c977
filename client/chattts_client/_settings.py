"""What a client knows before anything is sent: where the server is and how it is talked to."""

from __future__ import annotations

import difflib
import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NoReturn
from urllib.parse import urlsplit

import numpy as np

from ._cache import UtteranceCache
from ._exceptions import InvalidRequestError
from ._limits import Limiter, RateLimit
from ._process import Process
from ._protocol import SpeechRequest, speech_request
from ._retry import Patience
from ._tls import Tls
from ._types import UNSET, Unset

TransportName = Literal["grpc", "http"]
DEFAULT_URLS: Final[Mapping[TransportName, str]] = {
    "grpc": "localhost:8001",
    "http": "localhost:8000",
}
DEFAULT_METRICS_PORT: Final = 8002
DEFAULT_TIMEOUT_S: Final = 60.0
DEFAULT_MAX_RETRIES: Final = 2

_LONGEST_S = 1e8
"""Three years: timers count no further, and nobody waits as long."""
_NUMBERS = (int, float, np.integer, np.floating)
_MAX_PORT = 65_535
_HEADER_NAME = re.compile(r"[a-z0-9_.-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
# What the transports write themselves; another value would break the framing of a request.
_OWN_HEADERS = frozenset(
    {"connection", "content-length", "content-type", "host", "te", "transfer-encoding"}
    | {"inference-header-content-length"}
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server is, and what every call to it carries."""

    url: str
    """HOST:PORT."""
    tls: Tls | None = None
    """None: not encrypted."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Lower-case name and value, sent with every call; values may be secrets."""

    @property
    def host(self) -> str:
        """The name or address alone, an IPv6 address without brackets."""
        return urlsplit(f"//{self.url}").hostname or ""

    @property
    def port(self) -> int:
        """The port alone."""
        return urlsplit(f"//{self.url}").port or 0


class ClientSettings(ABC):
    """The arguments of both clients, checked."""

    def __init__(
        self,
        url: str | None = None,
        *,
        transport: TransportName = "grpc",
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        tls: bool | Tls = False,
        headers: Mapping[str, str] | None = None,
        max_retries: int = DEFAULT_MAX_RETRIES,
        rate_limit: RateLimit | None = None,
        cache: UtteranceCache | None = None,
        metrics_url: str | None = None,
        **unknown: NoReturn,
    ) -> None:
        """Prepare a client; nothing is sent yet.

        Args:
            url: HOST:PORT. Default: localhost:8001 for gRPC, localhost:8000 for HTTP.
            transport: "grpc", or "http" (no streaming; needs the `http` extra).
            timeout_s: seconds that a call may take, retries included; None = no limit.
            tls: encrypt; True trusts the system's roots, `Tls` names certificates.
            headers: sent with every call, such as `{"authorization": "Bearer …"}`.
            max_retries: how often a call that failed before its first audio, and may succeed
                later, is tried again; 0 = never.
            rate_limit: how many requests may start per time; more of them wait.
            cache: finished utterances on disk.
            metrics_url: HOST:PORT of the server's metrics. Default: port 8002 of the same host.
            unknown: nothing else is taken.

        Raises:
            TypeError: an unknown argument.
            ValueError: a malformed argument, or a file of `tls` that is no good; the message begins
                with the argument's name.
            ImportError: the `http` extra is not installed.
        """
        for name in unknown:
            raise TypeError(f"{type(self).__name__}: unknown argument {name!r}{_meant(name)}")
        if not isinstance(transport, str) or transport not in DEFAULT_URLS:
            raise ValueError(f"transport: {transport!r} is neither 'grpc' nor 'http'")
        self.transport = transport
        """grpc or http."""
        self.url = DEFAULT_URLS[transport] if url is None else _checked_url("url", url)
        """HOST:PORT of the server."""
        self.timeout_s = _checked_timeout(timeout_s)
        """Seconds that a call may take unless it says otherwise; None = no limit."""
        if isinstance(max_retries, bool) or not isinstance(max_retries, int) or max_retries < 0:
            raise ValueError(f"max_retries: {max_retries!r} is not a whole number from 0")
        self.max_retries = max_retries
        """How often a call that may succeed later is tried again."""
        self.rate_limit = rate_limit
        """How many requests may start per time; None = no limit."""
        if not isinstance(rate_limit, RateLimit | None):
            raise ValueError(f"rate_limit: {rate_limit!r} is not a RateLimit")
        self._limiter = None if rate_limit is None else Limiter(rate_limit)
        self.cache = cache
        """Finished utterances on disk; None: none are kept."""
        if not isinstance(cache, UtteranceCache | None):
            raise ValueError(f"cache: {cache!r} is not an UtteranceCache")
        self._endpoint = Endpoint(self.url, _checked_tls(tls), _checked_headers(headers))
        host = self.url.rpartition(":")[0]
        default_metrics_url = f"{host}:{DEFAULT_METRICS_PORT}"
        self.metrics_url = (
            default_metrics_url if metrics_url is None else _checked_url("metrics_url", metrics_url)
        )
        """HOST:PORT of the server's metrics."""
        self._process = Process()
        self._is_closed = False
        self._open()

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(f"{kind}: not to be copied or pickled; make one in each process")

    @abstractmethod
    def _open(self) -> None:
        """Make the transport of the client."""

    def _check_caller(self) -> None:
        """Raise where a call would hang or break another one's connection."""
        self._process.check("the client")
        if self._is_closed:
            raise RuntimeError("the client is closed; make a new one")

    def _limit(self, timeout_s: float | None | Unset) -> float | None:
        """The seconds that a call may take; each call asks first."""
        self._check_caller()
        if timeout_s is UNSET:
            return self.timeout_s
        try:
            return _checked_timeout(timeout_s)
        except ValueError as error:
            raise InvalidRequestError(str(error), field="timeout_s") from error

    def _patience(self, timeout_s: float | None | Unset) -> Patience:
        return Patience(self._limit(timeout_s), self.max_retries, self._limiter)

    def _stream_request(self, text: str, options: Mapping[str, object]) -> SpeechRequest:
        if self.transport == "http":
            message = "transport: HTTP gives one response per request; use 'grpc' to stream"
            raise InvalidRequestError(message, field="transport")
        return speech_request(text, options, stream=True)


def _meant(name: str) -> str:
    """The argument that was meant, if one is near."""
    arguments = inspect.signature(ClientSettings).parameters.keys() - {"unknown"}
    near = difflib.get_close_matches(name, arguments, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _checked_url(name: str, url: str) -> str:
    example = "write HOST:PORT, such as localhost:8001"
    if not isinstance(url, str):
        raise ValueError(f"{name}: {url!r} is not a str; {example}")
    problem = _url_problem(url)
    if problem:
        raise ValueError(f"{name}: {url!r} {problem}; {example}")
    return url


def _url_problem(url: str) -> str:
    if not url:
        return "is empty"
    if any(character.isspace() or not character.isprintable() for character in url):
        return "has a space or a control character"
    for mark, what in (("://", "a scheme"), ("@", "a user"), ("/", "a path")):
        if mark in url:
            return f"has {what}"
    if "?" in url or "#" in url:
        return "has a query"
    host, colon, port = url.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port:
        return "has no port"
    if not host:
        return "has no host"
    if ":" in host and not is_bracketed:
        return "has more than one colon; put an IPv6 address in []"
    is_number = port.isascii() and port.isdecimal() and len(port) <= len(str(_MAX_PORT))
    if not (is_number and 1 <= int(port) <= _MAX_PORT):
        return f"has a port outside 1 ... {_MAX_PORT}"
    try:
        return "" if urlsplit(f"//{url}").hostname else "has no host"
    except ValueError:
        return "has no valid address in its brackets"


def _checked_timeout(timeout_s: float | None) -> float | None:
    if timeout_s is None:
        return None
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, _NUMBERS):
        problem = "is not a number of seconds"
    elif not timeout_s > 0:
        problem = "is not above 0"
    elif timeout_s == math.inf:
        problem = "is not finite"
    else:
        return float(min(timeout_s, _LONGEST_S))
    raise ValueError(f"timeout_s: {timeout_s!r} {problem}; None means no limit")


def _checked_tls(tls: bool | Tls) -> Tls | None:
    if isinstance(tls, Tls):
        return tls
    if not isinstance(tls, bool):
        raise ValueError(f"tls: {tls!r} is neither a bool nor a Tls")
    return Tls() if tls else None


def _checked_headers(headers: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Names in lower case, as HTTP/2 wants them. No message shows a value: it may be a secret."""
    if headers is None:
        return ()
    if not isinstance(headers, Mapping):
        raise ValueError(f"headers: a {type(headers).__name__} is not a mapping of name to value")
    checked: dict[str, str] = {}
    for given, value in headers.items():
        name = given.lower() if isinstance(given, str) else ""
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"headers: {given!r} is no name of a header")
        if name in _OWN_HEADERS or name.startswith("grpc-") or name.endswith("-bin"):
            raise ValueError(f"headers: {given!r} is set by the client itself or binary")
        if name in checked:
            raise ValueError(f"headers: {given!r} is there twice")
        if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise ValueError(f"headers: the value of {given!r} is not printable ASCII text")
        checked[name] = value
    return tuple(checked.items())
