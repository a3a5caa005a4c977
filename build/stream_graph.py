"""Nodes that let an ONNX graph be run chunk by chunk: what each layer saw last, and a mask.

A convolution over a stream needs the last frames of its input from the call before. All of them are
packed into one tensor, `state` in and `next_state` out, zeros at the start of a stream. A layer's
output lags behind its input by the layer's reach to the right, so the lags add up along the chain.
"""

from __future__ import annotations

import numpy as np
from onnx_graph import GraphWriter

END = np.iinfo(np.int64).max


class StreamState:
    """Packs and unpacks the state. Values are names of (batch, frames, width) tensors."""

    def __init__(self, graph: GraphWriter) -> None:
        self.size = 0
        """Numbers in one row of the state so far."""
        self._graph = graph
        self._input = graph.input("state", ("batch", "state_size"))
        self._parts: list[str] = []

    def extend(self, value: str, frames: int, width: int) -> str:
        """Return `value` with the `frames` frames before it put in front; keep the last for later.

        The result has `frames` frames more than `value`.
        """
        graph = self._graph
        bounds = [graph.integers(self.size), graph.integers(self.size + frames * width)]
        flat = graph.node("Slice", [self._input, *bounds, graph.integers(1)])
        before = graph.node("Reshape", [flat, graph.integers(0, frames, width)])
        joined = graph.node("Concat", [before, value], axis=1)
        last = cut(graph, joined, -frames, END)
        self._parts.append(graph.node("Reshape", [last, graph.integers(0, frames * width)]))
        self.size += frames * width
        return joined

    def finish(self) -> None:
        """Write the output `next_state`."""
        self._graph.node("Concat", self._parts, "next_state", axis=1)
        self._graph.output("next_state", ("batch", "state_size"))


class FrameMask:
    """Says which frames belong to the segment, at any lag up to `max_lag` frames.

    Args:
        graph: Where to write.
        state: Keeps the last frames of the mask.
        steps: Name of a (batch, steps) tensor, 1 for the steps of the segment and 0 for others.
        frames_per_step: Frames that one step becomes.
        max_lag: Largest lag that is asked for.
    """

    def __init__(
        self, graph: GraphWriter, state: StreamState, steps: str, frames_per_step: int, max_lag: int
    ) -> None:
        self._graph = graph
        self._max_lag = max_lag
        copies = [graph.node("Unsqueeze", [steps, graph.integers(2)])] * frames_per_step
        frames = graph.node("Concat", copies, axis=2)
        column = graph.node("Reshape", [frames, graph.integers(0, -1, 1)])
        self._joined = state.extend(column, max_lag, 1)
        self._at: dict[int, str] = {}

    def at(self, lag: int) -> str:
        """Return the mask (batch, frames, 1) of the frames `lag` before the newest ones."""
        if lag not in self._at:
            self._at[lag] = cut(self._graph, self._joined, self._max_lag - lag, -lag or END)
        return self._at[lag]


def cut(graph: GraphWriter, value: str, start: int, end: int) -> str:
    """Return frames `start` to `end` of a (batch, frames, width) tensor; negative: from the end."""
    bounds = [graph.integers(start), graph.integers(end)]
    return graph.node("Slice", [value, *bounds, graph.integers(1)])
