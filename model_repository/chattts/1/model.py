"""chattts: adapter between Triton and the pipeline. Text in, audio out, one thread per request.

Requests are checked in `execute`; a good one goes to a bounded pool, so `execute` never waits.
"""

from __future__ import annotations

import json
import os
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import triton_python_backend_utils as pb_utils
from chattts_pipeline import (
    WARM_UP_REQUEST,
    Caller,
    Checkpoint,
    FinishedCalls,
    Health,
    LateEndings,
    LowLatency,
    Planner,
    RetriedSpeech,
    Services,
    Settings,
    Slot,
    Slots,
    Speech,
    SpeechError,
    SpeechRequest,
    Vocabulary,
    VocoderSizes,
    ending_where_hung,
    read_lexicon,
    warm_up,
)
from chattts_voices import Voice, VoiceRegistry
from triton_caller import Responses, WarmUpAnswer
from triton_models import TokenModel, Vocoder
from triton_records import Records, log_failure

# How often a waiting request looks whether its caller has gone. A look costs 0.05 ms of the one
# thread that Triton has for this model, so with many requests each looks less often.
CANCEL_POLL_S = 0.01
CANCEL_POLL_PER_REQUEST_S = 0.001

Result = TypeVar("Result")

# Input of the warm-up request alone. config.pbtxt does not declare it, so no caller can send it.
WARM_UP_INPUT = "warm_up"

# As long as the file exists that this environment variable names, new requests are refused. The
# supervisor sets it (embedded/supervisor.py).
DRAIN_FILE_VARIABLE = "CHATTTS_DRAIN_FILE"


class TritonPythonModel:
    """One front; its instances share nothing."""

    def initialize(self, args: Mapping[str, str]) -> None:
        config = json.loads(args["model_config"])
        parameters = config.get("parameters", {})
        self._settings = Settings.from_parameters(
            {key: value["string_value"] for key, value in parameters.items()}
        )
        weights = Path(args["model_repository"]) / args["model_version"] / "weights"
        self._checkpoint = Checkpoint.from_file(weights / "checkpoint.json")
        self._voices = VoiceRegistry(
            weights / "voices",
            self._checkpoint.hidden_size,
            self._checkpoint.default_voice,
            pb_utils.Logger.log_warn,
        )
        self._vocabulary = Vocabulary(weights / "tokenizer.json", weights / "domain_words.txt")
        self._planner = Planner(
            self._settings,
            self._checkpoint,
            self._voices,
            self._vocabulary,
            _lexicon(weights / "lexicon.json"),
        )
        self._input_names = [entry["name"] for entry in config["input"]]
        self._facts = {
            "model_version": args["model_version"],
            "checkpoint": self._checkpoint.checkpoint,
            "precision": self._checkpoint.precision,
            "untrained": self._checkpoint.untrained,
        }
        self._finished_calls = FinishedCalls()
        self._late_endings = LateEndings()
        self._drain_file = os.environ.get(DRAIN_FILE_VARIABLE)
        self._version = int(args["model_version"])
        self._records = Records(self._settings, self._facts, self._checkpoint.sample_rate)
        self._running = self._records.running
        self._stoppable: dict[str, Responses] = {}
        self._is_warm = threading.Event()
        self._is_ending = threading.Event()
        self._start_threads()

    def _start_threads(self) -> None:
        max_streams = self._settings.max_streams
        max_readers = max_streams * self._settings.parallel_segments
        self._slots = Slots(max_streams)
        self._streams = ThreadPoolExecutor(max_streams, "stream")
        self._readers = ThreadPoolExecutor(max_readers, "reader")
        self._services = Services(
            TokenModel(self._version, self._finished_calls),
            Vocoder(self._version),
            self._readers,
            VocoderSizes(
                self._checkpoint.context_steps,
                self._checkpoint.samples_per_step,
                self._checkpoint.hidden_size,
                self._checkpoint.vocoder_state_size,
            ),
            self._vocabulary.decode_refined,
            self._settings.parallel_segments,
            self._checkpoint.sample_rate,
            LowLatency(
                self._settings.low_latency_lookahead_steps, self._settings.low_latency_first_steps
            ),
            lambda: max(CANCEL_POLL_S, CANCEL_POLL_PER_REQUEST_S * self._running.count),
        )
        self._health = Health(
            self._services.tokens, self._services.vocoder, self._services.vocoder_sizes
        )

    def execute(self, requests: Sequence[pb_utils.InferenceRequest]) -> None:
        for request in requests:
            responses = Responses(
                request,
                self._finished_calls,
                self._late_endings,
                self._running,
                self._checkpoint.sample_rate,
            )
            if pb_utils.get_input_tensor_by_name(request, WARM_UP_INPUT):
                answer = WarmUpAnswer(responses)
                self._streams.submit(self._guarded, answer, self._warm_up, answer)
            elif responses.stops:
                self._stop(responses)
            else:
                self._guarded(responses, self._accept, request, responses)

    def finalize(self) -> None:
        """Wait for the running streams, then for their readers, and for the health check."""
        self._is_ending.set()
        self._streams.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        self._health.close()
        self._late_endings.close()
        self._records.close()
        self._finished_calls.clear()

    def _guarded(
        self, responses: Responses | WarmUpAnswer, work: Callable[..., Result], *arguments: object
    ) -> Result | None:
        """Run `work`; whatever goes wrong becomes the one error response of the request."""
        try:
            return work(*arguments)
        except SpeechError as error:
            responses.fail(error.code, error.message)
        except Exception as error:
            log_failure(traceback.format_exc())
            responses.fail("INTERNAL", f"{type(error).__name__}: {error}")
        return None

    def _accept(self, request: pb_utils.InferenceRequest, responses: Responses) -> None:
        received_at = time.monotonic()
        request_id = request.request_id() or uuid.uuid4().hex
        record = self._records.open(request_id, responses.trace_id, received_at)
        responses.record = record
        wanted = _checked(
            SpeechRequest.from_inputs,
            self._inputs(request),
            self._settings.max_text_characters,
            self._checkpoint.special_tokens,
        )
        record.request = wanted
        if not wanted.options.asks_for_speech:
            responses.record = None
        if wanted.options.health:
            self._check_health(request_id, responses)
        elif wanted.options.list_voices:
            self._tell(request_id, responses, self._voices.listing())
        else:
            responses.slot = self._take_slot()
            if responses.stop_key:
                self._stoppable[responses.stop_key] = responses
            self._streams.submit(self._stream, wanted, request_id, responses, received_at)

    def _take_slot(self) -> Slot:
        slot = self._slots.take()
        if slot is None:
            limit = self._settings.max_streams
            raise SpeechError("UNAVAILABLE", f"{limit} requests are running; try again in 1 s")
        self._running.add(1)
        try:
            # after the gauge: whoever drains makes the file and then looks at the gauge
            self._refuse_if_draining()
        except SpeechError:
            self._leave(slot)
            raise
        return slot

    def _tell(self, request_id: str, responses: Responses, answer: Mapping[str, Any]) -> None:
        """Answer without speech."""
        metadata = {"request_id": request_id, **answer, **self._facts}
        responses.send(np.zeros(0, np.float32), metadata, is_final=True)

    def _stop(self, responses: Responses) -> None:
        running = self._stoppable.get(responses.stops)
        if running:
            running.stop()
        responses.send(np.zeros(0, np.float32), {"is_running": bool(running)}, is_final=True)

    def _refuse_if_draining(self) -> None:
        if self._drain_file and os.path.exists(self._drain_file):
            raise SpeechError("UNAVAILABLE", "the server is shutting down; try another one")

    def _check_health(self, request_id: str, responses: Responses) -> None:
        """Answer from another thread; neither a running request nor bounded by their number."""
        self._refuse_if_draining()
        self._health.submit(
            lambda: self._guarded(responses, self._answer_health, request_id, responses)
        )

    def _answer_health(self, request_id: str, responses: Responses) -> None:
        if not self._is_warm.is_set():
            raise SpeechError("UNAVAILABLE", "the first speech has not ended; try again in 1 s")
        self._health.ask()
        # not for its answer: it lets go of the finished calls, see FinishedCalls
        responses.is_cancelled()
        self._tell(request_id, responses, {"healthy": True})

    def _warm_up(self, answer: WarmUpAnswer) -> None:
        if warm_up(self._speak_warm_up, put_off=answer.send, pause=self._is_ending.wait):
            answer.send()
            self._is_warm.set()

    def _speak_warm_up(self, caller: Caller) -> None:
        plan = self._planner.plan(WARM_UP_REQUEST, "warm-up", Voice(""))
        speech = Speech(plan, self._services, caller, self._facts, time.monotonic())
        with ending_where_hung():
            try:
                speech.run()
            finally:
                speech.drain()

    def _stream(
        self, wanted: SpeechRequest, request_id: str, responses: Responses, received_at: float
    ) -> None:
        try:
            speech = self._guarded(
                responses, self._begin, wanted, request_id, responses, received_at
            )
            if speech:
                self._guarded(responses, speech.run)
                speech.drain()
        finally:
            self._stoppable.pop(responses.stop_key, None)
            self._leave(responses.slot)

    def _begin(
        self, wanted: SpeechRequest, request_id: str, responses: Responses, received_at: float
    ) -> Speech | RetriedSpeech | None:
        """Work out what is to be said; None: nothing, the request is answered."""
        if wanted.options.dry_run:
            self._tell(request_id, responses, _checked(self._planner.dry_run, wanted))
            return None
        plan = _checked(self._planner.plan, wanted, request_id)
        responses.encode_as(wanted.encoding, wanted.stream)
        kind = RetriedSpeech if wanted.options.retry_quality else Speech
        speech = kind(plan, self._services, responses, self._facts, received_at)
        if responses.record:
            responses.record.progress = speech.progress
        return speech

    def _leave(self, slot: Slot | None) -> None:
        """Count as ended, and free the slot where the last response has not done so."""
        self._running.add(-1)
        if slot:
            slot.free()

    def _inputs(self, request: pb_utils.InferenceRequest) -> dict[str, npt.NDArray[Any] | None]:
        tensors = {
            name: pb_utils.get_input_tensor_by_name(request, name) for name in self._input_names
        }
        return {name: t.as_numpy() if t else None for name, t in tensors.items()}


def _lexicon(path: Path) -> dict[str, str]:
    """Read the operator's lexicon; a broken one is left out, since the rest can be served."""
    try:
        return read_lexicon(path)
    except (OSError, ValueError) as error:
        pb_utils.Logger.log_error(f"chattts: no lexicon: {error}")
        return {}


def _checked(work: Callable[..., Result], *arguments: object) -> Result:
    """Run `work`, which says by ValueError what is wrong with the request."""
    try:
        return work(*arguments)
    except ValueError as error:
        raise SpeechError("INVALID_ARG", str(error)) from error
