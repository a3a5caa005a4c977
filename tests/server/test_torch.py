"""Through the server: weights built for torch, on the CPU where there is no GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from conftest import TINY_CHECKPOINT, RepositoryFactory
from golden import GREEDY_TEMPERATURE, NUM_TEXTS, TINY_ARRAYS, TINY_CASES
from launcher import EmbeddedServer
from token_model import generate_together

pytest.importorskip("torch")


def test_the_torch_runner_gives_the_golden_codes(
    build_repository: RepositoryFactory, server_factory: Callable[..., EmbeddedServer]
) -> None:
    server = server_factory(build_repository(TINY_CHECKPOINT, "fp32", "torch"))
    inputs = {
        "temperature": GREEDY_TEMPERATURE,
        "min_new_tokens": 24,
        "max_new_tokens": 24,
        "speaker_embedding": TINY_ARRAYS["spk_vector"],
    }
    requests = [{"prompt": TINY_CASES["decorated"][text], **inputs} for text in range(NUM_TEXTS)]
    for text, result in enumerate(generate_together(server.grpc_url, requests)):
        np.testing.assert_array_equal(result.codes, TINY_ARRAYS[f"batch_codes_{text}"])
