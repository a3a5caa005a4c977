"""chattts_gpt: adapter between Triton requests and the engines, each in a process of its own.

One thread, the sender's, alone touches the response senders of accepted requests, so that polling
for cancellation and the final flag can never overlap: polling after the final flag would crash the
server. Another one alone touches the metrics: two threads that change them at once crash it too.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from chattts_engine import (
    Callbacks,
    Chunk,
    Deliveries,
    EngineConfig,
    EngineHandle,
    EngineJob,
    EngineMetrics,
    EngineRouter,
    GPTConfig,
    Pull,
    Push,
    QueueFullError,
    RequestParser,
    Snapshot,
    Tokenizer,
    TorchOptions,
    take_switch,
)

CANCEL_POLL_S = 0.02
"""Pause between two looks at which callers have gone."""
QUEUE_POLL_S = 0.1
"""Pause between two looks at how many requests wait."""
NUM_CODEBOOKS = 4
"""Second dimension of the output `codes` in config.pbtxt."""


class TritonPythonModel:
    """All engines of one version. One instance only: it gives the work to one engine per device."""

    def initialize(self, args: dict[str, str]) -> None:
        """Start the engines, which load the weights and generate a little, and the sender."""
        config = json.loads(args["model_config"])
        parameters = {
            key: value["string_value"] for key, value in config.get("parameters", {}).items()
        }
        has_metrics = take_switch(parameters)
        weights = Path(args["model_repository"]) / args["model_version"] / "weights"
        gpt = GPTConfig.from_file(weights / "gpt_config.json")
        self._input_names = [entry["name"] for entry in config["input"]]
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._snapshots: queue.SimpleQueue[tuple[int, Snapshot] | None] = queue.SimpleQueue()
        self._router = self._start_router(weights, gpt, parameters)
        self._parser = RequestParser(
            Tokenizer(weights / "tokenizer.json"),
            gpt,
            self._router.max_num_tokens,
            draw_seed=lambda: secrets.randbits(64),
            draw_id=lambda: uuid.uuid4().hex,
        )
        self._deliveries = Deliveries()
        version = args["model_version"]
        self._metrics = EngineMetrics(pb_utils.MetricFamily, version) if has_metrics else None
        self._threads = [
            threading.Thread(target=_guarded, args=(work,), name=name, daemon=True)
            for name, work in (("sender", self._deliver), ("metrics", self._show_numbers))
        ]
        for thread in self._threads:
            thread.start()

    def _start_router(
        self, weights: Path, gpt: GPTConfig, parameters: dict[str, str]
    ) -> EngineRouter:
        torch_options = TorchOptions.from_parameters(parameters)
        config = EngineConfig.from_parameters(
            {key: value for key, value in parameters.items() if key not in TorchOptions.KEYS}
        )

        def start_engine(index: int, *callbacks: Callable[..., None]) -> EngineHandle:
            job = EngineJob(weights, config, torch_options, index)
            return EngineHandle(job, time.monotonic, *callbacks)

        callbacks = Callbacks(
            on_chunk=self._events.put,
            on_snapshot=lambda index, snapshot: self._snapshots.put((index, snapshot)),
            on_failure=_log_failure,
            on_death=_die,
        )
        router = EngineRouter(start_engine, config, gpt, callbacks)
        ready = router.start()
        pb_utils.Logger.log_info(
            f"chattts_gpt: checkpoint {gpt.checkpoint}{' (UNTRAINED)' * gpt.untrained}, "
            f"{ready.computes}, {router.num_engines} engines, {ready.num_kv_blocks} KV blocks each"
        )
        return router

    def execute(self, requests: list[Any]) -> None:
        """Hand each request to the router and return; the sender thread answers."""
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
        """Cancel what is left, send the last responses, end the threads and then the metrics."""
        self._router.stop()
        self._events.put(None)
        self._snapshots.put(None)
        for thread in self._threads:
            thread.join()
        if self._metrics:
            self._metrics.close()

    def _accept(self, inputs: dict[str, np.ndarray[Any, Any]], reply: TritonReply) -> None:
        if "next" in inputs:
            self._events.put(NextCall(self._parser.named_id(inputs, "next"), reply))
            return
        if "cancel" in inputs:
            self._router.abort(self._parser.named_id(inputs, "cancel"))
            reply.send_nothing()
            return
        generation = self._parser.parse(inputs, time.monotonic())
        delivery = Pull(reply) if self._parser.is_pulled(inputs) else Push(reply)
        self._deliveries.add(generation.id, delivery, lambda: self._router.submit(generation))

    def _read_inputs(self, request: Any) -> dict[str, np.ndarray[Any, Any]]:
        """Copy the tensors that were given: Triton recycles their memory after execute."""
        inputs = {}
        for name in self._input_names:
            tensor = pb_utils.get_input_tensor_by_name(request, name)
            if tensor is not None:
                inputs[name] = tensor.as_numpy().copy()
        return inputs

    def _deliver(self) -> None:
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
                self._poll(now_s)
                next_poll_s = now_s + CANCEL_POLL_S

    def _poll(self, now_s: float) -> None:
        """Look for callers that have gone and engines that hang."""
        for request_id in self._deliveries.give_up(now_s):
            self._router.abort(request_id)
        self._router.tick()

    def _show_numbers(self) -> None:
        """Show what the engines report, and the queue before them."""
        while True:
            try:
                news = self._snapshots.get(timeout=QUEUE_POLL_S)
            except queue.Empty:
                pass
            else:
                if news is None:
                    return
                if self._metrics:
                    self._metrics.take_snapshot(*news)
            if self._metrics:
                self._metrics.take_queue(self._router.num_waiting, self._router.num_deaths)

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
            self._router.abort(event.request_id)

    def _answer_next(self, call: NextCall) -> None:
        try:
            self._deliveries.ask(call.request_id, call.reply)
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
            usage=(
                chunk.num_prompt_tokens,
                chunk.num_generated,
                round(chunk.queue_s * 1000),
                chunk.num_retries,
                round(chunk.mean_batch * 100),
            ),
            is_final=is_final,
        )

    def send_nothing(self) -> None:
        """Answer a call that generates nothing."""
        self._send(
            codes=None, token_ids=None, hidden=None, finish_reason="", usage=(0,) * 5, is_final=True
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


Event = Chunk | NextCall | None
"""What the sender thread waits for; None ends it."""


def _log_failure(trace: str) -> None:
    pb_utils.Logger.log_error(f"chattts_gpt: {trace}")


def _guarded(work: Callable[[], None]) -> None:
    """Run a thread's work; without it the model would be of no use."""
    try:
        work()
    except Exception:
        _die(traceback.format_exc())


def _die(trace: str) -> None:
    """End the process: Triton then fails what runs here, and nobody waits for ever."""
    _log_failure(trace)
    os._exit(1)


def _array(
    given: np.ndarray[Any, Any] | None, empty_shape: tuple[int, ...], dtype: Any
) -> np.ndarray[Any, Any]:
    return np.zeros(empty_shape, dtype) if given is None else np.ascontiguousarray(given, dtype)
