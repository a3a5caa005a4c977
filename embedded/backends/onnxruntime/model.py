"""Stand-in for Triton's onnxruntime backend, as a Python-based backend of the same name.

The server of the nvidia-pytriton wheel has no C++ onnxruntime backend. With this file the same
config.pbtxt loads there: same model file, batch dimension, `parameters` and graph level; tensors
are checked against the graph when the model loads; requests that Triton's dynamic batcher merged
run as one call. CPU only. Imports nothing of this project.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import triton_python_backend_utils as pb_utils

Tensors = dict[str, np.ndarray[Any, Any]]

_ONNX_TYPES = {
    "TYPE_BOOL": "tensor(bool)",
    "TYPE_UINT8": "tensor(uint8)",
    "TYPE_UINT16": "tensor(uint16)",
    "TYPE_UINT32": "tensor(uint32)",
    "TYPE_UINT64": "tensor(uint64)",
    "TYPE_INT8": "tensor(int8)",
    "TYPE_INT16": "tensor(int16)",
    "TYPE_INT32": "tensor(int32)",
    "TYPE_INT64": "tensor(int64)",
    "TYPE_FP16": "tensor(float16)",
    "TYPE_FP32": "tensor(float)",
    "TYPE_FP64": "tensor(double)",
}
_GRAPH_LEVELS = {
    -1: ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    1: ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    2: ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Parameters:
    """The entries of `parameters` that the C++ backend reads too, and `nice`, which it ignores;
    others are ignored, as there."""

    values: dict[str, str]

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Parameters:
        entries = config.get("parameters", {})
        return cls({key: entry["string_value"] for key, entry in entries.items()})

    def integer(self, key: str, allowed: range) -> int:
        """Return the value, 0 where it is not set; ValueError outside `allowed`."""
        text = self.values.get(key, "0")
        try:
            value = int(text)
        except ValueError:
            value = -1
        if value not in allowed:
            raise ValueError(f"{key}: {text!r} is outside {allowed.start} ... {allowed.stop - 1}")
        return value

    def flag(self, key: str) -> bool:
        """Return the value, true where it is not set."""
        text = self.values.get(key, "true")
        if text.lower() not in _BOOLEANS:
            raise ValueError(f"{key}: {text!r} is neither true nor false")
        return _BOOLEANS[text.lower()]


def session_options(config: dict[str, Any]) -> ort.SessionOptions:
    """Translate a model configuration into session options."""
    parameters = Parameters.from_config(config)
    threads = range(1025)
    options = ort.SessionOptions()
    options.intra_op_num_threads = parameters.integer("intra_op_thread_count", threads)
    options.inter_op_num_threads = parameters.integer("inter_op_thread_count", threads)
    if parameters.integer("execution_mode", range(2)):
        options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    options.enable_cpu_mem_arena = parameters.flag("enable_mem_arena")
    options.enable_mem_pattern = parameters.flag("enable_mem_pattern")
    level = int(config.get("optimization", {}).get("graph", {}).get("level", 0))
    options.graph_optimization_level = _GRAPH_LEVELS.get(
        level, ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    )
    return options


def model_file(config: dict[str, Any], version_directory: Path) -> Path:
    """Return the ONNX file; FileNotFoundError if there is none."""
    path = version_directory / (config.get("default_model_filename") or "model.onnx")
    if path.is_dir():
        path = path / "model.onnx"
    if not path.is_file():
        raise FileNotFoundError(f"unable to find {str(path)!r} for model {config['name']!r}")
    return path


def check_tensors(
    kind: str, configured: Sequence[dict[str, Any]], graph: Sequence[ort.NodeArg], has_batch: bool
) -> None:
    """Compare names, types, ranks and fixed sizes of a configuration with the graph's.

    Inputs must be the same set; outputs of the graph may be left out of the configuration.

    Raises:
        ValueError: naming the tensor and both sides.
    """
    in_graph = {node.name: node for node in graph}
    for entry in configured:
        name = entry["name"]
        if name not in in_graph:
            known = ", ".join(in_graph)
            raise ValueError(f"{kind} {name!r} is not in the graph, which has: {known}")
        _check_tensor(kind, entry, in_graph[name], has_batch)
    missing = set(in_graph) - {entry["name"] for entry in configured}
    if kind == "input" and missing:
        raise ValueError(f"the configuration lacks graph input {', '.join(sorted(missing))}")


def _check_tensor(kind: str, entry: dict[str, Any], node: ort.NodeArg, has_batch: bool) -> None:
    name = entry["name"]
    if _ONNX_TYPES.get(entry["data_type"]) != node.type:
        raise ValueError(f"{kind} {name!r}: {entry['data_type']} does not fit {node.type}")
    if "reshape" in entry:
        raise ValueError(f"{kind} {name!r}: this onnxruntime backend has no reshape")
    dims = [int(size) for size in entry["dims"]]
    expected = [-1, *dims] if has_batch else dims
    actual = [size if isinstance(size, int) else -1 for size in node.shape]
    if has_batch and actual and actual[0] != -1:
        raise ValueError(f"{kind} {name!r}: max_batch_size > 0 needs a free first dimension")
    is_fit = len(expected) == len(actual) and all(
        -1 in pair or pair[0] == pair[1] for pair in zip(expected, actual, strict=True)
    )
    if not is_fit:
        raise ValueError(f"{kind} {name!r}: dims {expected} do not fit the graph's {node.shape}")


class TritonPythonModel:
    """One instance: one session."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        self._max_batch_size = config["max_batch_size"]
        # of this thread, which runs the session, and of those that it starts
        os.nice(Parameters.from_config(config).integer("nice", range(20)))
        path = model_file(config, Path(args["model_repository"]) / args["model_version"])
        self._session = ort.InferenceSession(
            str(path), session_options(config), providers=["CPUExecutionProvider"]
        )
        # reading the model leaves the heap with free memory, as much as half the weights
        ctypes.CDLL(None).malloc_trim(0)
        has_batch = self._max_batch_size > 0
        check_tensors("input", config["input"], self._session.get_inputs(), has_batch)
        check_tensors("output", config["output"], self._session.get_outputs(), has_batch)
        self._inputs = [entry["name"] for entry in config["input"]]
        self._outputs = [entry["name"] for entry in config["output"]]
        if args["model_instance_kind"] == "GPU":
            pb_utils.Logger.log_warn(f"{config['name']}: this onnxruntime backend runs on the CPU")

    def execute(
        self, requests: Sequence[pb_utils.InferenceRequest]
    ) -> list[pb_utils.InferenceResponse]:
        feeds = [self._feed(request) for request in requests]
        results: dict[int, Tensors | Exception] = {}
        for group in self._mergeable(feeds):
            results |= zip(group, self._run([feeds[index] for index in group]), strict=True)
        return [self._response(request, results[i]) for i, request in enumerate(requests)]

    def _feed(self, request: pb_utils.InferenceRequest) -> Tensors:
        return {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}

    def _mergeable(self, feeds: Sequence[Tensors]) -> list[list[int]]:
        """Group the requests whose tensors can be joined along the batch dimension."""
        if self._max_batch_size == 0:
            return [[index] for index in range(len(feeds))]

        def item_shapes(index: int) -> list[tuple[int, ...]]:
            return [feeds[index][name].shape[1:] for name in self._inputs]

        ordered = sorted(range(len(feeds)), key=item_shapes)
        return [list(group) for _, group in groupby(ordered, key=item_shapes)]

    def _run(self, feeds: Sequence[Tensors]) -> list[Tensors | Exception]:
        """Run requests as one batch; if that fails, one by one, so that only the culprit fails."""
        try:
            return self._run_merged(feeds)
        except Exception as error:
            if len(feeds) == 1:
                return [error]
            return [result for feed in feeds for result in self._run([feed])]

    def _run_merged(self, feeds: Sequence[Tensors]) -> list[Tensors | Exception]:
        """Return the outputs per request; ValueError if the graph's batch sizes do not add up."""
        merged = feeds[0]
        if len(feeds) > 1:
            merged = {name: np.concatenate([feed[name] for feed in feeds]) for name in feeds[0]}
        arrays = self._session.run(self._outputs, merged)
        outputs = dict(zip(self._outputs, arrays, strict=True))
        if self._max_batch_size == 0:
            return [outputs]
        sizes = [len(feed[self._inputs[0]]) for feed in feeds]
        for name, array in outputs.items():
            if len(array) != sum(sizes):
                raise ValueError(
                    f"output {name!r} has batch size {len(array)}, the inputs have {sum(sizes)}"
                )
        edges = np.cumsum(sizes)[:-1]
        split = {name: np.split(array, edges) for name, array in outputs.items()}
        return [{name: parts[i] for name, parts in split.items()} for i in range(len(feeds))]

    def _response(
        self, request: pb_utils.InferenceRequest, result: Tensors | Exception
    ) -> pb_utils.InferenceResponse:
        if isinstance(result, Exception):
            message = f"onnx runtime error: {result}"
            error = pb_utils.TritonError(message, pb_utils.TritonError.INTERNAL)
            return pb_utils.InferenceResponse(error=error)
        wanted = request.requested_output_names()
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor(name, array) for name, array in result.items() if name in wanted]
        )
