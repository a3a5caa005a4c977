"""TorchRunner: the network in PyTorch over one paged KV pool, on CUDA or CPU.

On CUDA it computes in bfloat16 with kernels of its own, and a decode step (embedding, network,
heads, sampling) is one CUDA graph of a fixed number of rows; several steps run before the host
looks. On CPU, in float32 and one row at a time, the same code is the readable reference: with one
row per call no neighbour can change how a product is rounded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from collections.abc import Sequence as SequenceOf
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from . import torch_ops
from .config import EngineConfig, GPTConfig
from .runner import DecodedSteps, RunnerDeadError
from .sampler import SamplingRows
from .sequence import Sequence
from .torch_batch import DecodeBatch
from .torch_network import Network
from .torch_ops import Operations
from .torch_options import TorchOptions
from .torch_weights import load_weights


class TorchRunner:
    """A FusedRunner over gpt.safetensors.

    Raises:
        ValueError: the file's tensors are not those of gpt_config.json, or the KV pool does not fit
            the device's memory.
        RuntimeError: the device is not there.
        ImportError: the device needs triton, and it is not installed.
    """

    def __init__(
        self,
        weights: Path,
        gpt: GPTConfig,
        config: EngineConfig,
        options: TorchOptions | None = None,
    ) -> None:
        options = options or TorchOptions()
        if config.num_threads:
            torch.set_num_threads(config.num_threads)  # of the whole process
        self.max_fused_steps = options.max_fused_steps
        self._gpt = gpt
        self._device = options.device
        self._gpu_share = options.gpu_memory_utilization if options.is_cuda else 0.0
        ops = _operations(options)
        with self._computing():
            tensors = load_weights(weights, gpt, options.device, getattr(torch, options.dtype_name))
            self.num_blocks = _pool_blocks(gpt, config, options, tensors.dtype.itemsize)
            self._network = Network(tensors, gpt, ops, self.num_blocks, config.block_size)
            max_blocks = min(self.num_blocks, _longest_table(gpt, config))
            self._batches = [
                DecodeBatch(
                    self._network, size, max_blocks, self.max_fused_steps, options.use_cuda_graphs
                )
                for size in options.sizes(config.max_num_seqs)
            ]

    def prefill(
        self, sequence: Sequence, inputs: NDArray[np.float32], start: int
    ) -> NDArray[np.float32]:
        """See Runner."""
        with self._computing():
            blocks = torch.tensor(sequence.block_table, device=self._device)
            return _to_host(self._network.prefill(self._to_device(inputs), blocks, start))

    def decode(
        self, sequences: SequenceOf[Sequence], inputs: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """See Runner."""
        with self._computing():
            rows = [
                batch.compute(sequences[part], inputs[part])
                for batch, part in self._parts(len(sequences))
            ]
        return np.concatenate(rows)

    def decode_steps(
        self, sequences: SequenceOf[Sequence], rows: SamplingRows, num_steps: int
    ) -> DecodedSteps:
        """See FusedRunner."""
        codebooks = self._gpt.num_codebooks
        tokens, hidden = [], []
        with self._computing():
            for batch, part in self._parts(len(sequences)):
                some = slice(part.start * codebooks, part.stop * codebooks)
                drawn = batch.compute_and_draw(sequences[part], _take(rows, some), num_steps)
                tokens.append(drawn[0])
                hidden.append(drawn[1])
        return DecodedSteps(np.concatenate(tokens, axis=1), np.concatenate(hidden, axis=1))

    def gpu_memory(self) -> tuple[int, int]:
        """See FusedRunner."""
        if not self._gpu_share:
            return 0, 0
        total = torch.cuda.get_device_properties(self._device).total_memory
        return torch.cuda.memory_reserved(self._device), int(total * self._gpu_share)

    def release(self, sequence: Sequence) -> None:
        """See Runner. Nothing to do: a block's next owner overwrites what it reads."""

    def code_logits(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """See Runner."""
        shape = (len(hidden), self._gpt.num_codebooks, self._gpt.num_audio_tokens)
        return self._logits(hidden, self._network.code_logits).reshape(shape)

    def text_logits(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """See Runner."""
        return self._logits(hidden, self._network.text_logits)

    def _logits(
        self, hidden: NDArray[np.float32], head: Callable[[Tensor], Tensor]
    ) -> NDArray[np.float32]:
        """Apply a head to (N, H) hidden states, in as many rows per product as a step has."""
        logits = []
        with self._computing():
            for batch, part in self._parts(len(hidden)):
                rows = np.zeros((batch.size, hidden.shape[1]), dtype=np.float32)
                rows[: part.stop - part.start] = hidden[part]
                logits.append(_to_host(head(self._to_device(rows)))[: part.stop - part.start])
        return np.concatenate(logits)

    def _parts(self, num_rows: int) -> Iterator[tuple[DecodeBatch, slice]]:
        """Cut rows into parts, each with the smallest batch that holds it."""
        start = 0
        while start < num_rows:
            left = num_rows - start
            batch = next((b for b in self._batches if b.size >= left), self._batches[-1])
            yield batch, slice(start, min(start + batch.size, num_rows))
            start += batch.size

    def _to_device(self, rows: NDArray[np.float32]) -> Tensor:
        return torch.tensor(rows, device=self._device)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """What PyTorch keeps per thread: no gradients, the device in use.

        Raises:
            RunnerDeadError: the device reported an error; none of its results can be had any more.
        """
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            if self._device.startswith("cuda"):
                stack.enter_context(torch.cuda.device(self._device))
            try:
                yield
            except torch.AcceleratorError as error:
                raise RunnerDeadError(f"{self._device}: {error}") from error


def _to_host(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.cpu().numpy()
    return array


def _take(rows: SamplingRows, part: slice) -> SamplingRows:
    """Return some of the rows."""
    fields = dataclasses.fields(rows)
    return SamplingRows(**{field.name: getattr(rows, field.name)[part] for field in fields})


def _operations(options: TorchOptions) -> Operations:
    """Check the device and return the operations that run on it."""
    if not options.is_cuda:
        return torch_ops
    if not torch.cuda.is_available():
        raise RuntimeError(f"{options.device}: PyTorch {torch.__version__} sees no CUDA device")
    if torch.device(options.device).index >= torch.cuda.device_count():
        raise RuntimeError(f"{options.device}: there are {torch.cuda.device_count()} CUDA devices")
    try:
        from . import torch_kernels
    except ImportError as error:
        raise ImportError(f"{options.device}: the kernels need triton ({error})") from error
    # Sums of a product in full: the order of a reduced one depends on how it is split.
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    return torch_kernels


def _longest_table(gpt: GPTConfig, config: EngineConfig) -> int:
    """Return the blocks of the longest sequence."""
    return -(-min(config.max_model_len, gpt.max_position_embeddings) // config.block_size)


def _pool_blocks(
    gpt: GPTConfig, config: EngineConfig, options: TorchOptions, value_bytes: int
) -> int:
    """Return how many blocks the pool has; on CUDA as many as can be used or as fit."""
    if not options.is_cuda:
        return config.pool_blocks()
    longest = _longest_table(gpt, config)
    block_values = gpt.num_layers * 2 * gpt.num_heads * config.block_size * gpt.head_dim
    block_bytes = block_values * value_bytes
    free, total = torch.cuda.mem_get_info()
    budget = int(total * options.gpu_memory_utilization) - (total - free)
    fitting = max(budget, 0) // block_bytes
    least = config.num_kv_blocks or longest
    if least > fitting:
        key = "num_kv_blocks" if config.num_kv_blocks else "max_model_len"
        raise ValueError(
            f"{key}: {least} KV blocks of {block_bytes / 1e6:.2f} MB do not fit; "
            f"{options.device} has room for {fitting} within gpu_memory_utilization "
            f"{options.gpu_memory_utilization:g} ({free / 1e9:.1f} of {total / 1e9:.1f} GB free)"
        )
    return config.num_kv_blocks or min(fitting, config.max_num_seqs * longest)
