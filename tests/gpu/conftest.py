"""Weights and engines for the tests on a GPU; skips them where there is none.

TORCH_TEST_DEVICE=cpu runs them on CPU at tiny size, which proves the tests, not the device.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chattts_engine import EngineConfig, LoadedEngine, TorchOptions, load_engine
from conftest import ROOT, TINY_CHECKPOINT, RepositoryFactory

DEVICE = os.environ.get("TORCH_TEST_DEVICE", "cuda:0")
WEIGHTS = Path("chattts_gpt/1/weights")

Load = Callable[..., LoadedEngine]


def here_is_no_device() -> bool:
    if not DEVICE.startswith("cuda"):
        return False
    try:
        import torch
    except ImportError:
        return True
    return not torch.cuda.is_available()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    for item in here:
        item.add_marker(pytest.mark.gpu)
        if here_is_no_device():
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(scope="session")
def tiny_weights(build_repository: RepositoryFactory) -> Path:
    return build_repository(TINY_CHECKPOINT, "fp32", "torch") / WEIGHTS


@pytest.fixture(scope="session")
def full_weights(
    build_repository: RepositoryFactory, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The published sizes, untrained; check.py built them already."""
    if "TORCH_TEST_WEIGHTS" in os.environ:
        return Path(os.environ["TORCH_TEST_WEIGHTS"])
    checkpoint = tmp_path_factory.mktemp("full")
    command = [sys.executable, str(ROOT / "build" / "make_checkpoint.py"), "--size", "full"]
    subprocess.run([*command, "--output", str(checkpoint)], check=True)
    return build_repository(checkpoint, "fp32", "torch") / WEIGHTS


@pytest.fixture
def load() -> Load:
    """Load an engine on the device under test."""

    def load_on_device(weights: Path, limits: dict[str, int], **options: Any) -> LoadedEngine:
        torch_options = TorchOptions(DEVICE, **options)
        return load_engine(weights, EngineConfig(**limits), torch_options=torch_options)

    return load_on_device
