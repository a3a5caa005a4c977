"""Ways to a server beside chattts_client: Triton's own client, and HTTP as curl speaks it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import tritonclient.grpc as triton
from chattts_client import ChatTTSClient

from .utterances import Samples, Utterance

LIMIT_S = 60.0
"""A request that takes longer has failed."""
STREAMING = "chattts"
UNARY = "chattts_unary"
_STREAM_PATH = f"/v2/models/{STREAMING}/generate_stream"
_TYPES: Mapping[str, tuple[str, Any]] = {
    "text": ("BYTES", np.object_),
    "seed": ("UINT64", np.uint64),
    "min_new_tokens": ("INT32", np.int32),
    "max_new_tokens": ("INT32", np.int32),
    "temperature": ("FP32", np.float32),
    "top_p": ("FP32", np.float32),
    "top_k": ("INT32", np.int32),
}


@dataclass(frozen=True, slots=True)
class Target:
    """A running server, with connections that all threads share."""

    grpc_url: str
    http_url: str
    grpc: ChatTTSClient
    http: ChatTTSClient
    raw: triton.InferenceServerClient

    @classmethod
    @contextmanager
    def connect(cls, grpc_url: str, http_url: str) -> Iterator[Target]:
        """Open the connections; they close with the block."""
        with (
            ChatTTSClient(grpc_url, timeout_s=LIMIT_S, max_retries=0) as grpc,
            ChatTTSClient(
                http_url, transport="http", timeout_s=LIMIT_S, max_retries=0
            ) as over_http,
            triton.InferenceServerClient(grpc_url) as raw,
        ):
            yield cls(grpc_url, http_url, grpc, over_http, raw)


def values(utterance: Utterance) -> dict[str, Any]:
    """Return the inputs of an utterance by name."""
    return {"text": utterance.text, **utterance.options}


def tensors(inputs: Mapping[str, Any]) -> list[triton.InferInput]:
    """Return the inputs as Triton's client takes them; arrays keep their shape."""
    made = []
    for name, value in inputs.items():
        datatype, kind = _TYPES[name]
        value = value.encode() if isinstance(value, str) else value
        array = np.atleast_1d(np.array(value, dtype=kind))
        tensor = triton.InferInput(name, list(array.shape), datatype)
        tensor.set_data_from_numpy(array)
        made.append(tensor)
    return made


class EventStream:
    """One request to /generate_stream; leaving its block before the end drops the connection."""

    def __init__(self, http_url: str, inputs: Mapping[str, Any]) -> None:
        """Send the request."""
        self._connection = http.client.HTTPConnection(http_url, timeout=LIMIT_S)
        self._response: http.client.HTTPResponse | None = None
        self._connection.request("POST", _STREAM_PATH, json.dumps(dict(inputs)))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Return the events as they come."""
        self._response = self._connection.getresponse()
        for line in self._response:
            if line.startswith(b"data: "):
                event: dict[str, Any] = json.loads(line[len(b"data: ") :])
                yield event

    def close(self) -> None:
        """Drop the connection, whatever is still to come."""
        if self._response is not None:
            self._response.close()
        self._connection.close()

    def __enter__(self) -> EventStream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def samples_of(event: Mapping[str, Any]) -> Samples:
    """Return the samples (S,) of one event; float32 survives the detour over decimals."""
    return np.atleast_1d(np.array(event["audio"], np.float32))
