"""Calls of chattts and chattts_unary with nothing but tritonclient, as any KServe client."""

from __future__ import annotations

import json
import queue
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.http
from launcher import EmbeddedServer
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

TIMEOUT_S = 60.0

Array = np.ndarray[Any, Any]
_TYPES: dict[str, tuple[str, type[np.generic]]] = {
    **dict.fromkeys(("refine", "stream"), ("BOOL", np.bool_)),
    **dict.fromkeys(("temperature", "top_p", "repetition_penalty"), ("FP32", np.float32)),
    **dict.fromkeys(("top_k", "min_new_tokens", "max_new_tokens"), ("INT32", np.int32)),
    **dict.fromkeys(("priority", "deadline_ms", "queue_deadline_ms"), ("INT32", np.int32)),
    "seed": ("UINT64", np.uint64),
}
_TEXT = ("BYTES", np.object_)
_CODED = re.compile(r"(?:\[[^\]]*\] ?)?([A-Z_]+): (.*)", re.DOTALL)


class CallError(Exception):
    """What a call failed with: the code (Triton's name, HTTP status or empty) and the message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code} {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Response:
    """One response of chattts or chattts_unary."""

    samples: Array
    content: bytes
    sample_rate: int
    is_final: bool
    metadata: dict[str, Any]


def _typed(name: str, value: Any) -> tuple[str, Array]:
    """Triton's name of an input's type, and its tensor."""
    triton_type, numpy_type = _TYPES.get(name, _TEXT)
    value = value.encode() if isinstance(value, str) else value
    array = value if isinstance(value, np.ndarray) else np.array([value], numpy_type)
    return triton_type, array


def wire_request(**values: Any) -> service_pb2.ModelInferRequest:
    """Return a request of chattts as it travels, for callers that do without a client."""
    request = service_pb2.ModelInferRequest(model_name="chattts")
    request.parameters["triton_enable_empty_final_response"].bool_param = True
    for name, value in values.items():
        triton_type, array = _typed(name, value)
        request.inputs.add(name=name, datatype=triton_type, shape=array.shape)
        content = serialize_byte_tensor(array).item() if triton_type == "BYTES" else array.tobytes()
        request.raw_input_contents.append(content)
    return request


def _inputs(module: Any, values: dict[str, Any]) -> list[Any]:
    tensors = []
    for name, value in values.items():
        triton_type, array = _typed(name, value)
        tensor = module.InferInput(name, list(array.shape), triton_type)
        tensor.set_data_from_numpy(array)
        tensors.append(tensor)
    return tensors


def _response(result: Any) -> Response:
    metadata = json.loads(result.as_numpy("metadata")[0])
    return Response(
        samples=result.as_numpy("audio"),
        content=result.as_numpy("audio_bytes")[0],
        sample_rate=int(result.as_numpy("sample_rate")[0]),
        is_final=bool(result.as_numpy("is_final")[0]),
        metadata=metadata,
    )


@contextmanager
def open_stream(
    server: EmbeddedServer, parameters: Mapping[str, str] | None = None, **values: Any
) -> Iterator[Iterator[Response]]:
    """Start one request; leaving the context early cancels it.

    Raises:
        CallError: From the iterator. The code is asked for in the message, since the header that
            makes Triton end the stream with a status crashes server 2.51.
    """
    answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
    is_running = True

    def responses() -> Iterator[Response]:
        nonlocal is_running
        while is_running:
            result, error = answers.get(timeout=TIMEOUT_S)
            if error is not None:
                is_running = False
                coded = _CODED.fullmatch(error.message())
                raise CallError(*coded.groups() if coded else ("", error.message()))
            final_flag = result.get_response().parameters["triton_final_response"]
            is_running = not final_flag.bool_param
            yield _response(result)

    with tritonclient.grpc.InferenceServerClient(server.grpc_url) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        client.async_stream_infer(
            "chattts",
            _inputs(tritonclient.grpc, values),
            request_id=str(values.get("seed", "")),
            enable_empty_final_response=True,
            parameters={"code_in_errors": True, **(parameters or {})},
        )
        try:
            yield responses()
        finally:
            client.stop_stream(cancel_requests=is_running)


def stream(
    server: EmbeddedServer, parameters: Mapping[str, str] | None = None, **values: Any
) -> list[Response]:
    """Return all responses of one streaming request."""
    with open_stream(server, parameters, **values) as responses:
        return list(responses)


def audio(responses: list[Response]) -> Array:
    """Join the samples."""
    return np.concatenate([response.samples for response in responses])


def unary_grpc(server: EmbeddedServer, *, timeout_s: float = TIMEOUT_S, **values: Any) -> Response:
    """Ask chattts_unary over gRPC."""
    with tritonclient.grpc.InferenceServerClient(server.grpc_url) as client:
        return _ask_unary(client, tritonclient.grpc, values, client_timeout=timeout_s)


def unary_http(server: EmbeddedServer, **values: Any) -> Response:
    """Ask chattts_unary over HTTP /infer."""
    with tritonclient.http.InferenceServerClient(
        server.http_url, network_timeout=TIMEOUT_S
    ) as client:
        return _ask_unary(client, tritonclient.http, values)


def _ask_unary(client: Any, module: Any, values: dict[str, Any], **options: Any) -> Response:
    try:
        return _response(client.infer("chattts_unary", _inputs(module, values), **options))
    except InferenceServerException as error:
        raise CallError(error.status(), error.message()) from error
