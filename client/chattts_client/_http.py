"""The HTTP transport: one response per request, from the unary model. Needs the `http` extra.

A server does not notice over HTTP that a caller has left, so each request also carries its time
limit as `deadline_ms`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import gevent  # type: ignore[import-untyped]
from geventhttpclient.response import HTTPConnectionClosed, HTTPParseError
from tritonclient.http import InferenceServerClient, InferInput
from tritonclient.http.aio import InferenceServerClient as AsyncInferenceServerClient
from tritonclient.utils import InferenceServerException

from ._answers import Reader
from ._exceptions import (
    ChatTTSError,
    ProtocolError,
    RequestTimeoutError,
    ServerUnavailableError,
    code_from_http,
    error_from_status,
)
from ._protocol import UNARY_MODEL, InputTensor, SpeechRequest, with_deadline
from ._settings import Endpoint

_TIMEOUTS = (gevent.Timeout, TimeoutError, asyncio.TimeoutError)
_DISCONNECTS = (OSError, HTTPConnectionClosed, aiohttp.ClientConnectionError)
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
        self._url = endpoint.url

    def start(self, request: SpeechRequest, timeout_s: float | None) -> HttpCall:
        """Prepare a request; it is sent when the answer is received."""
        return HttpCall(self._url, with_deadline(request, timeout_s), timeout_s)

    def is_ready(self, timeout_s: float | None) -> bool:
        """Ask whether the model is ready; a refused connection raises."""
        arguments = {"model_name": UNARY_MODEL}
        return bool(_call(self._url, "is_model_ready", arguments, timeout_s, request_id=""))

    def close(self) -> None:
        """Nothing is kept open."""


class HttpCall:
    """One request with one response."""

    def __init__(self, url: str, request: SpeechRequest, timeout_s: float | None) -> None:
        self._url = url
        self._request = request
        self._timeout_s = timeout_s
        self._is_done = False

    def receive(self) -> Reader | None:
        """Send the request and wait for its response; None the second time."""
        if self._is_done:
            return None
        self._is_done = True
        arguments, request_id = _arguments(self._request), self._request.request_id
        result = _call(self._url, "infer", arguments, self._timeout_s, request_id)
        reader: Reader = result.as_numpy
        return reader

    def stop(self) -> None:
        """An HTTP request cannot be stopped; its deadline ends it."""
        self._is_done = True


class AsyncHttpTransport:
    """The asynchronous twin, with a pool of connections; belongs to the loop of its first use."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._url = endpoint.url
        self._client: Any = None

    def start(self, request: SpeechRequest, timeout_s: float | None) -> AsyncHttpCall:
        """Prepare a request; it is sent when the answer is received."""
        return AsyncHttpCall(self._connect(), with_deadline(request, timeout_s), timeout_s)

    async def is_ready(self, timeout_s: float | None) -> bool:
        """Ask whether the model is ready; a refused connection raises."""
        return bool(await _await(self._connect().is_model_ready(UNARY_MODEL), "", timeout_s))

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    def _connect(self) -> Any:
        if self._client is None:
            self._client = AsyncInferenceServerClient(self._url, conn_timeout=None)
        return self._client


class AsyncHttpCall:
    """One request with one response."""

    def __init__(self, client: Any, request: SpeechRequest, timeout_s: float | None) -> None:
        self._client = client
        self._request = request
        self._timeout_s = timeout_s
        self._is_done = False

    async def receive(self) -> Reader | None:
        """Send the request and wait for its response; None the second time."""
        if self._is_done:
            return None
        self._is_done = True
        answer = self._client.infer(**_arguments(self._request))
        result = await _await(answer, self._request.request_id, self._timeout_s)
        reader: Reader = result.as_numpy
        return reader

    async def stop(self) -> None:
        """An HTTP request cannot be stopped; its deadline ends it."""
        self._is_done = True

    def cancel(self) -> None:
        """An HTTP request cannot be stopped; its deadline ends it."""
        self._is_done = True


def _call(
    url: str, method: str, arguments: dict[str, Any], timeout_s: float | None, request_id: str
) -> Any:
    try:
        # NOTE: the client's own time limits are per socket operation; this one is for the whole.
        with (
            gevent.Timeout(timeout_s),
            InferenceServerClient(url, connection_timeout=None, network_timeout=None) as client,
        ):
            return getattr(client, method)(**arguments)
    except _FAILURES as error:
        raise _error(error, request_id) from error


async def _await(answer: Any, request_id: str, timeout_s: float | None) -> Any:
    try:
        return await asyncio.wait_for(answer, timeout_s)
    except _FAILURES as error:
        raise _error(error, request_id) from error


def _arguments(request: SpeechRequest) -> dict[str, Any]:
    return {
        "model_name": UNARY_MODEL,
        "model_version": request.model_version,
        "inputs": [_input(tensor) for tensor in request.tensors],
        "request_id": request.request_id,
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
    if isinstance(error, _DISCONNECTS):
        return ServerUnavailableError(f"no connection: {error}", request_id=request_id)
    return ProtocolError(f"not a Triton answer: {error}", request_id=request_id)
