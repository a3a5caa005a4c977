"""The models behind chattts, called through Triton (BLS)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import triton_python_backend_utils as pb_utils
from chattts_pipeline import (
    FinishedCalls,
    SpeechError,
    Tensors,
    TokenChunk,
    VocoderChunk,
    child_error,
)

Answer = TypeVar("Answer")


class TokenModel:
    """chattts_gpt through BLS: each chunk is a call of its own with one response.

    Reading several responses of one call is not safe in server 2.51: a thread that waits for the
    second takes two locks in the other order than the thread that makes the next call.
    """

    NAME = "chattts_gpt"
    OUTPUTS = ("hidden", "codes", "token_ids", "finish_reason", "usage")

    def __init__(self, version: int, finished_calls: FinishedCalls) -> None:
        self._version = version
        self._finished_calls = finished_calls

    def generate(self, inputs: Tensors) -> Iterator[TokenChunk]:
        """Run one request; raises SpeechError."""
        chunk = self._call({**inputs, "pull": np.array([True])})
        while not chunk.finish_reason:
            yield chunk
            chunk = self._call({"next": inputs["id"]})
        yield chunk

    def cancel(self, request_id: str) -> None:
        """Stop a request; one that has ended is no error."""
        self._call({"cancel": _bytes(request_id)})

    def _call(self, inputs: Tensors) -> TokenChunk:
        request = _bls_request(self.NAME, self._version, inputs, self.OUTPUTS)
        call = _exec(self.NAME, lambda: request.exec(decoupled=True))
        try:
            (response,) = call
        finally:
            self._finished_calls.add(call)
        _raise_error(self.NAME, response)
        outputs = {name: _output(response, name) for name in self.OUTPUTS}
        _, _, queue_ms, num_retries, mean_batch = outputs.pop("usage").tolist()
        finish_reason = outputs.pop("finish_reason")[0].decode()
        return TokenChunk(
            **outputs,
            finish_reason=finish_reason,
            queue_ms=queue_ms,
            num_retries=num_retries,
            mean_batch=mean_batch / 100,
        )


class Vocoder:
    """chattts_vocoder through BLS, one chunk per call; Triton batches the calls.

    A batch that the runtime refuses is an error for each request in it. So a call that fails in the
    runtime is made again, which its state allows, and one at a time: what failed together does not
    meet again, and that it meets the first call of another culprit each time is unlikely.
    """

    NAME = "chattts_vocoder"
    RUNTIME_ERROR = "onnx runtime error"
    """In the messages of the onnxruntime backend, and of its stand-in; not if a process died."""
    NUM_RETRIES = 3
    _retry = threading.Lock()

    def __init__(self, version: int) -> None:
        self._version = version

    def decode(
        self, chunk: VocoderChunk
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return samples (C * P,) and the next state of one chunk; raises SpeechError."""
        try:
            return self._call(chunk)
        except SpeechError as error:
            failure = error
        for _ in range(self.NUM_RETRIES):
            if self.RUNTIME_ERROR not in failure.message:
                break
            pb_utils.Logger.log_warn(f"chattts: tried again: {failure.message}")
            try:
                with self._retry:
                    return self._call(chunk)
            except SpeechError as error:
                failure = error
        raise failure

    def _call(self, chunk: VocoderChunk) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        inputs = {"hidden": chunk.hidden, "mask": chunk.mask, "state": chunk.state}
        rows = {name: array[np.newaxis] for name, array in inputs.items()}
        request = _bls_request(self.NAME, self._version, rows, ["audio", "next_state"])
        response = _exec(self.NAME, request.exec)
        _raise_error(self.NAME, response)
        return _output(response, "audio")[0], _output(response, "next_state")[0]


def _exec(model: str, call: Callable[[], Answer]) -> Answer:
    try:
        return call()
    except pb_utils.TritonModelException as error:
        raise child_error(model, str(error)) from error


def _bls_request(
    model: str, version: int, inputs: Tensors, outputs: Sequence[str]
) -> pb_utils.InferenceRequest:
    tensors = [pb_utils.Tensor(name, np.ascontiguousarray(array)) for name, array in inputs.items()]
    return pb_utils.InferenceRequest(
        model_name=model,
        model_version=version,
        inputs=tensors,
        requested_output_names=list(outputs),
        preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU),
    )


def _raise_error(model: str, response: pb_utils.InferenceResponse) -> None:
    if response.has_error():
        raise child_error(model, response.error().message())


def _output(response: pb_utils.InferenceResponse, name: str) -> npt.NDArray[Any]:
    """Copy an output: its memory goes back to Triton with the response."""
    tensor = pb_utils.get_output_tensor_by_name(response, name)
    if tensor is None:
        raise SpeechError("INTERNAL", f"output {name} is missing")
    return tensor.as_numpy().copy()


def _bytes(text: str) -> npt.NDArray[np.object_]:
    return np.array([text.encode()], np.object_)
