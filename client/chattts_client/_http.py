"""The HTTP transport: one response per request, from the unary model. Needs the `http` extra.

A server does not notice over HTTP that a caller has left, so each request also carries its time
limit as `deadline_ms`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import gevent  # type: ignore[import-untyped]
import gevent.ssl  # type: ignore[import-untyped]
from geventhttpclient.response import HTTPConnectionClosed, HTTPParseError
from tritonclient.http import InferenceServerClient, InferInput
from tritonclient.http.aio import InferenceServerClient as AsyncInferenceServerClient
from tritonclient.utils import InferenceServerException

from ._answers import Reader
from ._exceptions import (
    ChatTTSError,
    ProtocolError,
    RequestTimeoutError,
    code_from_http,
    error_from_status,
)
from ._json import JsonObject
from ._protocol import UNARY_MODEL, InputTensor, Question, SpeechRequest, with_deadline
from ._settings import Endpoint
from ._web import ask, ssl_context

_TIMEOUTS = (gevent.Timeout, TimeoutError, asyncio.TimeoutError)
_DISCONNECTS = (
    OSError,
    HTTPConnectionClosed,
    aiohttp.ClientConnectionError,
    aiohttp.ClientPayloadError,
)
# What geventhttpclient's parser says where an answer ends too early; it has no class for that.
_CUT = "Incomplete response"
_FAILURES = (
    *_TIMEOUTS,
    *_DISCONNECTS,
    InferenceServerException,
    HTTPParseError,
    aiohttp.ClientError,
)


class HttpTransport:
    """One connection per request, so that it is safe for use by several threads."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._tls: dict[str, Any] = {}
        if endpoint.tls is not None:
            context = ssl_context(endpoint.tls, gevent.ssl.create_default_context)
            self._tls = {"ssl": True, "ssl_context_factory": lambda **_: context}

    def start(self, request: SpeechRequest, timeout_s: float | None) -> HttpCall:
        """Prepare a request; it is sent when the answer is received."""
        return HttpCall(self, with_deadline(request, timeout_s), timeout_s)

    def infer(self, request: SpeechRequest, timeout_s: float | None) -> Reader:
        """Send a request and wait for its response."""
        try:
            # NOTE: the client's own time limits are per socket operation; this is for the whole.
            with (
                gevent.Timeout(timeout_s),
                InferenceServerClient(
                    self._endpoint.url,
                    connection_timeout=None,
                    network_timeout=None,
                    **self._tls,
                ) as client,
            ):
                result = client.infer(**_arguments(request, self._endpoint))
        except _FAILURES as error:
            raise _error(error, request.request_id) from error
        reader: Reader = result.as_numpy
        return reader

    def ask(self, asked: Question, timeout_s: float | None) -> JsonObject:
        """Ask about the server or a model; its answer has the keys of `Question`."""
        return ask(self._endpoint, asked, timeout_s)

    def close(self) -> None:
        """Nothing is kept open."""


class HttpCall:
    """One request with one response."""

    def __init__(
        self, transport: HttpTransport, request: SpeechRequest, timeout_s: float | None
    ) -> None:
        self._transport = transport
        self._request = request
        self._timeout_s = timeout_s
        self._is_done = False

    def receive(self) -> Reader | None:
        """Send the request and wait for its response; None the second time."""
        if self._is_done:
            return None
        self._is_done = True
        return self._transport.infer(self._request, self._timeout_s)

    def stop(self) -> None:
        """An HTTP request cannot be stopped; its deadline ends it."""
        self._is_done = True


class AsyncHttpTransport:
    """The asynchronous twin, with a pool of connections; belongs to the loop of its first use."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._tls: dict[str, Any] = {}
        if endpoint.tls is not None:
            self._tls = {"ssl": True, "ssl_context": ssl_context(endpoint.tls)}
        self._client: Any = None

    def start(self, request: SpeechRequest, timeout_s: float | None) -> AsyncHttpCall:
        """Prepare a request; it is sent when the answer is received."""
        return AsyncHttpCall(self, with_deadline(request, timeout_s), timeout_s)

    async def infer(self, request: SpeechRequest, timeout_s: float | None) -> Reader:
        """Send a request and wait for its response."""
        answer = self._connect().infer(**_arguments(request, self._endpoint))
        try:
            result = await asyncio.wait_for(answer, timeout_s)
        except _FAILURES as error:
            raise _error(error, request.request_id) from error
        reader: Reader = result.as_numpy
        return reader

    async def ask(self, asked: Question, timeout_s: float | None) -> JsonObject:
        """Ask about the server or a model; its answer has the keys of `Question`."""
        return await asyncio.to_thread(ask, self._endpoint, asked, timeout_s)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    def _connect(self) -> Any:
        if self._client is None:
            self._client = AsyncInferenceServerClient(
                self._endpoint.url, conn_timeout=None, **self._tls
            )
        return self._client


class AsyncHttpCall:
    """One request with one response."""

    def __init__(
        self, transport: AsyncHttpTransport, request: SpeechRequest, timeout_s: float | None
    ) -> None:
        self._transport = transport
        self._request = request
        self._timeout_s = timeout_s
        self._is_done = False

    async def receive(self) -> Reader | None:
        """Send the request and wait for its response; None the second time."""
        if self._is_done:
            return None
        self._is_done = True
        return await self._transport.infer(self._request, self._timeout_s)

    async def stop(self) -> None:
        """An HTTP request cannot be stopped; its deadline ends it."""
        self._is_done = True

    def cancel(self) -> None:
        """An HTTP request cannot be stopped; its deadline ends it."""
        self._is_done = True


def _arguments(request: SpeechRequest, endpoint: Endpoint) -> dict[str, Any]:
    return {
        "model_name": UNARY_MODEL,
        "model_version": request.model_version,
        "inputs": [_input(tensor) for tensor in request.tensors],
        "request_id": request.request_id,
        "headers": dict(endpoint.headers),
    }


def _input(tensor: InputTensor) -> Any:
    return InferInput(tensor.name, tensor.data.shape, tensor.datatype).set_data_from_numpy(
        tensor.data
    )


def _error(error: BaseException, request_id: str) -> ChatTTSError:
    if isinstance(error, InferenceServerException) and error.status() is not None:
        status, message = int(error.status()), str(error.message())
        return error_from_status(code_from_http(status, message), message, request_id)
    if isinstance(error, _TIMEOUTS):
        return RequestTimeoutError("no answer within the time limit", request_id=request_id)
    if isinstance(error, _DISCONNECTS) or _CUT in str(error):
        return error_from_status("UNAVAILABLE", f"no connection: {error}", request_id)
    return ProtocolError(f"not a Triton answer: {error}", request_id=request_id)
