"""chattts_gpt: adapter between Triton requests and the EngineWorker.

Two threads besides Triton's: the engine's, and the sender's, which alone touches the response
senders of accepted requests (so that polling for cancellation and the final flag can never overlap:
polling after the final flag would crash the server).
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import threading
import time
import traceback
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from chattts_engine import (
    Chunk,
    Deliveries,
    EngineConfig,
    EngineWorker,
    GPTConfig,
    Pull,
    Push,
    QueueFullError,
    RequestParser,
    TorchOptions,
    load_engine,
    warm_up,
)

CANCEL_POLL_S = 0.02
"""Pause between two looks at which callers have gone."""
NUM_CODEBOOKS = 4
"""Second dimension of the output `codes` in config.pbtxt."""


class TritonPythonModel:
    """One engine per instance."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the weights, generate a little, start the threads."""
        config = json.loads(args["model_config"])
        parameters = {
            key: value["string_value"] for key, value in config.get("parameters", {}).items()
        }
        version_dir = Path(args["model_repository"]) / args["model_version"]
        torch_options = TorchOptions.from_parameters(
            parameters, args["model_instance_kind"], args["model_instance_device_id"]
        )
        loaded = load_engine(
            version_dir / "weights",
            EngineConfig.from_parameters(
                {key: value for key, value in parameters.items() if key not in TorchOptions.KEYS}
            ),
            torch_options=torch_options,
        )
        warm_up(loaded.engine)
        gpt = loaded.engine.gpt
        self._input_names = [entry["name"] for entry in config["input"]]
        self._parser = RequestParser(
            loaded.tokenizer,
            gpt,
            loaded.engine.max_num_tokens,
            draw_seed=lambda: secrets.randbits(64),
            draw_id=lambda: uuid.uuid4().hex,
        )
        self._deliveries = Deliveries()
        self._events: queue.SimpleQueue[Chunk | NextCall | None] = queue.SimpleQueue()
        self._worker = EngineWorker(
            loaded.engine, time.monotonic, self._events.put, _log_failure, on_death=_die
        )
        self._sender_thread = threading.Thread(target=self._send_loop, name="sender", daemon=True)
        self._sender_thread.start()
        pb_utils.Logger.log_info(
            f"chattts_gpt: checkpoint {gpt.checkpoint}{' (UNTRAINED)' * gpt.untrained}, "
            f"{_computes(gpt, torch_options)}, {loaded.engine.block_manager.num_blocks} KV blocks"
        )

    def execute(self, requests: list[Any]) -> None:
        """Hand each request to the engine and return; the sender thread answers."""
        for request in requests:
            reply = TritonReply(request.get_response_sender())
            try:
                self._accept(self._read_inputs(request), reply)
            except ValueError as error:
                reply.fail("INVALID_ARG", str(error))
            except QueueFullError as error:
                reply.fail("UNAVAILABLE", str(error))
            except Exception as error:
                _log_failure(traceback.format_exc())
                reply.fail("INTERNAL", str(error))

    def finalize(self) -> None:
        """Cancel what is left, send the last responses, end the threads."""
        self._worker.stop()
        self._events.put(None)
        self._sender_thread.join()

    def _accept(self, inputs: dict[str, np.ndarray[Any, Any]], reply: TritonReply) -> None:
        if "next" in inputs:
            self._events.put(NextCall(self._parser.named_id(inputs, "next"), reply))
            return
        if "cancel" in inputs:
            self._worker.abort(self._parser.named_id(inputs, "cancel"))
            reply.send_nothing()
            return
        now_s = time.monotonic()
        generation = self._parser.parse(inputs, now_s)
        delivery = Pull(reply, now_s) if self._parser.is_pulled(inputs) else Push(reply)
        self._deliveries.add(generation.id, delivery, lambda: self._worker.submit(generation))

    def _read_inputs(self, request: Any) -> dict[str, np.ndarray[Any, Any]]:
        """Copy the tensors that were given: Triton recycles their memory after execute."""
        inputs = {}
        for name in self._input_names:
            tensor = pb_utils.get_input_tensor_by_name(request, name)
            if tensor is not None:
                inputs[name] = tensor.as_numpy().copy()
        return inputs

    def _send_loop(self) -> None:
        try:
            self._deliver_until_stopped()
        except Exception:
            _die(traceback.format_exc())

    def _deliver_until_stopped(self) -> None:
        """Deliver chunks as they come; between them, look for callers that have gone."""
        next_poll_s = 0.0
        while True:
            try:
                event = self._events.get(timeout=CANCEL_POLL_S)
            except queue.Empty:
                pass
            else:
                if event is None:
                    return
                self._handle(event)
            now_s = time.monotonic()
            if now_s >= next_poll_s:
                for request_id in self._deliveries.give_up(now_s):
                    self._worker.abort(request_id)
                next_poll_s = now_s + CANCEL_POLL_S

    def _handle(self, event: Chunk | NextCall) -> None:
        """Deliver one event; a caller that cannot be answered costs only its own request."""
        try:
            if isinstance(event, Chunk):
                self._deliveries.put(event)
            else:
                self._answer_next(event)
        except Exception:
            _log_failure(traceback.format_exc())
            self._deliveries.drop(event.request_id)
            self._worker.abort(event.request_id)

    def _answer_next(self, call: NextCall) -> None:
        try:
            self._deliveries.ask(call.request_id, call.reply, time.monotonic())
        except ValueError as error:
            call.reply.fail("INVALID_ARG", str(error))


class TritonReply:
    """Answers one Triton request, with chunks or with one error."""

    def __init__(self, sender: Any) -> None:
        self._sender = sender

    def is_cancelled(self) -> bool:
        """Whether the caller has gone; must not be asked after the final answer."""
        return bool(self._sender.is_cancelled())

    def send(self, chunk: Chunk, is_final: bool) -> None:
        """Send a chunk's tensors; a failed request's chunk becomes the error."""
        if chunk.finish_reason == "error":
            self.fail("INTERNAL", chunk.error)
            return
        is_code = chunk.mode == "code"
        self._send(
            codes=chunk.tokens if is_code else None,
            token_ids=None if is_code else chunk.tokens[:, 0],
            hidden=chunk.hidden,
            finish_reason=chunk.finish_reason or "",
            usage=(chunk.num_prompt_tokens, chunk.num_generated, round(chunk.queue_s * 1000)),
            is_final=is_final,
        )

    def send_nothing(self) -> None:
        """Answer a call that generates nothing."""
        self._send(
            codes=None, token_ids=None, hidden=None, finish_reason="", usage=(0,) * 3, is_final=True
        )

    def fail(self, code: str, message: str) -> None:
        """Answer with an error; the code leads the message, since BLS callers lose it in 2.51."""
        error = pb_utils.TritonError(f"{code}: {message}", getattr(pb_utils.TritonError, code))
        self._sender.send(
            pb_utils.InferenceResponse(error=error),
            flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL,
        )

    def _send(
        self,
        codes: np.ndarray[Any, Any] | None,
        token_ids: np.ndarray[Any, Any] | None,
        hidden: np.ndarray[Any, Any] | None,
        finish_reason: str,
        usage: tuple[int, ...],
        is_final: bool,
    ) -> None:
        tensors = [
            pb_utils.Tensor("codes", _array(codes, (0, NUM_CODEBOOKS), np.int32)),
            pb_utils.Tensor("token_ids", _array(token_ids, (0,), np.int32)),
            pb_utils.Tensor("hidden", _array(hidden, (0, 0), np.float32)),
            pb_utils.Tensor("finish_reason", np.array([finish_reason], dtype=np.object_)),
            pb_utils.Tensor("usage", np.array(usage, dtype=np.int32)),
        ]
        flags = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL if is_final else 0
        self._sender.send(pb_utils.InferenceResponse(tensors), flags=flags)


@dataclass(frozen=True)
class NextCall:
    """A `next` call on its way to the sender thread."""

    request_id: str
    reply: TritonReply


def _computes(gpt: GPTConfig, torch_options: TorchOptions) -> str:
    """Return what computes, in which precision, where."""
    if gpt.runner == "torch":
        return f"torch {torch_options.dtype_name} on {torch_options.device}"
    return f"{gpt.runner} {gpt.precision}"


def _log_failure(trace: str) -> None:
    pb_utils.Logger.log_error(f"chattts_gpt: {trace}")


def _die(trace: str) -> None:
    """End the process: Triton then fails what runs here, and nobody waits for ever."""
    _log_failure(trace)
    os._exit(1)


def _array(
    given: np.ndarray[Any, Any] | None, empty_shape: tuple[int, ...], dtype: Any
) -> np.ndarray[Any, Any]:
    return np.zeros(empty_shape, dtype) if given is None else np.ascontiguousarray(given, dtype)
