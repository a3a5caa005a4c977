"""The gRPC transport: one bidirectional stream per request, many requests per connection.

It uses tritonclient's generated stubs directly, because its client classes allow one stream per
client at a time. Errors arrive inside the stream, as text that begins with their status. Triton can
end the stream with a real status instead (header `triton_grpc_error`), but server 2.51 then crashes
when errors meet other streams.

A request is stopped by another one that names it, and read to its end: the call of a caller who
leaves early is not cancelled, since a cancellation that meets the last response crashes server 2.51
now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import uuid
from collections.abc import AsyncIterator
from typing import Any

import grpc
from tritonclient.grpc import InferResult, service_pb2
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub
from tritonclient.utils import serialize_byte_tensor

from ._answers import Reader
from ._exceptions import (
    ChatTTSError,
    ProtocolError,
    RequestCancelledError,
    error_from_status,
    error_in_stream,
)
from ._protocol import (
    CODE_IN_ERRORS,
    STOP,
    STOP_KEY,
    STOP_LIMIT_S,
    STREAMING_MODEL,
    InputTensor,
    SpeechRequest,
)
from ._settings import Endpoint

# A whole utterance is one message (96 kB per second); gRPC's default limit is 4 MiB. And equal
# channels of a process would share one connection, which a load balancer gives to one server.
_CHANNEL_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
)


class GrpcTransport:
    """One connection to a server; safe for use by several threads."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._channel = grpc.insecure_channel(endpoint.url, options=_CHANNEL_OPTIONS)
        self._stub = GRPCInferenceServiceStub(self._channel)

    def start(self, request: SpeechRequest, timeout_s: float | None) -> GrpcCall:
        """Send a request; errors show when the answer is received."""
        message = _message(request)
        call = self._stub.ModelStreamInfer(iter((message,)), timeout=timeout_s)
        return GrpcCall(call, message, self._stub)

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

    def __init__(self, call: Any, message: Any, stub: Any) -> None:
        self._call = call
        self._message = message
        self._stub = stub
        self._is_stopped = False

    def receive(self) -> Reader | None:
        """Wait for the next response; None after the last."""
        request_id = self._message.id
        try:
            response = next(self._call, None)
            if self._is_stopped:  # by another thread
                raise _closed(request_id)
            if response is not None and response.error_message:
                self._read_to_the_end()
                raise error_in_stream(response.error_message, request_id)
        except grpc.RpcError as error:
            raise _error(error, request_id) from error
        return None if response is None else _reader(response)

    def _read_to_the_end(self) -> None:
        for _ in self._call:
            pass

    def stop(self) -> None:
        """Stop the request and wait until it has ended; does nothing once it has."""
        self._is_stopped = True
        if not self._call.is_active():
            return
        limit = threading.Timer(STOP_LIMIT_S, self._call.cancel)
        limit.start()
        with contextlib.suppress(grpc.RpcError):  # nobody waits for the answer any more
            for _ in self._stub.ModelStreamInfer(iter((_stop(self._message),))):
                pass
            self._read_to_the_end()
        limit.cancel()
        self._call.cancel()


class AsyncGrpcTransport:
    """The asynchronous twin; belongs to the event loop of its first request."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._url = endpoint.url
        self._channel: Any = None
        self._stub: Any = None

    def start(self, request: SpeechRequest, timeout_s: float | None) -> AsyncGrpcCall:
        """Send a request; errors show when the answer is received."""
        stub, message = self._connect(), _message(request)
        return AsyncGrpcCall(
            stub.ModelStreamInfer(_once(message), timeout=timeout_s), message, stub
        )

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

    def __init__(self, call: Any, message: Any, stub: Any) -> None:
        self._call = call
        self._message = message
        self._stub = stub
        self._is_stopped = False
        self._reading = asyncio.Lock()

    async def receive(self) -> Reader | None:
        """Wait for the next response; None after the last."""
        request_id = self._message.id
        try:
            async with self._reading:
                response = await self._call.read()
                if self._is_stopped:  # by another task
                    raise _closed(request_id)
                if response is not grpc.aio.EOF and response.error_message:
                    await self._read_to_the_end()
                    raise error_in_stream(response.error_message, request_id)
        except grpc.RpcError as error:
            raise _error(error, request_id) from error
        except asyncio.CancelledError:
            if not self._is_stopped:  # the task was cancelled, not the request
                raise
            raise _closed(request_id) from None
        return None if response is grpc.aio.EOF else _reader(response)

    async def _read_to_the_end(self) -> None:
        while await self._call.read() is not grpc.aio.EOF:
            pass

    async def stop(self) -> None:
        """Stop the request and wait until it has ended; does nothing once it has."""
        self._is_stopped = True
        if self._call.done():
            return
        try:
            with contextlib.suppress(grpc.RpcError, TimeoutError):
                async with asyncio.timeout(STOP_LIMIT_S):
                    async for _ in self._stub.ModelStreamInfer(_once(_stop(self._message))):
                        pass
                    async with self._reading:
                        await self._read_to_the_end()
        finally:
            self._call.cancel()

    def cancel(self) -> None:
        """Cancel the call, where nobody can wait for the request to end."""
        self._is_stopped = True
        self._call.cancel()


async def _once(message: Any) -> AsyncIterator[Any]:
    yield message


def _ready_message() -> Any:
    return service_pb2.ModelReadyRequest(name=STREAMING_MODEL)


def _message(request: SpeechRequest) -> Any:
    message = service_pb2.ModelInferRequest(
        model_name=STREAMING_MODEL, model_version=request.model_version, id=request.request_id
    )
    message.parameters[CODE_IN_ERRORS].bool_param = True
    message.parameters[STOP_KEY].string_param = uuid.uuid4().hex
    for tensor in request.tensors:
        message.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.data.shape)
        message.raw_input_contents.append(_raw(tensor))
    return message


def _stop(message: Any) -> Any:
    """The request that stops another one."""
    stop = service_pb2.ModelInferRequest(
        model_name=message.model_name, model_version=message.model_version
    )
    stop.parameters[STOP].string_param = message.parameters[STOP_KEY].string_param
    stop.inputs.add(name="text", datatype="BYTES", shape=[1])
    stop.raw_input_contents.append(b"\0\0\0\0")
    return stop


def _closed(request_id: str) -> RequestCancelledError:
    message = "the stream was closed while it was being read"
    return RequestCancelledError(message, request_id=request_id)


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
