"""DecodeBatch: the fixed tensors of a decode step, and the two steps that read and write them.

Sizes and addresses never change, so a CUDA graph can hold a step: it is captured once and replayed
as often as wanted. Rows that no sequence fills are padding, position -1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as SequenceOf
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .sampler import NO_TOKEN, SamplingRows
from .sequence import PENALTY_WINDOW, Sequence
from .torch_network import Network
from .torch_sampler import DrawState, draw

NO_POSITION = -1


class DecodeBatch:
    """Up to `size` sequences on the device."""

    def __init__(
        self,
        network: Network,
        size: int,
        max_blocks: int,
        max_steps: int,
        use_cuda_graphs: bool,
    ) -> None:
        """Allocate, and run both steps on padding, so that what fails fails now.

        Args:
            network: computes the steps.
            size: rows, padding included.
            max_blocks: longest block table.
            max_steps: steps whose results are kept at most.
            use_cuda_graphs: capture the steps, on a CUDA device.
        """
        self.size = size
        self._network = network
        self._is_cuda = network.device.type == "cuda"
        gpt = network.gpt
        rows = size * gpt.num_codebooks
        self._end_token = gpt.end_of_speech

        def buffer(*shape: int, dtype: torch.dtype = torch.int64, fill: int = 0) -> _Buffer:
            return _Buffer(torch.full(shape, fill, dtype=dtype), network.device)

        self._tables = buffer(size, max_blocks, dtype=torch.int32)
        self._positions = buffer(size, dtype=torch.int32, fill=NO_POSITION)
        self._limits = buffer(size, dtype=torch.int32)
        self._inputs = buffer(size, gpt.hidden_size, dtype=torch.float32)
        self._tokens = buffer(size, gpt.num_codebooks)
        self._knobs: dict[str, _Buffer] = {
            "temperature": buffer(rows, dtype=torch.float32, fill=1),
            "outside_mass": buffer(rows, dtype=torch.float32),
            "top_k": buffer(rows, fill=1),
            "repetition_penalty": buffer(rows, dtype=torch.float32, fill=1),
            "history": buffer(rows, PENALTY_WINDOW, fill=NO_TOKEN),
            "min_new_tokens": buffer(rows),
            "seeds": buffer(rows),
            "steps": buffer(rows),
            "codebooks": buffer(rows),
        }
        self._state = DrawState(**{name: knob.tensor for name, knob in self._knobs.items()})
        self._hidden = buffer(size, gpt.hidden_size, dtype=torch.float32)
        self._kept_tokens = buffer(max_steps, size, gpt.num_codebooks)
        self._kept_hidden = buffer(max_steps, size, gpt.hidden_size, dtype=torch.float32)
        self._compute_step = self._ready(self._compute, use_cuda_graphs)
        self._draw_step = self._ready(self._compute_and_draw, use_cuda_graphs)

    def compute(
        self, sequences: SequenceOf[Sequence], inputs: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Compute one position of B sequences from (B, H) inputs; return (B, H) hidden states."""
        batch = len(sequences)
        self._place(sequences, num_steps=1)
        self._inputs.array[:batch] = inputs
        self._inputs.upload()
        self._compute_step()
        self._hidden.download(batch)
        self._wait()
        hidden: NDArray[np.float32] = self._hidden.array[:batch].copy()
        return hidden

    def compute_and_draw(
        self, sequences: SequenceOf[Sequence], rows: SamplingRows, num_steps: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Compute and draw K steps of B sequences; return (K, B, C) tokens, (K, B, H) hidden.

        The host waits once, at the end.
        """
        batch = len(sequences)
        self._place(sequences, num_steps)
        self._tokens.array[:batch] = [sequence.next_input() for sequence in sequences]
        self._tokens.upload()
        self._set_knobs(sequences, rows)
        for step in range(num_steps):
            self._draw_step()
            self._kept_tokens.tensor[step].copy_(self._tokens.tensor)
            self._kept_hidden.tensor[step].copy_(self._hidden.tensor)
        self._kept_tokens.download(num_steps)
        self._kept_hidden.download(num_steps)
        self._wait()
        tokens = self._kept_tokens.array[:num_steps, :batch].astype(np.int32)
        return tokens, self._kept_hidden.array[:num_steps, :batch].copy()

    def _compute(self) -> None:
        """One step from the host's inputs."""
        hidden = self._network.decode(
            self._inputs.tensor, self._tables.tensor, self._positions.tensor
        )
        self._hidden.tensor.copy_(hidden)

    def _compute_and_draw(self) -> None:
        """One step from the last tokens, which it replaces."""
        tokens, positions = self._tokens.tensor, self._positions.tensor
        hidden = self._network.decode(self._network.embed(tokens), self._tables.tensor, positions)
        rows = self._network.code_logits(hidden).view(tokens.numel(), -1)
        # The host sees hidden states only: they say too when a logit is not finite.
        is_finite = rows.isfinite().view(self.size, -1).all(dim=1, keepdim=True)
        self._hidden.tensor.copy_(hidden.masked_fill(~is_finite, torch.nan))
        drawn = draw(rows, self._state, self._end_token)
        self._state.advance(drawn)
        tokens.copy_(drawn.view_as(tokens))
        # A row at its limit becomes padding: it owns no block for a further position.
        is_on = (positions >= 0) & (positions + 1 < self._limits.tensor)
        positions.copy_((positions + 1).masked_fill(~is_on, NO_POSITION))

    def _ready(self, step: Callable[[], None], use_cuda_graphs: bool) -> Callable[[], None]:
        """Run a step on padding; return it, or its captured graph's replay."""
        if not self._is_cuda or not use_cuda_graphs:
            step()
            return step
        # The first run compiles kernels and allocates the libraries' workspaces, which belong to a
        # stream: so it has to be on the one that captures, on the device in use.
        make_stream: Callable[[], torch.cuda.Stream] = torch.cuda.Stream
        stream = make_stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            step()
        replay: Callable[[], None] = graph.replay
        return replay

    def _wait(self) -> None:
        """Wait for everything that was queued."""
        if self._is_cuda:
            torch.cuda.current_stream().synchronize()

    def _place(self, sequences: SequenceOf[Sequence], num_steps: int) -> None:
        """Upload block tables, positions and limits; rows behind the sequences are padding."""
        positions = self._positions.array
        positions[:] = NO_POSITION
        for row, sequence in enumerate(sequences):
            positions[row] = sequence.num_computed_tokens
            self._limits.array[row] = min(
                sequence.num_computed_tokens + num_steps, sequence.max_num_tokens
            )
            self._tables.array[row, : len(sequence.block_table)] = sequence.block_table
        for buffer in (self._tables, self._positions, self._limits):
            buffer.upload()

    def _set_knobs(self, sequences: SequenceOf[Sequence], rows: SamplingRows) -> None:
        """Upload what the rows are drawn with."""
        codebooks = self._network.gpt.num_codebooks
        min_new_tokens = [s.request.sampling.min_new_tokens for s in sequences]
        # The device shifts the history and drops its front, so what is missing has to be there.
        order = np.argsort(rows.history != NO_TOKEN, axis=1, kind="stable")
        values: Mapping[str, NDArray[Any]] = {
            "temperature": rows.temperature,
            "outside_mass": (1.0 - rows.top_p).astype(np.float32),
            "top_k": rows.top_k,
            "repetition_penalty": rows.repetition_penalty,
            "history": np.take_along_axis(rows.history, order, axis=1),
            "min_new_tokens": np.repeat(min_new_tokens, codebooks),
            "seeds": rows.seeds.view(np.int64),
            "steps": rows.steps,
            "codebooks": rows.codebooks,
        }
        for name, knob in self._knobs.items():
            knob.array[: len(values[name])] = values[name]
            knob.upload()


class _Buffer:
    """A tensor on the device with a twin that the host reads and writes."""

    def __init__(self, host: Tensor, device: torch.device) -> None:
        self._host = host.pin_memory() if device.type == "cuda" else host
        self.array: NDArray[Any] = self._host.numpy()
        self.tensor = host.to(device, copy=True)

    def upload(self) -> None:
        """Queue the copy to the device; the twin must not change before the next wait."""
        self.tensor.copy_(self._host, non_blocking=True)

    def download(self, length: int) -> None:
        """Queue the copy of the first `length` entries to the twin."""
        self._host[:length].copy_(self.tensor[:length], non_blocking=True)
