"""chattts_gpt: adapter between Triton requests and the EngineWorker.

Two threads besides Triton's: the engine's, and the sender's, which alone touches response senders
(so that polling for cancellation and the final flag can never overlap: polling after the final flag
would crash the server).
"""

from __future__ import annotations

import json
import queue
import secrets
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from chattts_engine import (
    Chunk,
    EngineConfig,
    EngineWorker,
    QueueFullError,
    RequestParser,
    load_engine,
)

CANCEL_POLL_S = 0.02
"""Pause between two looks at which callers have gone."""


class TritonPythonModel:
    """One engine per instance."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the weights, run one short request, start the threads."""
        config = json.loads(args["model_config"])
        parameters = {
            key: value["string_value"] for key, value in config.get("parameters", {}).items()
        }
        version_dir = Path(args["model_repository"]) / args["model_version"]
        loaded = load_engine(version_dir / "weights", EngineConfig.from_parameters(parameters))
        gpt = loaded.engine.gpt
        self._input_names = [entry["name"] for entry in config["input"]]
        self._num_codebooks = gpt.num_codebooks
        self._parser = RequestParser(
            loaded.tokenizer,
            gpt,
            draw_seed=lambda: secrets.randbits(64),
            draw_id=lambda: uuid.uuid4().hex,
        )
        self._chunks: queue.SimpleQueue[Chunk | None] = queue.SimpleQueue()
        self._senders: dict[str, Any] = {}
        self._senders_lock = threading.Lock()
        self._worker = EngineWorker(
            loaded.engine, time.monotonic, self._chunks.put, pb_utils.Logger.log_error
        )
        self._sender_thread = threading.Thread(target=self._send_loop, name="sender", daemon=True)
        self._sender_thread.start()
        pb_utils.Logger.log_info(
            f"chattts_gpt: checkpoint {gpt.checkpoint}{' (UNTRAINED)' * gpt.untrained}, "
            f"{gpt.runner} {gpt.precision}, {loaded.engine.block_manager.num_blocks} KV blocks"
        )

    def execute(self, requests: list[Any]) -> None:
        """Hand each request to the engine and return; the sender thread answers."""
        for request in requests:
            sender = request.get_response_sender()
            try:
                self._accept(request, sender)
            except ValueError as error:
                _send_error(sender, "INVALID_ARG", str(error))
            except QueueFullError as error:
                _send_error(sender, "UNAVAILABLE", str(error))
            except Exception as error:
                pb_utils.Logger.log_error(f"chattts_gpt: {error!r}")
                _send_error(sender, "INTERNAL", str(error))

    def finalize(self) -> None:
        """Cancel what is left, send the last responses, end the threads."""
        self._worker.stop()
        self._chunks.put(None)
        self._sender_thread.join()

    def _accept(self, request: Any, sender: Any) -> None:
        inputs = self._read_inputs(request)
        if "cancel" in inputs:
            self._worker.abort(self._parser.cancelled_id(inputs))
            response = pb_utils.InferenceResponse(self._tensors(None))
            sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            return
        generation = self._parser.parse(inputs, time.monotonic())
        # Under the lock, so that no chunk can arrive before its sender is known; and a refused
        # request's sender is never polled, since the caller of this method ends it.
        with self._senders_lock:
            self._worker.submit(generation)
            self._senders[generation.id] = sender

    def _read_inputs(self, request: Any) -> dict[str, np.ndarray[Any, Any]]:
        """Copy the tensors that were given: Triton recycles their memory after execute."""
        inputs = {}
        for name in self._input_names:
            tensor = pb_utils.get_input_tensor_by_name(request, name)
            if tensor is not None:
                inputs[name] = tensor.as_numpy().copy()
        return inputs

    def _send_loop(self) -> None:
        """Send chunks as they come; between them, look for callers that have gone."""
        next_poll_s = 0.0
        while True:
            try:
                chunk = self._chunks.get(timeout=CANCEL_POLL_S)
            except queue.Empty:
                pass
            else:
                if chunk is None:
                    return
                self._send(chunk)
            if time.monotonic() >= next_poll_s:
                self._abort_cancelled()
                next_poll_s = time.monotonic() + CANCEL_POLL_S

    def _send(self, chunk: Chunk) -> None:
        is_last = chunk.finish_reason is not None
        with self._senders_lock:
            sender = self._senders[chunk.request_id]
            if is_last:
                del self._senders[chunk.request_id]
        if chunk.finish_reason == "error":
            _send_error(sender, "INTERNAL", chunk.error)
            return
        response = pb_utils.InferenceResponse(self._tensors(chunk))
        sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL if is_last else 0)

    def _abort_cancelled(self) -> None:
        with self._senders_lock:
            senders = list(self._senders.items())
        for request_id, sender in senders:
            if sender.is_cancelled():
                self._worker.abort(request_id)

    def _tensors(self, chunk: Chunk | None) -> list[Any]:
        """Return the output tensors of a chunk, or of an answer that carries nothing."""
        codes = np.zeros((0, self._num_codebooks), dtype=np.int32)
        token_ids = np.zeros(0, dtype=np.int32)
        hidden = np.zeros((0, 0), dtype=np.float32)
        finish_reason, usage = "", [0, 0, 0]
        if chunk is not None:
            if chunk.tokens.shape[1] == self._num_codebooks:
                codes = chunk.tokens
            else:
                token_ids = chunk.tokens[:, 0]
            hidden = chunk.hidden
            finish_reason = chunk.finish_reason or ""
            usage = [chunk.num_prompt_tokens, chunk.num_generated, round(chunk.queue_s * 1000)]
        return [
            pb_utils.Tensor("codes", codes),
            pb_utils.Tensor("token_ids", np.ascontiguousarray(token_ids)),
            pb_utils.Tensor("hidden", hidden),
            pb_utils.Tensor("finish_reason", np.array([finish_reason], dtype=np.object_)),
            pb_utils.Tensor("usage", np.array(usage, dtype=np.int32)),
        ]


def _send_error(sender: Any, code: str, message: str) -> None:
    """Answer with one error; the code leads the message, since BLS callers lose it in 2.51."""
    error = pb_utils.TritonError(f"{code}: {message}", getattr(pb_utils.TritonError, code))
    response = pb_utils.InferenceResponse(error=error)
    sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
