"""Nodes that let an ONNX graph be run chunk by chunk over streams, each frame computed once.

A layer that looks at several frames needs the last frames of its input from the call before. All of
them are packed into one tensor, `state` in and `next_state` out, zeros at the start of a stream. A
layer's output lags behind its input by the layer's reach to the right, so the lags add up. What
stands outside a segment, as a mask tells, is zero at every layer: that is the layers' zero padding.
"""

from __future__ import annotations

import numpy as np
from onnx_graph import GraphWriter

END = np.iinfo(np.int64).max


class Stream:
    """The frames of B streams between the layers of a graph.

    A value is the name of either *frames* (batch, frames, width) or *rows* (rows, width). Rows are
    the frames of segments alone, of all streams: layers that look at one frame cost nothing else.

    Args:
        graph: Where to write.
        steps: Name of a (batch, steps) tensor, 1 for the steps of a segment and 0 for others.
        frames_per_step: Frames that one step becomes.
        max_lag: Largest lag, in frames, that a mask is asked for.
    """

    def __init__(self, graph: GraphWriter, steps: str, frames_per_step: int, max_lag: int) -> None:
        self.lag = 0
        """Frames by which the values are behind the input; whoever looks ahead adds its reach."""
        self.state_size = 0
        """Numbers in the state of one stream so far."""
        self._graph = graph
        self._max_lag = max_lag
        self._state = graph.input("state", ("batch", "state_size"))
        self._parts: list[str] = []
        self._indices: dict[int, str] = {}
        copies = [graph.node("Unsqueeze", [steps, graph.integers(2)])] * frames_per_step
        column = graph.node("Concat", copies, axis=2)
        column = graph.node("Reshape", [column, graph.integers(0, -1, 1)])
        self._shape = graph.node("Shape", [column], start=0, end=2)
        self._mask = self.extend(column, max_lag, 1)

    def mask(self, lag: int) -> str:
        """Return the mask as frames (batch, frames, 1), `lag` frames behind the input."""
        return self.cut(self._mask, self._max_lag - lag, -lag or END)

    def take(self, frames: str, width: int) -> str:
        """Return the rows of frames."""
        graph = self._graph
        flat = graph.node("Reshape", [frames, graph.integers(-1, width)])
        return graph.node("GatherND", [flat, self._where()])

    def spread(self, rows: str, width: int) -> str:
        """Return rows as frames, zero where no segment is."""
        graph = self._graph
        shape = graph.node("Concat", [self._shape, graph.integers(width)], axis=0)
        zeros = graph.node("ConstantOfShape", [shape])
        empty = graph.node("Reshape", [zeros, graph.integers(-1, width)])
        return graph.node("Reshape", [graph.node("ScatterND", [empty, self._where(), rows]), shape])

    def extend(self, frames: str, count: int, width: int) -> str:
        """Return frames with the `count` frames before them in front; keep the last for later."""
        graph = self._graph
        bounds = [graph.integers(self.state_size), graph.integers(self.state_size + count * width)]
        flat = graph.node("Slice", [self._state, *bounds, graph.integers(1)])
        before = graph.node("Reshape", [flat, graph.integers(0, count, width)])
        joined = graph.node("Concat", [before, frames], axis=1)
        last = self.cut(joined, -count, END)
        self._parts.append(graph.node("Reshape", [last, graph.integers(0, count * width)]))
        self.state_size += count * width
        return joined

    def cut(self, frames: str, start: int, end: int) -> str:
        """Return frames `start` to `end`; negative numbers count from the end."""
        graph = self._graph
        bounds = [graph.integers(start), graph.integers(end)]
        return graph.node("Slice", [frames, *bounds, graph.integers(1)])

    def finish(self) -> None:
        """Write the output `next_state`."""
        self._graph.node("Concat", self._parts, "next_state", axis=1)
        self._graph.output("next_state", ("batch", "state_size"))

    def _where(self) -> str:
        """Return the indices (rows, 1) of the rows among all frames, at the present lag."""
        if self.lag not in self._indices:
            graph = self._graph
            flat = graph.node("Reshape", [self.mask(self.lag), graph.integers(-1)])
            found = graph.node("NonZero", [flat])
            self._indices[self.lag] = graph.node("Transpose", [found], perm=(1, 0))
        return self._indices[self.lag]
