"""Two small models for tests of the server itself, and how to call them."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tritonclient.grpc as triton
from onnx import TensorProto, helper, numpy_helper

DEADLINE_S = 30.0
SCALE = np.array([1.0, 2.0, 4.0], np.float32)

SCALED_CONFIG = """
name: "scaled"
backend: "onnxruntime"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
dynamic_batching { max_queue_delay_microseconds: 200000 }
instance_group [ { count: 1 kind: KIND_AUTO } ]
parameters [ { key: "intra_op_thread_count" value: { string_value: "1" } } ]
"""
SLEEPER_CONFIG = """
name: "sleeper"
backend: "python"
max_batch_size: 0
input [ { name: "seconds" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "facts" data_type: TYPE_STRING dims: [ 1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""
SLEEPER_MODEL = """
import json, os, sys, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        seconds = pb_utils.get_input_tensor_by_name(request, "seconds").as_numpy()[0]
        if seconds:
            print("sleeping", flush=True)
        time.sleep(float(seconds))
        facts = {"prefix": sys.prefix, "version": sys.version, "path": sys.path,
                 "cwd": sorted(os.listdir(os.getcwd())), "environment": dict(os.environ)}
        array = np.array([json.dumps(facts)], dtype=object)
        return pb_utils.InferenceResponse([pb_utils.Tensor("facts", array)])
"""


def write_scaled(repository: Path, config: str = SCALED_CONFIG) -> Path:
    """y (B, N, 3) = x (B, N, 3) * SCALE; a last dimension other than 3 or 1 is an error."""
    version = repository / "scaled" / "1"
    version.mkdir(parents=True)
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "scale"], ["y"])],
        "scaled",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "n", "size"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "n", "size"])],
        [numpy_helper.from_array(SCALE, "scale")],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), version / "model.onnx")
    (repository / "scaled" / "config.pbtxt").write_text(config)
    return repository


def write_sleeper(repository: Path, code: str = SLEEPER_MODEL) -> Path:
    """Sleep for the given seconds, then tell facts about the process as JSON."""
    version = repository / "sleeper" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(code)
    (repository / "sleeper" / "config.pbtxt").write_text(SLEEPER_CONFIG)
    return repository


def write_repository(folder: Path) -> Path:
    """Write both models."""
    return write_sleeper(write_scaled(folder))


def tensor(name: str, array: np.ndarray) -> triton.InferInput:
    """Wrap a float32 array."""
    given = triton.InferInput(name, array.shape, "FP32")
    given.set_data_from_numpy(array)
    return given


def infer_together(
    client: triton.InferenceServerClient, arrays: Sequence[np.ndarray]
) -> list[np.ndarray | Exception]:
    """Send all at once to `scaled`; return outputs or errors in the order of `arrays`."""
    answers: queue.Queue[tuple[int, np.ndarray | Exception]] = queue.Queue()
    for index, array in enumerate(arrays):

        def done(result: Any, error: Exception | None, index: int = index) -> None:
            answers.put((index, error or result.as_numpy("y")))

        client.async_infer("scaled", [tensor("x", array)], done, client_timeout=DEADLINE_S)
    return [value for _, value in sorted(answers.get(timeout=DEADLINE_S) for _ in arrays)]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Poll until `condition` holds; fail, saying `what` was not reached, after DEADLINE_S."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not reached: {what}"
        time.sleep(0.02)
