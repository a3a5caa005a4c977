"""chattts_unary: the whole utterance of chattts in one response, for HTTP /infer and unary gRPC."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils

CHATTTS = "chattts"


class TritonPythonModel:
    """Passes every input on; one request at a time per instance."""

    def initialize(self, args):
        config = json.loads(args["model_config"])
        self._input_names = [entry["name"] for entry in config["input"]]
        self._output_names = [entry["name"] for entry in config["output"]]

    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        response = None
        try:
            for response in self._call(request).exec(decoupled=True):
                print("DEBUG", response.has_error() and (response.error().code(), response.error().message()), flush=True)
                if response.has_error():
                    return pb_utils.InferenceResponse(error=response.error())
                if response.output_tensors():
                    answer = pb_utils.InferenceResponse(response.output_tensors())
            return answer
        except pb_utils.TritonModelException as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error)))

    def _call(self, request):
        tensors = {
            name: pb_utils.get_input_tensor_by_name(request, name) for name in self._input_names
        }
        tensors["stream"] = pb_utils.Tensor("stream", np.array([False]))
        return pb_utils.InferenceRequest(
            model_name=CHATTTS,
            request_id=request.request_id(),
            inputs=[tensor for tensor in tensors.values() if tensor is not None],
            requested_output_names=self._output_names,
            preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU),
        )
