"""TorchOptions: where and how TorchRunner computes. Imports no torch, so that anyone may ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

DTYPES = ("auto", "float32", "bfloat16", "float16")
MAX_FUSED_STEPS = 64


def _sizes(text: str) -> tuple[int, ...]:
    """Read sizes separated by commas; 0 alone stands for the default."""
    sizes = tuple(int(part) for part in text.split(","))
    return () if sizes == (0,) else sizes


@dataclass(frozen=True, slots=True)
class TorchOptions:
    """Options beside EngineConfig; config.pbtxt documents each key of KEYS.

    Raises:
        ValueError: a value is outside its range; the message names the key.
    """

    device: str = "cpu"
    """cpu, or cuda:N."""
    dtype: str = "auto"
    """Of weights, keys and values; auto: bfloat16 on CUDA, float32 on CPU."""
    gpu_memory_utilization: float = 0.85
    """Share of the device's memory that this process may fill, 0 < share <= 1."""
    batch_sizes: tuple[int, ...] = ()
    """Rows that a decode step is padded to, the smallest that fits; empty: max_num_seqs on CUDA,
    1 on CPU. One size keeps a request's bits the same beside any neighbours; several trade that for
    latency, since a matrix product rounds differently at another size."""
    max_fused_steps: int = 8
    """Decode steps between two waits for the device, 1 ... 64."""
    use_cuda_graphs: bool = True
    """False launches every kernel of a step by itself."""

    KEYS: ClassVar[dict[str, tuple[str, Callable[[str], Any]]]] = {
        "torch_dtype": ("dtype", str),
        "gpu_memory_utilization": ("gpu_memory_utilization", float),
        "cuda_graph_batch_sizes": ("batch_sizes", _sizes),
        "max_fused_steps": ("max_fused_steps", int),
    }
    """Key in config.pbtxt to field and reader."""

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"torch_dtype: {self.dtype!r} is not one of {', '.join(DTYPES)}")
        if not 0.0 < self.gpu_memory_utilization <= 1.0:
            share = self.gpu_memory_utilization
            raise ValueError(f"gpu_memory_utilization: {share} is outside 0 < share <= 1")
        if any(size < 1 for size in self.batch_sizes):
            sizes = ",".join(map(str, self.batch_sizes))
            raise ValueError(f"cuda_graph_batch_sizes: {sizes} has a size below 1")
        if not 1 <= self.max_fused_steps <= MAX_FUSED_STEPS:
            steps = self.max_fused_steps
            raise ValueError(f"max_fused_steps: {steps} is outside 1 ... {MAX_FUSED_STEPS}")

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, str]) -> TorchOptions:
        """Read the KEYS among the `parameters` of config.pbtxt, given as plain strings.

        Raises:
            ValueError: a value cannot be read or is out of range.
        """
        values: dict[str, Any] = {}
        for key, (field, read) in cls.KEYS.items():
            if key in parameters:
                try:
                    values[field] = read(parameters[key])
                except ValueError:
                    raise ValueError(f"{key}: cannot read {parameters[key]!r}") from None
        return cls(**values)

    @property
    def is_cuda(self) -> bool:
        """Whether the device is a CUDA device."""
        return self.device.startswith("cuda")

    @property
    def dtype_name(self) -> str:
        """The data type in use."""
        if self.dtype != "auto":
            return self.dtype
        return "bfloat16" if self.is_cuda else "float32"

    def sizes(self, max_num_seqs: int) -> list[int]:
        """Return the batch sizes in use, ascending; the last one is what a step can hold."""
        if self.batch_sizes:
            return sorted({min(size, max_num_seqs) for size in self.batch_sizes})
        return [max_num_seqs if self.is_cuda else 1]
