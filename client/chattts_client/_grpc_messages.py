"""Messages of Triton's gRPC protocol: requests, questions about the server, answers, errors."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator
from typing import Any

import grpc
from tritonclient.grpc import InferResult, service_pb2
from tritonclient.utils import serialize_byte_tensor

from ._answers import Reader
from ._exceptions import (
    ChatTTSError,
    ProtocolError,
    error_from_status,
    too_late,
)
from ._json import JsonObject
from ._protocol import (
    CODE_IN_ERRORS,
    STOP,
    STOP_KEY,
    STREAMING_MODEL,
    InputTensor,
    Question,
    SpeechRequest,
)

_NO_HTTP2 = re.compile(r"failed parsing http/2|http1.x server", re.IGNORECASE)
"""gRPC's words for an answer in HTTP/1."""
_SENT_TOO_LATE = "Internal error from Core"
"""What asyncio calls say when they had ended, for whatever reason, before all was sent."""


def infer_message(request: SpeechRequest) -> Any:
    """The message that starts a request."""
    message = service_pb2.ModelInferRequest(
        model_name=STREAMING_MODEL, model_version=request.model_version, id=request.request_id
    )
    message.parameters[CODE_IN_ERRORS].bool_param = True
    message.parameters[STOP_KEY].string_param = uuid.uuid4().hex
    for tensor in request.tensors:
        message.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.data.shape)
        message.raw_input_contents.append(_raw(tensor))
    return message


def stop_message(message: Any) -> Any:
    """The message that stops the request which `message` started."""
    stop = service_pb2.ModelInferRequest(
        model_name=message.model_name, model_version=message.model_version
    )
    stop.parameters[STOP].string_param = message.parameters[STOP_KEY].string_param
    stop.inputs.add(name="text", datatype="BYTES", shape=[1])
    stop.raw_input_contents.append(b"\0\0\0\0")
    return stop


def question(asked: Question) -> tuple[str, Any]:
    """The name of the call that asks `asked`, and its message."""
    if asked.about == "live":
        return "ServerLive", service_pb2.ServerLiveRequest()
    if asked.about == "server":
        return "ServerMetadata", service_pb2.ServerMetadataRequest()
    name, version = asked.model, asked.version
    if asked.about == "model":
        return "ModelMetadata", service_pb2.ModelMetadataRequest(name=name, version=version)
    return "ModelReady", service_pb2.ModelReadyRequest(name=name, version=version)


def reply(asked: Question, message: Any) -> JsonObject:
    """What the message says, under the keys of `Question`."""
    if asked.about == "live":
        return {"live": message.live}
    if asked.about == "server":
        return {"version": message.version}
    if asked.about == "model":
        return {"versions": list(message.versions)}
    return {"ready": message.ready}


async def once(message: Any) -> AsyncIterator[Any]:
    """A stream of one message."""
    yield message


def reader(response: Any) -> Reader:
    """Access to the outputs of one response of a stream."""
    read: Reader = InferResult(response.infer_response).as_numpy
    return read


def not_sent(request_id: str, left_s: float | None) -> ChatTTSError:
    """The error of a call that had ended before its request was sent; see `call_error`."""
    if left_s is not None and left_s <= 0:
        return too_late(request_id)
    message = "the connection ended while the request was sent"
    return error_from_status("UNAVAILABLE", message, request_id)


def call_error(error: Any, request_id: str, left_s: float | None = None) -> ChatTTSError:
    """The error of a call that ended with a status.

    Args:
        error: grpc's.
        request_id: of the request.
        left_s: seconds until the deadline, where that is known.
    """
    message = error.details() or "the server closed the call without a message"
    if message == _SENT_TOO_LATE:
        return not_sent(request_id, left_s)
    if error.code() is grpc.StatusCode.CANCELLED and left_s is not None and left_s <= 0:
        return too_late(request_id)  # the server has noticed the deadline first
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return ProtocolError(f"not a Triton server: {message}", request_id=request_id)
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return too_late(request_id)
    if _NO_HTTP2.search(message):
        hint = "Name the gRPC port in url, 8001 by default, or pass transport='http'."
        return ProtocolError(f"not a gRPC port: {message}", request_id=request_id, hint=hint)
    return error_from_status(error.code().name, message, request_id)


def _raw(tensor: InputTensor) -> bytes:
    if tensor.datatype == "BYTES":
        return bytes(serialize_byte_tensor(tensor.data).item())
    return tensor.data.tobytes()
