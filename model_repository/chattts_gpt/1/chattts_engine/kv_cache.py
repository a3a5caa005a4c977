"""KvCache: keys and values of all rows in one lazily committed memory map.

Each row (one running sequence) is contiguous in virtual memory, so the attention operator needs no
gather; the operating system commits a page when a position in it is first written. Releasing a row
gives its pages back, so resident memory follows the blocks in use. This is paging by the memory
management unit. Source of the idea: vAttention (Prabhu et al., 2024).
"""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_MAP_NORESERVE = 0x4000  # Linux; the mmap module names it only from Python 3.13 on


class KvCache:
    """2 * L tensors (keys and values per layer) of shape (rows, heads, max_len, head size)."""

    def __init__(
        self, num_layers: int, num_rows: int, row_shape: tuple[int, int, int], dtype: DTypeLike
    ) -> None:
        """Reserve address space.

        Args:
            num_layers: L.
            num_rows: sequences that can be held.
            row_shape: heads, least max_len, head size.
            dtype: float32, or int8 for a quantised cache.
        """
        self.dtype = np.dtype(dtype)
        num_heads, max_len, head_dim = row_shape
        # Rows start on a page, so that one row's pages can be given back alone.
        position_bytes = num_heads * head_dim * self.dtype.itemsize
        multiple = mmap.PAGESIZE // math.gcd(mmap.PAGESIZE, position_bytes)
        max_len = -(-max_len // multiple) * multiple
        self.row_shape = (num_heads, max_len, head_dim)
        self._row_bytes = max_len * position_bytes
        self._tensor_bytes = num_rows * self._row_bytes
        self.num_tensors = 2 * num_layers
        self._map = mmap.mmap(
            -1,
            self.num_tensors * self._tensor_bytes,
            flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE,
        )
        self._data: NDArray[Any] = np.frombuffer(self._map, dtype=self.dtype).reshape(
            self.num_tensors, num_rows, *self.row_shape
        )

    def address(self, tensor: int, row: int) -> int:
        """Return the memory address of a row of tensor 2 * layer (keys) or 2 * layer + 1."""
        base: int = self._data.ctypes.data
        return base + tensor * self._tensor_bytes + row * self._row_bytes

    def move(self, source: int, target: int, num_tokens: int) -> None:
        """Copy the first num_tokens positions of a row to another and release the source."""
        self._data[:, target, :, :num_tokens] = self._data[:, source, :, :num_tokens]
        self.release(source)

    def swap(self, row: int, other: int, num_tokens: int) -> None:
        """Exchange the first num_tokens positions of two rows."""
        rows = [row, other]
        self._data[:, rows, :, :num_tokens] = self._data[:, rows[::-1], :, :num_tokens]

    def release(self, row: int) -> None:
        """Give a row's pages back to the operating system; it reads as zeros afterwards."""
        for tensor in range(self.num_tensors):
            start = tensor * self._tensor_bytes + row * self._row_bytes
            self._map.madvise(mmap.MADV_DONTNEED, start, self._row_bytes)
