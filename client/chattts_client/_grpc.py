"""The gRPC transport: one bidirectional stream per request, many requests per connection.

It uses tritonclient's generated stubs directly, because its client classes allow one stream per
client at a time. Errors arrive inside the stream, as text that begins with their status. Triton can
end the stream with a real status instead (header `triton_grpc_error`), but server 2.51 then crashes
when errors meet other streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from tritonclient.grpc import InferResult, service_pb2
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub
from tritonclient.utils import serialize_byte_tensor

from ._exceptions import (
    ChatTTSError,
    ProtocolError,
    RequestCancelledError,
    error_from_status,
    error_in_stream,
)
from ._protocol import CODE_IN_ERRORS, STREAMING_MODEL, InputTensor, Reader, SpeechRequest

# A whole utterance is one message (96 kB per second); gRPC's default limit is 4 MiB.
_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
)


class GrpcTransport:
    """One connection to a server; safe for use by several threads."""

    def __init__(self, url: str) -> None:
        self._channel = grpc.insecure_channel(url, options=_CHANNEL_OPTIONS)
        self._stub = GRPCInferenceServiceStub(self._channel)

    def start(self, request: SpeechRequest, timeout_s: float | None) -> GrpcCall:
        """Send a request; errors show when the answer is received."""
        messages = iter((_message(request),))
        call = self._stub.ModelStreamInfer(messages, timeout=timeout_s)
        return GrpcCall(call, request.request_id)

    def is_ready(self, timeout_s: float | None) -> bool:
        """Ask whether the model is ready; a refused connection raises."""
        try:
            return bool(self._stub.ModelReady(_ready_message(), timeout=timeout_s).ready)
        except grpc.RpcError as error:
            raise _error(error, "") from error

    def close(self) -> None:
        """Close the connection; running requests are cancelled."""
        self._channel.close()


class GrpcCall:
    """One running request."""

    def __init__(self, call: Any, request_id: str) -> None:
        self._call = call
        self._request_id = request_id

    def receive(self) -> Reader | None:
        """Wait for the next response; None after the last."""
        try:
            response = next(self._call, None)
            if response is not None and response.error_message:
                self._read_to_the_end()
                raise error_in_stream(response.error_message, self._request_id)
        except grpc.RpcError as error:
            raise _error(error, self._request_id) from error
        return None if response is None else _reader(response)

    def _read_to_the_end(self) -> None:
        for _ in self._call:
            pass

    def cancel(self) -> None:
        """Stop the request; does nothing once it has ended."""
        self._call.cancel()


class AsyncGrpcTransport:
    """The asynchronous twin; belongs to the event loop of its first request."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._channel: Any = None
        self._stub: Any = None

    def start(self, request: SpeechRequest, timeout_s: float | None) -> AsyncGrpcCall:
        """Send a request; errors show when the answer is received."""
        call = self._connect().ModelStreamInfer(_once(_message(request)), timeout=timeout_s)
        return AsyncGrpcCall(call, request.request_id)

    async def is_ready(self, timeout_s: float | None) -> bool:
        """Ask whether the model is ready; a refused connection raises."""
        try:
            reply = await self._connect().ModelReady(_ready_message(), timeout=timeout_s)
        except grpc.RpcError as error:
            raise _error(error, "") from error
        return bool(reply.ready)

    async def close(self) -> None:
        """Close the connection; running requests are cancelled."""
        if self._channel is not None:
            await self._channel.close()

    def _connect(self) -> Any:
        # NOTE: an asyncio channel binds to the running loop, so it is made inside one.
        if self._stub is None:
            self._channel = grpc.aio.insecure_channel(self._url, options=_CHANNEL_OPTIONS)
            self._stub = GRPCInferenceServiceStub(self._channel)
        return self._stub


class AsyncGrpcCall:
    """One running request."""

    def __init__(self, call: Any, request_id: str) -> None:
        self._call = call
        self._request_id = request_id
        self._is_cancelled = False

    async def receive(self) -> Reader | None:
        """Wait for the next response; None after the last."""
        try:
            response = await self._call.read()
            if response is not grpc.aio.EOF and response.error_message:
                await self._read_to_the_end()
                raise error_in_stream(response.error_message, self._request_id)
        except grpc.RpcError as error:
            raise _error(error, self._request_id) from error
        except asyncio.CancelledError:
            if not self._is_cancelled:  # the task was cancelled, not the request
                raise
            message = "the stream was closed while it was being read"
            raise RequestCancelledError(message, request_id=self._request_id) from None
        return None if response is grpc.aio.EOF else _reader(response)

    async def _read_to_the_end(self) -> None:
        while await self._call.read() is not grpc.aio.EOF:
            pass

    def cancel(self) -> None:
        """Stop the request; does nothing once it has ended."""
        self._is_cancelled = True
        self._call.cancel()


async def _once(message: Any) -> AsyncIterator[Any]:
    yield message


def _ready_message() -> Any:
    return service_pb2.ModelReadyRequest(name=STREAMING_MODEL)


def _message(request: SpeechRequest) -> Any:
    message = service_pb2.ModelInferRequest(model_name=STREAMING_MODEL, id=request.request_id)
    message.parameters[CODE_IN_ERRORS].bool_param = True
    for tensor in request.tensors:
        message.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.data.shape)
        message.raw_input_contents.append(_raw(tensor))
    return message


def _raw(tensor: InputTensor) -> bytes:
    if tensor.datatype == "BYTES":
        return bytes(serialize_byte_tensor(tensor.data).item())
    return tensor.data.tobytes()


def _reader(response: Any) -> Reader:
    reader: Reader = InferResult(response.infer_response).as_numpy
    return reader


def _error(error: Any, request_id: str) -> ChatTTSError:
    message = error.details() or "the server closed the call without a message"
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return ProtocolError(f"not a Triton server: {message}", request_id=request_id)
    return error_from_status(error.code().name, message, request_id)
