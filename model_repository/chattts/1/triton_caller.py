"""Who asked chattts, through Triton: responses, cancellation."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import triton_python_backend_utils as pb_utils
from chattts_pipeline import (
    CONTRACT,
    AudioEncoder,
    FinalPause,
    FinishedCalls,
    LateEndings,
    RequestRecord,
    RunningGauge,
    Slot,
    trace_id,
)

# Request parameter of chattts_unary: server 2.51 replaces the code of a BLS child's error by
# INTERNAL, so the code has to travel in the message.
CODE_IN_ERRORS = "code_in_errors"

# Request parameter of chattts_unary too: a secret name of the request, by which a second one with
# nothing but STOP stops it. Server 2.51 passes no cancellation on to BLS children.
STOP_KEY, STOP = "stop_key", "stop"

# Request parameter of whoever traces: W3C Trace Context. Its trace id is logged with the request.
TRACEPARENT = "traceparent"

# What the log says when the first speech failed; the embedded server's launcher looks for it.
WARM_UP_FAILED = "chattts: warm-up failed: "
_STDERR = 2


class Responses:
    """The responses of one request: audio in order, then exactly one with the final flag.

    Looking for a cancellation after the final flag would crash the server, so one lock serialises
    both and the sender is forgotten with the flag. Before the flag the stream is quiet for a
    moment, for longer where the caller has gone (see final_pause.py). One thread at a time sends.
    """

    def __init__(
        self,
        request: pb_utils.InferenceRequest,
        finished_calls: FinishedCalls,
        late_endings: LateEndings,
        running: RunningGauge,
        sample_rate: int,
    ) -> None:
        self._sender: pb_utils.InferenceResponseSender | None = request.get_response_sender()
        parameters = json.loads(request.parameters() or "{}")
        self._has_code_in_errors = CODE_IN_ERRORS in parameters
        self.stop_key = str(parameters.get(STOP_KEY, ""))
        """By this the request can be stopped; empty: it cannot."""
        self.stops = str(parameters.get(STOP, ""))
        """The stop_key of the request that this one is to stop."""
        self.trace_id = trace_id(parameters.get(TRACEPARENT))
        """Of the caller's trace; empty: none was sent."""
        self.record: RequestRecord | None = None
        """Is told what is sent, of a request for speech."""
        self.slot: Slot | None = None
        """Freed just before the last response: who has it may come again at once."""
        self._is_stopped = False
        self._has_caller_gone = False
        self._finished_calls = finished_calls
        self._late_endings = late_endings
        self._running = running
        self._pause = FinalPause()
        self._sample_rate = sample_rate
        self._lock = threading.Lock()
        self._encoder = AudioEncoder("f32", sample_rate, is_streamed=False)

    def encode_as(self, encoding: str, is_streamed: bool) -> None:
        """Choose the form of the audio, before the first is sent."""
        self._encoder = AudioEncoder(encoding, self._sample_rate, is_streamed)

    def stop(self) -> None:
        """Count as cancelled from now on."""
        self._is_stopped = True

    def is_cancelled(self) -> bool:
        """Say whether the caller has gone; see FinishedCalls for what else asking does."""
        with self._lock:
            if self._sender is None:
                return False
            self._has_caller_gone = self._finished_calls.is_cancelled(self._sender)
            return self._has_caller_gone or self._is_stopped

    def send(
        self, samples: npt.NDArray[np.float32], metadata: Mapping[str, Any], is_final: bool
    ) -> None:
        """Send one piece of audio (S,); after the final one nothing more is sent."""
        audio, audio_bytes = self._encoder.encode(samples)
        tensors = [
            pb_utils.Tensor("audio", np.ascontiguousarray(audio, np.float32)),
            pb_utils.Tensor("audio_bytes", np.array([audio_bytes], np.object_)),
            pb_utils.Tensor("sample_rate", np.array([self._sample_rate], np.int32)),
            pb_utils.Tensor("is_final", np.array([is_final], np.bool_)),
            pb_utils.Tensor("metadata", _json({"contract": CONTRACT, **metadata})),
        ]
        self._send(pb_utils.InferenceResponse(tensors), is_final)
        if self.record:
            self.record.has_sent(len(samples))
            if is_final:
                self.record.end("OK")

    def fail(self, code: str, message: str) -> None:
        """End the request with an error; `code` as pb_utils.TritonError names it."""
        if self._has_code_in_errors:
            message = f"{code}: {message}"
        error = pb_utils.TritonError(message, getattr(pb_utils.TritonError, code))
        response = pb_utils.InferenceResponse(error=error)
        if self._has_caller_gone:
            self._late_endings.add(lambda: self._send(response, is_final=True))
        else:
            self._send(response, is_final=True)
        if self.record:
            self.record.end(code)

    def _send(self, response: pb_utils.InferenceResponse, is_final: bool) -> None:
        if is_final:
            self._pause.wait(self._running.count)
            if self.slot:
                self.slot.free()
        with self._lock:
            if self._sender is None:
                return
            sender, self._sender = self._sender, None if is_final else self._sender
            flags = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL if is_final else 0
            sender.send(response, flags)
            self._pause.has_sent()


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
        # not through Triton's logger: it writes later, and this process may be gone by then
        os.write(_STDERR, f"error: {WARM_UP_FAILED}{message}\n".encode())
        if self._is_sent:
            os._exit(1)
        self._responses.fail(code, f"warm-up: {message}")


def _json(value: Mapping[str, Any]) -> npt.NDArray[np.object_]:
    return np.array([json.dumps(value, ensure_ascii=False).encode()], np.object_)
