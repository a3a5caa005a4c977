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
from onnx import TensorProto, helper

OPSET = 17
IR_VERSION = 8
MICROSOFT = "com.microsoft"
"""Domain of the ONNX Runtime's own operators."""
FLOAT = TensorProto.FLOAT
INT8 = TensorProto.INT8
INT32 = TensorProto.INT32
MAX_BYTES = 2**31 - 1
"""Protocol buffers hold less than 2 GiB."""

Shape = Sequence[int | str]


class GraphWriter:
    """Collects nodes and initializers; every method returns the name of what it added."""

    def __init__(self, name: str) -> None:
        # filled in place: the helpers that assemble a model copy every weight several times
        self._model = onnx.ModelProto(
            ir_version=IR_VERSION,
            producer_name="chattts-triton",
            opset_import=[helper.make_opsetid("", OPSET)],
        )
        self._graph = self._model.graph
        self._graph.name = name
        self._constants: set[str] = set()

    def input(self, name: str, shape: Shape, dtype: int = FLOAT) -> str:
        """Declare a graph input; strings in `shape` are symbolic dimensions."""
        self._graph.input.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def output(self, name: str, shape: Shape, dtype: int = FLOAT) -> str:
        """Declare a graph output."""
        self._graph.output.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def constant(self, name: str, value: npt.ArrayLike) -> str:
        """Add an initializer once; the same name again must mean the same value."""
        if name not in self._constants:
            self._constants.add(name)
            array = np.asarray(value)
            self._graph.initializer.add(
                name=name,
                dims=array.shape,
                data_type=helper.np_dtype_to_tensor_dtype(array.dtype),
                raw_data=array.tobytes(),
            )
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
        if domain and all(opset.domain != domain for opset in self._model.opset_import):
            self._model.opset_import.append(helper.make_opsetid(domain, 1))
        name = self._fresh(operator + "_node")
        node = helper.make_node(operator, inputs, outputs, name=name, domain=domain, **attrs)
        self._graph.node.append(node)
        return outputs

    def _fresh(self, operator: str) -> str:
        return f"{operator}_{len(self._graph.node)}"

    def metadata(self, key: str, value: int) -> None:
        """Store a number that whoever runs the model needs to know."""
        self._model.metadata_props.add(key=key, value=str(value))

    def serialize(self) -> bytes:
        """Return the model's bytes.

        Raises:
            ValueError: the model is larger than a single ONNX file can be.
        """
        size = self._model.ByteSize()
        if size > MAX_BYTES:
            name = self._graph.name
            raise ValueError(f"{name}: {size} bytes, a single ONNX file holds {MAX_BYTES}")
        data: bytes = self._model.SerializeToString(deterministic=True)
        return data
