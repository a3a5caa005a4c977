"""chattts: adapter between Triton and the pipeline. Text in, audio out, one thread per request.

Requests are checked in `execute`; a good one goes to a bounded pool, so `execute` never waits.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import triton_python_backend_utils as pb_utils
from chattts_pipeline import (
    WARM_UP_REQUEST,
    AudioEncoder,
    Caller,
    Checkpoint,
    FinishedCalls,
    Health,
    LowLatency,
    Services,
    Settings,
    Speech,
    SpeechError,
    SpeechPlan,
    SpeechRequest,
    Tensors,
    TokenChunk,
    Vocabulary,
    VocoderChunk,
    VocoderSizes,
    VoiceRegistry,
    child_error,
    outside_vocabulary_warning,
    spoken_segments,
    warm_up,
)

Answer = TypeVar("Answer")

# A drawn seed survives JSON readers that hold numbers as float64.
DRAWN_SEED_BITS = 53

# Request parameter of chattts_unary: server 2.51 replaces the code of a BLS child's error by
# INTERNAL, so the code has to travel in the message.
CODE_IN_ERRORS = "code_in_errors"

# Input of the warm-up request alone. config.pbtxt does not declare it, so no caller can send it.
WARM_UP_INPUT = "warm_up"

# What the log says when that speech failed; the embedded server's launcher looks for it.
WARM_UP_FAILED = "chattts: warm-up failed: "

# As long as the file exists that this environment variable names, new requests are refused. The
# supervisor sets it (embedded/supervisor.py).
DRAIN_FILE_VARIABLE = "CHATTTS_DRAIN_FILE"

RUNNING_METRIC = "chattts_running_requests"


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
            weights / "voices.json", self._checkpoint.hidden_size, self._checkpoint.default_voice
        )
        self._vocabulary = Vocabulary(weights / "tokenizer.json", weights / "domain_words.txt")
        self._input_names = [entry["name"] for entry in config["input"]]
        self._facts = {
            "model_version": args["model_version"],
            "checkpoint": self._checkpoint.checkpoint,
            "precision": self._checkpoint.precision,
            "untrained": self._checkpoint.untrained,
        }
        self._finished_calls = FinishedCalls()
        self._drain_file = os.environ.get(DRAIN_FILE_VARIABLE)
        self._version = int(args["model_version"])
        self._running = RunningGauge(args["model_version"])
        self._is_warm = threading.Event()
        self._is_ending = threading.Event()
        self._start_threads()

    def _start_threads(self) -> None:
        max_streams = self._settings.max_streams
        max_readers = max_streams * self._settings.parallel_segments
        self._slots = threading.BoundedSemaphore(max_streams)
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
        )
        self._health = Health(
            self._services.tokens, self._services.vocoder, self._services.vocoder_sizes
        )

    def execute(self, requests: Sequence[pb_utils.InferenceRequest]) -> None:
        for request in requests:
            responses = Responses(request, self._finished_calls, self._checkpoint.sample_rate)
            if pb_utils.get_input_tensor_by_name(request, WARM_UP_INPUT):
                answer = WarmUpAnswer(responses)
                self._streams.submit(self._guarded, answer, self._warm_up, answer)
            else:
                self._guarded(responses, self._accept, request, responses)

    def finalize(self) -> None:
        """Wait for the running streams, then for their readers, and for the health check."""
        self._is_ending.set()
        self._streams.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        self._health.close()
        self._finished_calls.clear()

    def _guarded(
        self, responses: Responses | WarmUpAnswer, work: Callable[..., None], *arguments: object
    ) -> None:
        """Run `work`; whatever goes wrong becomes the one error response of the request."""
        try:
            work(*arguments)
        except SpeechError as error:
            responses.fail(error.code, error.message)
        except Exception as error:
            pb_utils.Logger.log_error(f"chattts: {traceback.format_exc()}")
            responses.fail("INTERNAL", f"{type(error).__name__}: {error}")

    def _accept(self, request: pb_utils.InferenceRequest, responses: Responses) -> None:
        received_at = time.monotonic()
        request_id = request.request_id() or uuid.uuid4().hex
        try:
            wanted = SpeechRequest.from_inputs(
                self._inputs(request),
                max_text_characters=self._settings.max_text_characters,
                special_tokens=self._checkpoint.special_tokens,
            )
            if wanted.options.health:
                self._check_health(request_id, responses)
                return
            plan = self._plan(wanted, request_id)
        except ValueError as error:
            raise SpeechError("INVALID_ARG", str(error)) from error
        if wanted.options.list_voices:
            voices = {"request_id": request_id, "voices": self._voices.listing()}
            responses.send(np.zeros(0, np.float32), voices | self._facts, is_final=True)
            return
        responses.encode_as(wanted.encoding, wanted.stream)
        speech = Speech(plan, self._services, responses, self._facts, received_at)
        if not self._slots.acquire(blocking=False):
            limit = self._settings.max_streams
            raise SpeechError("UNAVAILABLE", f"{limit} requests are running; try again in 1 s")
        self._running.add(1)
        try:
            # after the gauge: whoever drains makes the file and then looks at the gauge
            self._refuse_if_draining()
        except SpeechError:
            self._release_slot()
            raise
        self._streams.submit(self._stream, speech, responses)

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
        healthy = {"request_id": request_id, "healthy": True}
        responses.send(np.zeros(0, np.float32), healthy | self._facts, is_final=True)

    def _warm_up(self, answer: WarmUpAnswer) -> None:
        if warm_up(self._speak_warm_up, put_off=answer.send, pause=self._is_ending.wait):
            answer.send()
            self._is_warm.set()

    def _speak_warm_up(self, caller: Caller) -> None:
        plan = self._plan(WARM_UP_REQUEST, "warm-up")
        speech = Speech(plan, self._services, caller, self._facts, time.monotonic())
        try:
            speech.run()
        finally:
            speech.drain()

    def _stream(self, speech: Speech, responses: Responses) -> None:
        try:
            self._guarded(responses, speech.run)
            speech.drain()
        finally:
            self._release_slot()

    def _release_slot(self) -> None:
        self._running.add(-1)
        self._slots.release()

    def _plan(self, request: SpeechRequest, request_id: str) -> SpeechPlan:
        voice = self._voices.find(request.voice)
        limit = self._settings.max_segment_characters if request.options.split else None
        texts = spoken_segments(request.text, limit)
        unknown_words = self._vocabulary.unknown_words(request.text)
        return SpeechPlan(
            request=request,
            texts=tuple(texts),
            voice=voice,
            seed=secrets.randbits(DRAWN_SEED_BITS) if request.seed is None else request.seed,
            request_id=request_id,
            speech_id=uuid.uuid4().hex,
            warnings=(outside_vocabulary_warning(unknown_words),) if unknown_words else (),
        )

    def _inputs(self, request: pb_utils.InferenceRequest) -> dict[str, npt.NDArray[Any] | None]:
        tensors = {
            name: pb_utils.get_input_tensor_by_name(request, name) for name in self._input_names
        }
        return {name: t.as_numpy() if t else None for name, t in tensors.items()}


class RunningGauge:
    """Requests that are being spoken, as a metric.

    Whoever stops the server reads it: server 2.51 refuses BLS calls from SIGTERM on, so running
    requests have to end before. One change at a time: two at once crash the server.
    """

    def __init__(self, version: str) -> None:
        self._family = pb_utils.MetricFamily(
            RUNNING_METRIC, "Requests that chattts is speaking", pb_utils.MetricFamily.GAUGE
        )
        self._metric = self._family.Metric(labels={"version": version})
        self._lock = threading.Lock()

    def add(self, change: int) -> None:
        with self._lock:
            self._metric.increment(change)


class Responses:
    """The responses of one request: audio in order, then exactly one with the final flag.

    Looking for a cancellation after the final flag would crash the server, so one lock serialises
    both and the sender is forgotten with the flag.
    """

    def __init__(
        self, request: pb_utils.InferenceRequest, finished_calls: FinishedCalls, sample_rate: int
    ) -> None:
        self._sender: pb_utils.InferenceResponseSender | None = request.get_response_sender()
        self._has_code_in_errors = CODE_IN_ERRORS in json.loads(request.parameters() or "{}")
        self._finished_calls = finished_calls
        self._sample_rate = sample_rate
        self._lock = threading.Lock()
        self._encoder = AudioEncoder("f32", sample_rate, is_streamed=False)

    def encode_as(self, encoding: str, is_streamed: bool) -> None:
        self._encoder = AudioEncoder(encoding, self._sample_rate, is_streamed)

    def is_cancelled(self) -> bool:
        with self._lock:
            return self._sender is not None and self._finished_calls.is_cancelled(self._sender)

    def send(
        self, samples: npt.NDArray[np.float32], metadata: Mapping[str, Any], is_final: bool
    ) -> None:
        audio, audio_bytes = self._encoder.encode(samples)
        tensors = [
            pb_utils.Tensor("audio", np.ascontiguousarray(audio, np.float32)),
            pb_utils.Tensor("audio_bytes", np.array([audio_bytes], np.object_)),
            pb_utils.Tensor("sample_rate", np.array([self._sample_rate], np.int32)),
            pb_utils.Tensor("is_final", np.array([is_final], np.bool_)),
            pb_utils.Tensor("metadata", _text(json.dumps(metadata, ensure_ascii=False))),
        ]
        self._send(pb_utils.InferenceResponse(tensors), is_final)

    def fail(self, code: str, message: str) -> None:
        if self._has_code_in_errors:
            message = f"{code}: {message}"
        error = pb_utils.TritonError(message, getattr(pb_utils.TritonError, code))
        self._send(pb_utils.InferenceResponse(error=error), is_final=True)

    def _send(self, response: pb_utils.InferenceResponse, is_final: bool) -> None:
        with self._lock:
            if self._sender is None:
                return
            sender, self._sender = self._sender, None if is_final else self._sender
            flags = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL if is_final else 0
            sender.send(response, flags)


class WarmUpAnswer:
    """The answer to the warm-up request; Triton waits for it before it calls this model ready."""

    def __init__(self, responses: Responses) -> None:
        self._responses = responses
        self._is_sent = False

    def send(self) -> None:
        """Let Triton go on."""
        self._responses.send(np.zeros(0, np.float32), {}, is_final=True)
        self._is_sent = True

    def fail(self, code: str, message: str) -> None:
        """Make Triton refuse this version; where it has gone on, end this process instead.

        A front that cannot speak must not look ready.
        """
        pb_utils.Logger.log_error(f"{WARM_UP_FAILED}{message}")
        if self._is_sent:
            os._exit(1)
        self._responses.fail(code, f"warm-up: {message}")


class TokenModel:
    """chattts_gpt through BLS: each chunk is a call of its own with one response.

    Reading several responses of one call is not safe in server 2.51: a thread that waits for the
    second takes two locks in the other order than the thread that makes the next call.
    """

    NAME = "chattts_gpt"
    OUTPUTS = ("hidden", "token_ids", "finish_reason", "usage")

    def __init__(self, version: int, finished_calls: FinishedCalls) -> None:
        self._version = version
        self._finished_calls = finished_calls

    def generate(self, inputs: Tensors) -> Iterator[TokenChunk]:
        chunk = self._call({**inputs, "pull": np.array([True])})
        while not chunk.finish_reason:
            yield chunk
            chunk = self._call({"next": inputs["id"]})
        yield chunk

    def cancel(self, request_id: str) -> None:
        self._call({"cancel": _text(request_id)})

    def _call(self, inputs: Tensors) -> TokenChunk:
        request = _bls_request(self.NAME, self._version, inputs, self.OUTPUTS)
        call = _exec(self.NAME, lambda: request.exec(decoupled=True))
        try:
            (response,) = call
        finally:
            self._finished_calls.add(call)
        _raise_error(self.NAME, response)
        hidden, token_ids, reason, usage = (_output(response, name) for name in self.OUTPUTS)
        return TokenChunk(hidden, token_ids, reason[0].decode(), int(usage[2]))


class Vocoder:
    """chattts_vocoder through BLS, one chunk per call; Triton batches the calls.

    A batch that the runtime refuses is an error for each request in it. So a call that fails in the
    runtime is made once more, which its state allows, and one at a time: what failed together does
    not meet again.
    """

    NAME = "chattts_vocoder"
    RUNTIME_ERROR = "onnx runtime error"
    """In the messages of the onnxruntime backend, and of its stand-in; not if a process died."""
    _second_try = threading.Lock()

    def __init__(self, version: int) -> None:
        self._version = version

    def decode(
        self, chunk: VocoderChunk
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        try:
            return self._call(chunk)
        except SpeechError as error:
            if self.RUNTIME_ERROR not in error.message:
                raise
            pb_utils.Logger.log_warn(f"chattts: tried again: {error.message}")
        with self._second_try:
            return self._call(chunk)

    def _call(
        self, chunk: VocoderChunk
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        inputs = {"hidden": chunk.hidden, "mask": chunk.mask, "state": chunk.state}
        rows = {name: array[np.newaxis] for name, array in inputs.items()}
        request = _bls_request(self.NAME, self._version, rows, ["audio", "next_state"])
        response = _exec(self.NAME, request.exec)
        _raise_error(self.NAME, response)
        return _output(response, "audio")[0], _output(response, "next_state")[0]


def _exec(model: str, call: Callable[[], Answer]) -> Answer:
    try:
        return call()
    except pb_utils.TritonModelException as error:
        raise child_error(model, str(error)) from error


def _bls_request(
    model: str, version: int, inputs: Tensors, outputs: Sequence[str]
) -> pb_utils.InferenceRequest:
    tensors = [pb_utils.Tensor(name, np.ascontiguousarray(array)) for name, array in inputs.items()]
    return pb_utils.InferenceRequest(
        model_name=model,
        model_version=version,
        inputs=tensors,
        requested_output_names=list(outputs),
        preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU),
    )


def _raise_error(model: str, response: pb_utils.InferenceResponse) -> None:
    if response.has_error():
        raise child_error(model, response.error().message())


def _output(response: pb_utils.InferenceResponse, name: str) -> npt.NDArray[Any]:
    """Copy an output: its memory goes back to Triton with the response."""
    tensor = pb_utils.get_output_tensor_by_name(response, name)
    if tensor is None:
        raise SpeechError("INTERNAL", f"output {name} is missing")
    return tensor.as_numpy().copy()


def _text(text: str) -> npt.NDArray[np.object_]:
    return np.array([text.encode()], np.object_)
