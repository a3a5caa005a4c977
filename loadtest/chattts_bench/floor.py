"""Floor: how fast this machine could run a step if only memory or only arithmetic counted.

A step must at least read every weight once and the keys and values of each sequence's context
(bytes over read bandwidth), and do two operations per weight and sequence (operations over the rate
of large matrix products of the layers' shapes). The larger of the two times is the floor.
"""

from __future__ import annotations

import functools
import mmap
import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray

from .built import Built

_REPETITIONS = 5
_GEMM_ROWS = 256
"""Rows of the measured products: enough for the rate of a machine-filling product."""
_ITEM_BYTES = {onnx.TensorProto.FLOAT: 4, onnx.TensorProto.FLOAT16: 2}
_READERS: tuple[Callable[[NDArray[np.uint64]], object], ...] = (
    np.bitwise_or.reduce,
    np.max,
    lambda part: part.view(np.float32).sum(),
)


@dataclass(frozen=True, slots=True)
class Machine:
    """Rates measured in this run, with `num_threads` threads."""

    num_threads: int
    read_bytes_per_s: float
    """Best of several reductions over an array much larger than the caches, on huge pages."""
    small_page_read_bytes_per_s: float
    """The same over 4 KiB pages, which is what an allocator gives unless it is told otherwise."""
    fp32_ops_per_s: float
    int8_ops_per_s: float
    """Multiplications and additions of matrix products, best of several."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """What one decode step of a built repository has to move and to compute."""

    precision: str
    weight_bytes: int
    num_weights: int
    kv_bytes_per_token: int

    @classmethod
    def of(cls, built: Built) -> StepCost:
        """Read the cost from the graphs that a step runs."""
        gpt, weights = built.gpt, built.weights
        hidden, layers = gpt["hidden_size"], gpt["num_layers"]
        files = [*weights.glob("gpt.onnx*"), *weights.glob("code_head.onnx*")]
        per_layer = 4 * hidden * hidden + 3 * hidden * gpt["intermediate_size"]
        head = gpt["num_codebooks"] * gpt["num_audio_tokens"] * hidden
        return cls(
            precision=built.precision,
            weight_bytes=sum(file.stat().st_size for file in files),
            num_weights=layers * per_layer + head,
            kv_bytes_per_token=2 * layers * hidden * _kv_item_bytes(weights / "gpt.onnx"),
        )

    def floor_s(self, machine: Machine, batch: int, context: float) -> float:
        """Seconds that a step of `batch` sequences with `context` positions each cannot beat."""
        return max(self.memory_floor_s(machine, batch, context), self._compute_s(machine, batch))

    def memory_floor_s(
        self, machine: Machine, batch: int, context: float, on_small_pages: bool = False
    ) -> float:
        """Seconds that reading the weights, keys and values takes at the measured bandwidth."""
        num_bytes = self.weight_bytes + batch * context * self.kv_bytes_per_token
        if on_small_pages:
            return num_bytes / machine.small_page_read_bytes_per_s
        return num_bytes / machine.read_bytes_per_s

    def _compute_s(self, machine: Machine, batch: int) -> float:
        is_float = self.precision == "fp32"
        rate = machine.fp32_ops_per_s if is_float else machine.int8_ops_per_s
        return 2 * batch * self.num_weights / rate


class MachineMeter:
    """Measures the machine again and again during a run, since a shared one changes its pace."""

    def __init__(self, num_bytes: int, built: Built) -> None:
        """Prepare the array and the products.

        Args:
            num_bytes: size of the array that is read; much larger than the last cache.
            built: its layers' shapes are those of the products.
        """
        self.num_threads = len(os.sched_getaffinity(0))
        self.measured: list[Machine] = []
        self._arrays = {
            advice: _array(num_bytes, advice)
            for advice in (mmap.MADV_HUGEPAGE, mmap.MADV_NOHUGEPAGE)
        }
        hidden, intermediate = built.gpt["hidden_size"], built.gpt["intermediate_size"]
        shapes = [
            (hidden, 3 * hidden),
            (hidden, hidden),
            (hidden, 2 * intermediate),
            (intermediate, hidden),
        ]
        self._num_operations = 2 * _GEMM_ROWS * sum(depth * width for depth, width in shapes)
        self._products = {
            precision: _Products(precision, shapes, self.num_threads)
            for precision in ("fp32", "int8")
        }

    def measure(self) -> None:
        """Take one measurement: the best of several of each rate."""
        rates = {
            precision: self._num_operations / _best_s(products.run, _REPETITIONS)
            for precision, products in self._products.items()
        }
        self.measured.append(
            Machine(
                self.num_threads,
                self._read_rate(mmap.MADV_HUGEPAGE),
                self._read_rate(mmap.MADV_NOHUGEPAGE),
                rates["fp32"],
                rates["int8"],
            )
        )

    def _read_rate(self, advice: int) -> float:
        """Bytes per second in which all threads together read an array; best of several."""
        array = self._arrays[advice]
        parts = np.array_split(array, self.num_threads)
        with ThreadPoolExecutor(self.num_threads) as pool:
            best_s = min(
                _best_s(functools.partial(_exhaust, pool, read, parts), _REPETITIONS)
                for read in _READERS
            )
        return array.nbytes / best_s

    def median(self) -> Machine:
        """Return the medians of all measurements."""
        return Machine(
            self.num_threads,
            statistics.median(one.read_bytes_per_s for one in self.measured),
            statistics.median(one.small_page_read_bytes_per_s for one in self.measured),
            statistics.median(one.fp32_ops_per_s for one in self.measured),
            statistics.median(one.int8_ops_per_s for one in self.measured),
        )


def _array(num_bytes: int, advice: int) -> NDArray[np.uint64]:
    """Return an array of ones on pages of the advised kind."""
    memory = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(advice)
    array = np.frombuffer(memory, dtype=np.uint64)
    array[:] = 1
    return array


def _exhaust(
    pool: ThreadPoolExecutor,
    read: Callable[[NDArray[np.uint64]], object],
    parts: Sequence[NDArray[np.uint64]],
) -> None:
    """Read each part on a thread of its own."""
    list(pool.map(read, parts))


def _best_s(call: Callable[[], object], repetitions: int) -> float:
    """Seconds of the fastest of several calls."""
    best_s = float("inf")
    for _ in range(repetitions):
        started = time.perf_counter()
        call()
        best_s = min(best_s, time.perf_counter() - started)
    return best_s


def _kv_item_bytes(graph: Path) -> int:
    model = onnx.load(graph, load_external_data=False)
    past = next(value for value in model.graph.input if value.name.startswith("past_"))
    return _ITEM_BYTES.get(past.type.tensor_type.elem_type, 1)


class _Products:
    """One layer's four matrix products; int8 is unsigned times signed, summed in int32."""

    def __init__(self, precision: str, shapes: list[tuple[int, int]], num_threads: int) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = num_threads
        # A meter that spins between its measurements would slow down what is measured.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        graph = _products(precision, shapes).SerializeToString()
        self._session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        kind = np.float32 if precision == "fp32" else np.uint8
        self._feeds = {
            f"rows_{number}": np.ones((_GEMM_ROWS, depth), dtype=kind)
            for number, (depth, _) in enumerate(shapes)
        }

    def run(self) -> None:
        """Compute all of them once."""
        self._session.run(None, self._feeds)


def _products(precision: str, shapes: list[tuple[int, int]]) -> onnx.ModelProto:
    """One graph of independent products of the given weight shapes."""
    is_float = precision == "fp32"
    kind = onnx.TensorProto.FLOAT if is_float else onnx.TensorProto.UINT8
    result = onnx.TensorProto.FLOAT if is_float else onnx.TensorProto.INT32
    draw = np.random.default_rng(0)
    nodes, inputs, outputs, weights = [], [], [], []
    for number, (depth, width) in enumerate(shapes):
        rows, weight, out = f"rows_{number}", f"weight_{number}", f"out_{number}"
        inputs.append(onnx.helper.make_tensor_value_info(rows, kind, [_GEMM_ROWS, depth]))
        outputs.append(onnx.helper.make_tensor_value_info(out, result, [_GEMM_ROWS, width]))
        values = draw.integers(-127, 128, (depth, width))
        array = values.astype(np.float32 if is_float else np.int8)
        weights.append(onnx.numpy_helper.from_array(array, weight))
        operator = "MatMul" if is_float else "MatMulInteger"
        nodes.append(onnx.helper.make_node(operator, [rows, weight], [out]))
    graph = onnx.helper.make_graph(nodes, "products", inputs, outputs, weights)
    opset = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
