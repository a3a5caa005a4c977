"""OnnxRunner: the network on CPU through onnxruntime, keys and values updated in place.

Running sequences occupy rows of the cache. A decode step binds the first B rows, so the runner
keeps the decoding sequences dense there: the last one moves into a hole that a finished one left.
Block tables are accounting here; the memory behind them is KvCache's pages.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from .config import EngineConfig, GPTConfig
from .kv_cache import KvCache
from .sequence import Sequence

SPIN_US = "50"
"""How long idle threads poll: it bridges the gaps between the operators of one call. Threads that
poll between two calls would take the cores from the vocoder and from the server."""


class _Binding:
    """One session call with fixed addresses: B rows from `row` on, S positions each."""

    def __init__(
        self, session: ort.InferenceSession, cache: KvCache, row: int, batch: int, length: int
    ) -> None:
        hidden_size = session.get_inputs()[0].shape[2]
        self.inputs = np.zeros((batch, length, hidden_size), dtype=np.float32)
        self.hidden = np.zeros((batch, length, hidden_size), dtype=np.float32)
        self.last_key_index = np.zeros(batch, dtype=np.int32)
        self.longest = np.zeros((), dtype=np.int32)
        self._session = session
        self._io = session.io_binding()
        for name, array in (
            ("inputs_embeds", self.inputs),
            ("seqlens_k", self.last_key_index),
            ("total_sequence_length", self.longest),
        ):
            self._io.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        hidden = self.hidden
        self._io.bind_output("hidden", "cpu", 0, np.float32, hidden.shape, hidden.ctypes.data)
        shape = (batch, *cache.row_shape)
        for tensor in range(cache.num_tensors):
            name = f"{('key', 'value')[tensor % 2]}_{tensor // 2}"
            address = cache.address(tensor, row)
            self._io.bind_input(f"past_{name}", "cpu", 0, cache.dtype, shape, address)
            self._io.bind_output(f"present_{name}", "cpu", 0, cache.dtype, shape, address)

    def run(self) -> NDArray[np.float32]:
        """Compute and return the (B, S, H) hidden states; the array is reused by the next call."""
        self._session.run_with_iobinding(self._io)
        return self.hidden


class OnnxRunner:
    """A Runner over gpt.onnx, code_head.onnx and text_head.onnx."""

    def __init__(self, weights: Path, gpt: GPTConfig, config: EngineConfig) -> None:
        self._session = _open(weights / "gpt.onnx", config.num_threads)
        self._code_head = _open(weights / "code_head.onnx", config.num_threads)
        self._text_head = _open(weights / "text_head.onnx", config.num_threads)
        kinds = {tensor.name: tensor.type for tensor in self._session.get_inputs()}
        self._cache = KvCache(
            gpt.num_layers,
            config.max_num_seqs,
            (gpt.num_heads, config.max_model_len, gpt.head_dim),
            np.int8 if kinds["past_key_0"] == "tensor(int8)" else np.float32,
        )
        self._rows: list[Sequence | None] = [None] * config.max_num_seqs
        self._decode_bindings: dict[int, _Binding] = {}

    def prefill(
        self, sequence: Sequence, inputs: NDArray[np.float32], start: int
    ) -> NDArray[np.float32]:
        """See Runner."""
        if start == 0:
            self._rows[self._rows.index(None)] = sequence
        row = next(row for row, occupant in enumerate(self._rows) if occupant is sequence)
        binding = _Binding(self._session, self._cache, row, 1, len(inputs))
        binding.inputs[0] = inputs
        binding.last_key_index[:] = start + len(inputs) - 1
        binding.longest[...] = start + len(inputs)
        hidden: NDArray[np.float32] = binding.run()[0]
        return hidden

    def decode(
        self, sequences: SequenceOf[Sequence], inputs: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """See Runner."""
        batch = len(sequences)
        self._make_dense(sequences)
        if batch not in self._decode_bindings:
            self._decode_bindings[batch] = _Binding(self._session, self._cache, 0, batch, 1)
        binding = self._decode_bindings[batch]
        row_of = {id(sequence): row for row, sequence in enumerate(self._rows[:batch])}
        rows = [row_of[id(sequence)] for sequence in sequences]
        binding.inputs[rows, 0] = inputs
        binding.last_key_index[rows] = [sequence.num_computed_tokens for sequence in sequences]
        binding.longest[...] = binding.last_key_index.max() + 1
        hidden: NDArray[np.float32] = binding.run()[rows, 0]
        return hidden

    def release(self, sequence: Sequence) -> None:
        """See Runner."""
        for row, occupant in enumerate(self._rows):
            if occupant is sequence:
                self._rows[row] = None
                self._cache.release(row)

    def code_logits(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """See Runner."""
        logits: NDArray[np.float32] = self._code_head.run(["logits"], {"hidden": hidden})[0]
        return logits

    def text_logits(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """See Runner."""
        logits: NDArray[np.float32] = self._text_head.run(["logits"], {"hidden": hidden})[0]
        return logits

    def _make_dense(self, sequences: SequenceOf[Sequence]) -> None:
        """Move sequences so that rows 0 ... B-1 are exactly the given ones'."""
        wanted = {id(sequence) for sequence in sequences}
        batch = len(sequences)
        sources = [row for row in range(batch, len(self._rows)) if id(self._rows[row]) in wanted]
        targets = [row for row in range(batch) if id(self._rows[row]) not in wanted]
        for source, target in zip(sources, targets, strict=True):
            pair = self._rows[source], self._rows[target]
            longest = max(0 if s is None else s.num_computed_tokens for s in pair)
            if pair[1] is None:
                self._cache.move(source, target, longest)
            else:  # a prompt that is still being computed
                self._cache.swap(source, target, longest)
            self._rows[target], self._rows[source] = pair


def _open(path: Path, num_threads: int) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = num_threads
    options.add_session_config_entry("session.intra_op.spin_duration_us", SPIN_US)
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
