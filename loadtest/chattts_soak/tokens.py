"""One request straight to chattts_gpt that answers after every step: a clock of the engine."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import np_to_triton_dtype

from .callers import LIMIT_S

MODEL = "chattts_gpt"
_PROMPT = "[Stts][empty_spk][speed_5]hello[Ptts]"
_POLL_S = 0.001


class TokenStream:
    """Generates a fixed number of steps; leaving its block early cancels."""

    def __init__(self, grpc_url: str, request_id: str, num_steps: int) -> None:
        """Take where and what; `__enter__` starts it.

        Args:
            grpc_url: HOST:PORT.
            request_id: unique among the running requests.
            num_steps: 1 ... 2048.
        """
        self.num_steps = 0
        """Steps that this caller has heard of."""
        self.finish_reason = ""
        self.is_over = threading.Event()
        self._name = np.array([request_id.encode()], np.object_)
        self._most = num_steps
        self._client = triton.InferenceServerClient(grpc_url)

    def __enter__(self) -> TokenStream:
        steps = np.array([self._most], np.int32)
        inputs = [
            _tensor("prompt", np.array([_PROMPT.encode()], np.object_)),
            _tensor("id", self._name),
            _tensor("seed", np.array([1], np.uint64)),
            _tensor("min_new_tokens", steps),
            _tensor("max_new_tokens", steps),
            _tensor("chunk_tokens", np.array([1], np.int32)),
            _tensor("return_hidden", np.array([False])),
        ]
        self._client.start_stream(self._take)
        self._client.async_stream_infer(MODEL, inputs)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.stop_stream(cancel_requests=True)
        self._client.close()

    def wait_for_step(self, number: int) -> None:
        """Wait until so many steps are known.

        Raises:
            TimeoutError: they do not come.
        """
        deadline = time.monotonic() + LIMIT_S
        while self.num_steps < number:
            if self.is_over.is_set() or time.monotonic() > deadline:
                raise TimeoutError(f"{self.num_steps} steps, not {number}")
            time.sleep(_POLL_S)

    def cancel_by_id(self) -> None:
        """Tell the model by its input `cancel` to stop; the answer then says "cancelled"."""
        self._client.async_stream_infer(MODEL, [_tensor("cancel", self._name)])

    def _take(self, result: Any, error: Any) -> None:
        if error is not None:
            self.finish_reason = str(error)
        elif result.as_numpy("usage")[0]:  # not the empty answer to a cancel
            self.num_steps = int(result.as_numpy("usage")[1])
            self.finish_reason = result.as_numpy("finish_reason")[0].decode()
        if self.finish_reason:
            self.is_over.set()


def _tensor(name: str, data: Any) -> triton.InferInput:
    tensor = triton.InferInput(name, list(data.shape), np_to_triton_dtype(data.dtype))
    tensor.set_data_from_numpy(data)
    return tensor
