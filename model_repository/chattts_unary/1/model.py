"""chattts_unary: the whole utterance of chattts in one response, for HTTP /infer and unary gRPC.

Version N asks version N of chattts.
"""

from __future__ import annotations

import asyncio  # noqa: F401  # Triton's stub does at the first request, which would wait 20 ms
import json
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

CHATTTS = "chattts"

# Parameter of a caller who traces: W3C Trace Context.
TRACEPARENT = "traceparent"

CANCEL_POLL_S = 0.05
"""How often a waiting request looks whether its caller has gone."""


class TritonPythonModel:
    """Passes every input on; each instance speaks one request at a time."""

    def initialize(self, args: Mapping[str, str]) -> None:
        config = json.loads(args["model_config"])
        self._version = int(args["model_version"])
        self._input_names = [entry["name"] for entry in config["input"]]
        self._output_names = [entry["name"] for entry in config["output"]]
        self._thread = ThreadPoolExecutor(1, "speech")
        self._calls: list[object] = []

    def execute(
        self, requests: Sequence[pb_utils.InferenceRequest]
    ) -> list[pb_utils.InferenceResponse]:
        answers = []
        for request in requests:
            answers.append(self._answer(request))
            self._drop_finished_calls(request)
        return answers

    def _drop_finished_calls(self, request: pb_utils.InferenceRequest) -> None:
        """Drop the calls that Triton's stub has forgotten.

        It forgets a finished call without Python's lock, which must not free it (see FinishedCalls
        of chattts). An answer that the request is not cancelled has come through the same queue
        later; that it is, may only be remembered: then the calls wait for another request.
        """
        finished = len(self._calls)
        if not request.is_cancelled():
            del self._calls[:finished]

    def finalize(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    def _answer(self, request: pb_utils.InferenceRequest) -> pb_utils.InferenceResponse:
        """Let chattts speak, and stop it when the caller has gone."""
        stop_key = uuid.uuid4().hex
        tensors = {
            name: pb_utils.get_input_tensor_by_name(request, name) for name in self._input_names
        }
        tensors["stream"] = pb_utils.Tensor("stream", np.array([False]))
        inputs = [tensor for tensor in tensors.values() if tensor is not None]
        # chattts begins its error messages with the code, which BLS in server 2.51 loses
        parameters = {"code_in_errors": True, "stop_key": stop_key}
        given = json.loads(request.parameters() or "{}")
        if TRACEPARENT in given:
            parameters[TRACEPARENT] = str(given[TRACEPARENT])
        # the trace is there as long as the request, which is not answered before the speech ends
        speech = self._thread.submit(
            self._ask, inputs, parameters, request.request_id(), request.trace()
        )
        while wait([speech], CANCEL_POLL_S).not_done:
            if request.is_cancelled():
                # again until it ends: the first one may overtake the request
                nothing = pb_utils.Tensor("text", np.array([b""], np.object_))
                self._ask([nothing], {"stop": stop_key})
        return speech.result()

    def _ask(
        self,
        inputs: list[pb_utils.Tensor],
        parameters: Mapping[str, Any],
        request_id: str = "",
        trace: pb_utils.InferenceTrace | None = None,
    ) -> pb_utils.InferenceResponse:
        """Make one call of chattts, which answers it once; perhaps as part of a trace."""
        traced: dict[str, Any] = {"trace": trace} if trace else {}
        request = pb_utils.InferenceRequest(
            model_name=CHATTTS,
            model_version=self._version,
            request_id=request_id,
            inputs=inputs,
            requested_output_names=self._output_names,
            preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU),
            parameters=dict(parameters),
            **traced,
        )
        try:
            call = request.exec(decoupled=True)
        except pb_utils.TritonModelException as error:
            return _failure("UNAVAILABLE", str(error))
        self._calls.append(call)
        (response,) = call
        if response.has_error():
            return _failed(response.error().message())
        return pb_utils.InferenceResponse(response.output_tensors())


def _failed(message: str) -> pb_utils.InferenceResponse:
    """Turn an error message of chattts, "CODE: what", back into the error."""
    code, _, what = message.partition(": ")
    if not hasattr(pb_utils.TritonError, code):
        return _failure("INTERNAL", message)
    return _failure(code, what)


def _failure(code: str, message: str) -> pb_utils.InferenceResponse:
    error = pb_utils.TritonError(message, getattr(pb_utils.TritonError, code))
    return pb_utils.InferenceResponse(error=error)
