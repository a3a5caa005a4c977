from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
from chattts_engine.kv_cache import KvCache

NUM_ROWS = 4
MAX_LEN = 4096
HEADS, HEAD_DIM = 2, 8
ROW_BYTES = HEADS * MAX_LEN * HEAD_DIM * 4


def make_cache(num_layers: int = 1) -> KvCache:
    return KvCache(num_layers, NUM_ROWS, (HEADS, MAX_LEN, HEAD_DIM), np.float32)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def test_rows_lie_one_after_the_other() -> None:
    cache = make_cache()
    assert cache.address(0, 1) - cache.address(0, 0) == ROW_BYTES
    assert cache.address(1, 0) - cache.address(0, 0) == NUM_ROWS * ROW_BYTES
    assert cache.num_tensors == 2


def test_move_copies_what_is_used_and_releases_the_source() -> None:
    cache = make_cache()
    cache._data[:, 3, :, :10] = 7.0
    cache.move(3, 1, 9)
    assert (cache._data[:, 1, :, :9] == 7.0).all()
    assert (cache._data[:, 1, :, 9:] == 0.0).all()
    assert (cache._data[:, 3] == 0.0).all()


def test_memory_is_resident_only_while_it_is_used() -> None:
    cache = make_cache(num_layers=32)  # 64 MiB in all, 16 MiB a row
    before = resident_bytes()
    cache._data[:, 2] = 1.0
    used = resident_bytes() - before
    cache.release(2)
    left = resident_bytes() - before
    assert used > 0.9 * 64 * ROW_BYTES
    assert left < 0.1 * used


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
@pytest.mark.parametrize("max_len", [65, 333, 4096])
def test_rows_share_no_page(max_len: int, dtype: type) -> None:
    cache = KvCache(2, 3, (3, max_len, 20), dtype)
    assert cache.row_shape[1] >= max_len
    assert (cache.address(1, 2) - cache.address(0, 0)) % mmap.PAGESIZE == 0
    assert (cache.address(0, 1) - cache.address(0, 0)) % mmap.PAGESIZE == 0


def test_an_int8_cache_takes_a_quarter() -> None:
    cache = KvCache(1, NUM_ROWS, (HEADS, MAX_LEN, HEAD_DIM), np.int8)
    assert cache.address(0, 1) - cache.address(0, 0) == ROW_BYTES // 4


def test_swap_exchanges_two_rows() -> None:
    cache = make_cache()
    cache._data[:, 0, :, :5] = 1.0
    cache._data[:, 2, :, :9] = 2.0
    cache.swap(2, 0, 9)
    assert (cache._data[:, 0, :, :9] == 2.0).all()
    assert (cache._data[:, 2, :, :5] == 1.0).all()
    assert (cache._data[:, 2, :, 5:9] == 0.0).all()


def test_other_rows_keep_their_values_when_one_is_released() -> None:
    cache = make_cache()
    cache._data[:] = np.float32(3.0)
    cache.release(1)
    assert (cache._data[:, [0, 2, 3]] == 3.0).all()
