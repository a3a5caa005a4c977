"""Calls chattts_gpt directly over gRPC, as its contract in config.pbtxt says."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import tritonclient.grpc as triton
from numpy.typing import NDArray

MODEL = "chattts_gpt"
RESPONSE_LIMIT_S = 60.0

_KINDS: dict[str, tuple[str, Any]] = {
    "prompt": ("BYTES", np.object_),
    "speaker_embedding": ("FP16", np.float16),
    "audio_prompt_codes": ("INT32", np.int32),
    "mode": ("BYTES", np.object_),
    "temperature": ("FP32", np.float32),
    "top_p": ("FP32", np.float32),
    "top_k": ("INT32", np.int32),
    "repetition_penalty": ("FP32", np.float32),
    "min_new_tokens": ("INT32", np.int32),
    "max_new_tokens": ("INT32", np.int32),
    "seed": ("UINT64", np.uint64),
    "first_chunk_tokens": ("INT32", np.int32),
    "chunk_tokens": ("INT32", np.int32),
    "return_hidden": ("BOOL", np.bool_),
    "priority": ("INT32", np.int32),
    "deadline_ms": ("INT32", np.int32),
    "queue_deadline_ms": ("INT32", np.int32),
    "id": ("BYTES", np.object_),
    "cancel": ("BYTES", np.object_),
}


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """All responses of one request, joined."""

    codes: NDArray[np.int32]
    token_ids: NDArray[np.int32]
    hidden: NDArray[np.float32]
    finish_reason: str
    usage: list[int]
    chunk_sizes: list[int]


class Stream:
    """One bidirectional stream; its requests are answered in any order, by request id."""

    def __init__(self, url: str) -> None:
        self._client = triton.InferenceServerClient(url)
        self._responses: queue.Queue[tuple[Any, Any]] = queue.Queue()
        self._client.start_stream(lambda result, error: self._responses.put((result, error)))

    def send(self, request_id: str = "", **inputs: Any) -> None:
        """Send one request."""
        tensors = [as_tensor(name, value) for name, value in inputs.items()]
        self._client.async_stream_infer(MODEL, tensors, request_id=request_id)

    def next_response(self) -> Any:
        """Wait for the next response; an error response is raised."""
        result, error = self._responses.get(timeout=RESPONSE_LIMIT_S)
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """End the stream and the connection."""
        self._client.stop_stream()
        self._client.close()


@contextmanager
def open_stream(url: str) -> Iterator[Stream]:
    """A stream that is closed at the end."""
    stream = Stream(url)
    try:
        yield stream
    finally:
        stream.close()


def as_tensor(name: str, value: Any) -> triton.InferInput:
    """Turn a Python value into the named input."""
    datatype, kind = _KINDS[name]
    if isinstance(value, str):
        value = [value.encode()]
    array = np.atleast_1d(np.array(value, dtype=kind))
    tensor = triton.InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array)
    return tensor


def is_last(response: Any) -> bool:
    """Whether a response carries a finish reason."""
    return bool(response.as_numpy("finish_reason")[0])


def join(responses: list[Any]) -> Generated:
    """Concatenate the responses of one request."""

    def all_of(name: str) -> Any:
        return np.concatenate([response.as_numpy(name) for response in responses])

    last = responses[-1]
    return Generated(
        codes=all_of("codes"),
        token_ids=all_of("token_ids"),
        hidden=all_of("hidden"),
        finish_reason=last.as_numpy("finish_reason")[0].decode(),
        usage=last.as_numpy("usage").tolist(),
        chunk_sizes=[len(response.as_numpy("codes")) for response in responses],
    )


def generate(url: str, **inputs: Any) -> Generated:
    """Run one request to its end."""
    with open_stream(url) as stream:
        stream.send(**inputs)
        return join(read_all(stream.next_response))


def generate_together(url: str, requests: list[dict[str, Any]]) -> list[Generated]:
    """Run requests at the same time over one stream; results are in the order of the requests."""
    with open_stream(url) as stream:
        for number, inputs in enumerate(requests):
            stream.send(request_id=str(number), **inputs)
        responses: dict[str, list[Any]] = {str(number): [] for number in range(len(requests))}
        num_running = len(requests)
        while num_running:
            response = stream.next_response()
            responses[response.get_response().id].append(response)
            num_running -= is_last(response)
    return [join(responses[str(number)]) for number in range(len(requests))]


def read_all(next_response: Callable[[], Any]) -> list[Any]:
    """Collect responses until the last one of a single request."""
    responses = [next_response()]
    while not is_last(responses[-1]):
        responses.append(next_response())
    return responses
