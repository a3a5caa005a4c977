"""A small writer for ONNX graphs: named constants, nodes, inputs and outputs.

Opset 17 and IR version 8, so that the ONNX Runtime of every Triton container since 24.05 loads the
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8
MICROSOFT = "com.microsoft"
"""Domain of the ONNX Runtime's own operators."""
FLOAT = TensorProto.FLOAT
INT32 = TensorProto.INT32
MAX_BYTES = 2**31 - 1
"""Protocol buffers hold less than 2 GiB."""

Shape = Sequence[int | str]


class GraphWriter:
    """Collects nodes and initializers; every method returns the name of what it added."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._domains = {"": OPSET}

    def input(self, name: str, shape: Shape, dtype: int = FLOAT) -> str:
        """Declare a graph input; strings in `shape` are symbolic dimensions."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def output(self, name: str, shape: Shape, dtype: int = FLOAT) -> str:
        """Declare a graph output."""
        self._outputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def constant(self, name: str, value: npt.ArrayLike) -> str:
        """Add an initializer once; the same name again must mean the same value."""
        if name not in self._constants:
            array = np.ascontiguousarray(value)
            # ascontiguousarray makes scalars 1-D
            array = array.reshape(np.shape(value))
            self._constants[name] = numpy_helper.from_array(array, name)
        return name

    def integers(self, *values: int) -> str:
        """Return a 1-D int64 constant, shared between its users."""
        return self.constant("int64_" + "_".join(map(str, values)), np.array(values, np.int64))

    def node(
        self, operator: str, inputs: Sequence[str], output: str = "", domain: str = "", **attrs: Any
    ) -> str:
        """Add a node with one output; the output is named after operator and position."""
        return self.nodes(operator, inputs, [output or self._fresh(operator)], domain, **attrs)[0]

    def nodes(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        domain: str = "",
        **attrs: Any,
    ) -> Sequence[str]:
        """Add a node with several named outputs; an empty name leaves an output out."""
        if domain:
            self._domains[domain] = 1
        name = self._fresh(operator + "_node")
        node = helper.make_node(operator, inputs, outputs, name=name, domain=domain, **attrs)
        self._nodes.append(node)
        return outputs

    def _fresh(self, operator: str) -> str:
        return f"{operator}_{len(self._nodes)}"

    def serialize(self) -> bytes:
        """Return the model's bytes.

        Raises:
            ValueError: the model is larger than a single ONNX file can be.
        """
        graph = helper.make_graph(
            self._nodes, self._name, self._inputs, self._outputs, list(self._constants.values())
        )
        opsets = [helper.make_opsetid(domain, version) for domain, version in self._domains.items()]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="chattts-triton")
        model.ir_version = IR_VERSION
        size = model.ByteSize()
        if size > MAX_BYTES:
            raise ValueError(f"{self._name}: {size} bytes, a single ONNX file holds {MAX_BYTES}")
        data: bytes = model.SerializeToString(deterministic=True)
        return data
