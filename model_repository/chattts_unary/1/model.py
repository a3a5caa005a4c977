"""chattts_unary: the whole utterance of chattts in one response, for HTTP /infer and unary gRPC.

Version N asks version N of chattts.
"""

from __future__ import annotations

import asyncio  # noqa: F401  # Triton's stub does at the first request, which would wait 20 ms
import json
from collections.abc import Mapping, Sequence

import numpy as np
import triton_python_backend_utils as pb_utils

CHATTTS = "chattts"

# Asks chattts to begin its error messages with the code, which BLS in server 2.51 loses.
PARAMETERS = {"code_in_errors": True}


class TritonPythonModel:
    """Passes every input on; each instance speaks one request at a time."""

    def initialize(self, args: Mapping[str, str]) -> None:
        config = json.loads(args["model_config"])
        self._version = int(args["model_version"])
        self._input_names = [entry["name"] for entry in config["input"]]
        self._output_names = [entry["name"] for entry in config["output"]]

    def execute(
        self, requests: Sequence[pb_utils.InferenceRequest]
    ) -> list[pb_utils.InferenceResponse]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: pb_utils.InferenceRequest) -> pb_utils.InferenceResponse:
        try:
            call = self._call(request).exec(decoupled=True)
        except pb_utils.TritonModelException as error:
            return _failure("UNAVAILABLE", str(error))
        answer = _failure("INTERNAL", f"{CHATTTS} gave no answer")
        for response in call:
            if response.has_error():
                answer = _failed(response.error().message())
            elif response.output_tensors():
                answer = pb_utils.InferenceResponse(response.output_tensors())
        # Not for its answer: it returns when Triton's stub has forgotten the finished call, which
        # it does without Python's lock, so that `call` must not go before (see FinishedCalls of
        # chattts).
        request.is_cancelled()
        return answer

    def _call(self, request: pb_utils.InferenceRequest) -> pb_utils.InferenceRequest:
        tensors = {
            name: pb_utils.get_input_tensor_by_name(request, name) for name in self._input_names
        }
        tensors["stream"] = pb_utils.Tensor("stream", np.array([False]))
        return pb_utils.InferenceRequest(
            model_name=CHATTTS,
            model_version=self._version,
            request_id=request.request_id(),
            inputs=[tensor for tensor in tensors.values() if tensor is not None],
            requested_output_names=self._output_names,
            preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU),
            parameters=PARAMETERS,
        )


def _failed(message: str) -> pb_utils.InferenceResponse:
    """Turn an error message of chattts, "CODE: what", back into the error."""
    code, _, what = message.partition(": ")
    if not hasattr(pb_utils.TritonError, code):
        return _failure("INTERNAL", message)
    return _failure(code, what)


def _failure(code: str, message: str) -> pb_utils.InferenceResponse:
    error = pb_utils.TritonError(message, getattr(pb_utils.TritonError, code))
    return pb_utils.InferenceResponse(error=error)
