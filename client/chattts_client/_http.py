"""The HTTP transport: one response per request, from the unary model. Needs the `http` extra.

A server does not notice over HTTP that a caller has left, so each request also carries its time
limit as `deadline_ms`.
"""

from __future__ import annotations

import asyncio
import reprlib
from typing import Any

import aiohttp
from tritonclient.http import InferenceServerClient, InferInput
from tritonclient.http.aio import InferenceServerClient as AsyncInferenceServerClient
from tritonclient.utils import InferenceServerException

from ._answers import Reader, read_json_facts
from ._exceptions import (
    ChatTTSError,
    closed,
    error_from_status,
    no_http,
    too_late,
)
from ._json import JsonObject, parse_object
from ._protocol import (
    HEALTH_JSON,
    STREAMING_MODEL,
    UNARY_MODEL,
    InputTensor,
    Question,
    SpeechRequest,
    with_deadline,
)
from ._settings import Endpoint
from ._tls import ssl_context
from ._web import OK, Answer, Connections, error_from_http

_JSON_LENGTH = "Inference-Header-Content-Length"
_READY, _NOT_READY = OK, 400
_DISCONNECTS = (OSError, aiohttp.ClientConnectionError, aiohttp.ClientPayloadError)
_FAILURES = (asyncio.TimeoutError, OSError, InferenceServerException, aiohttp.ClientError)


class HttpTransport:
    """Kept connections, one for each request that runs; safe for use by several threads."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._connections = Connections(endpoint)

    def start(self, request: SpeechRequest, timeout_s: float | None) -> HttpCall:
        """Prepare a request; it is sent when the answer is received."""
        return HttpCall(self, with_deadline(request, timeout_s), timeout_s)

    def infer(self, request: SpeechRequest, timeout_s: float | None) -> Reader:
        """Send a request and wait for its response."""
        body, json_length = InferenceServerClient.generate_request_body(
            [_input(tensor) for tensor in request.tensors], request_id=request.request_id
        )
        headers = {} if json_length is None else {_JSON_LENGTH: str(json_length)}
        path = f"{_model_path(UNARY_MODEL, request.model_version)}/infer"
        try:
            answer = self._connections.ask(path, timeout_s, body=body, headers=headers)
            if answer.status != OK:
                raise answer.error()
            return _reader(answer)
        except ChatTTSError as error:
            error.request_id = request.request_id
            raise

    def ask(self, asked: Question, timeout_s: float | None) -> JsonObject:
        """Ask about the server or a model; its answer has the keys of `Question`."""
        return _ask(self._connections, asked, timeout_s)

    def close(self) -> None:
        """Close the connections; running requests are cancelled."""
        self._connections.close()


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
        self._connections = Connections(endpoint)  # for questions, in threads
        self._tls: dict[str, Any] = {}
        if endpoint.tls is not None:
            self._tls = {"ssl": True, "ssl_context": ssl_context(endpoint.tls)}
        self._client: Any = None
        self._running: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    def start(self, request: SpeechRequest, timeout_s: float | None) -> AsyncHttpCall:
        """Prepare a request; it is sent when the answer is received."""
        return AsyncHttpCall(self, with_deadline(request, timeout_s), timeout_s)

    async def infer(self, request: SpeechRequest, timeout_s: float | None) -> Reader:
        """Send a request and wait for its response."""
        if self._is_closed:  # between two tries
            raise closed(request.request_id)
        running = asyncio.create_task(self._infer(request))
        self._running.add(running)
        try:
            result = await asyncio.wait_for(running, timeout_s)
        except asyncio.CancelledError:
            if self._is_closed:
                raise closed(request.request_id) from None
            raise
        except _FAILURES as error:
            raise _error(error, request.request_id) from error
        finally:
            self._running.remove(running)
        reader: Reader = result.as_numpy
        return reader

    async def _infer(self, request: SpeechRequest) -> Any:
        return await self._connect().infer(
            UNARY_MODEL,
            [_input(tensor) for tensor in request.tensors],
            model_version=request.model_version,
            request_id=request.request_id,
            headers=dict(self._endpoint.headers),
        )

    async def ask(self, asked: Question, timeout_s: float | None) -> JsonObject:
        """Ask about the server or a model; its answer has the keys of `Question`."""
        return await asyncio.to_thread(_ask, self._connections, asked, timeout_s)

    async def close(self) -> None:
        """Close the connections; running requests are cancelled."""
        self._is_closed = True
        for running in self._running:
            running.cancel()
        self._connections.close()
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


def _ask(connections: Connections, asked: Question, timeout_s: float | None) -> JsonObject:
    body = HEALTH_JSON if asked.about == "facts" else None
    answer = connections.ask(_question_path(asked), timeout_s, body=body)
    if asked.about in ("live", "ready") and answer.status in (_READY, _NOT_READY):
        return {asked.about: answer.status == _READY}
    if answer.status != OK:
        raise answer.error()
    return (read_json_facts if asked.about == "facts" else parse_object)(answer.content)


def _question_path(asked: Question) -> str:
    if asked.about == "live":
        return "/v2/health/live"
    if asked.about == "server":
        return "/v2"
    # the model that streams: the unary one would let a question wait for speech
    path = _model_path(asked.model or STREAMING_MODEL, asked.version)
    return path + {"model": "", "ready": "/ready", "facts": "/generate"}[asked.about]


def _model_path(model: str, version: str) -> str:
    return f"/v2/models/{model}" + (f"/versions/{version}" if version else "")


def _input(tensor: InputTensor) -> Any:
    return InferInput(tensor.name, tensor.data.shape, tensor.datatype).set_data_from_numpy(
        tensor.data
    )


def _reader(answer: Answer) -> Reader:
    try:
        length = answer.headers.get(_JSON_LENGTH)
        result = InferenceServerClient.parse_response_body(
            answer.content, header_length=None if length is None else int(length)
        )
    except (InferenceServerException, ValueError) as error:
        raise no_http(error) from error
    reader: Reader = result.as_numpy
    return reader


def _error(error: BaseException, request_id: str) -> ChatTTSError:
    if isinstance(error, InferenceServerException) and error.status() is not None:
        body = error.debug_details()  # only where it is not Triton's JSON
        message = str(error.message()) if body is None else ""
        return error_from_http(int(error.status()), message, (body or "").encode(), request_id)
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return too_late(request_id)
    if isinstance(error, _DISCONNECTS):
        return error_from_status("UNAVAILABLE", f"no connection: {error}", request_id)
    return no_http(reprlib.repr(str(error)), request_id)
