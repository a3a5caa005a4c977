"""Answers and scripts of the scripted server: what it says, and when it says nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE_HZ = 24_000
SUMMARY: dict[str, Any] = {
    "finish_reasons": ["eos"],
    "voice": "en",
    "text_segments": ["hello"],
    "warnings": [],
    "timings": {"queue_ms": 1, "first_audio_ms": 20.5, "total_ms": 40, "audio_s": 0.5},
    "model_version": "1",
    "checkpoint": "demo",
    "precision": "int8",
    "latency": "exact",
    "untrained": False,
}
Outputs = dict[str, NDArray[Any]]
Inputs = dict[str, Any]


def outputs(samples: NDArray[np.float32], *, is_final: bool, **metadata: object) -> Outputs:
    """The outputs of one response of the speech models."""
    common = {"request_id": "r1", "segment_index": 0, "num_segments": 1, "seed": 7}
    content = {**common, **(SUMMARY if is_final else {}), **metadata}
    return {
        "audio": samples,
        "audio_bytes": np.array([b""], dtype=np.object_),
        "sample_rate": np.array([SAMPLE_RATE_HZ], dtype=np.int32),
        "is_final": np.array([is_final]),
        "metadata": np.array([json.dumps(content).encode()], dtype=np.object_),
    }


def utterance(count: int = 3, samples_per_chunk: int = 256) -> list[Outputs]:
    """The responses of a good request: a ramp of samples in `count` pieces."""
    ramp = np.linspace(-1, 1, count * samples_per_chunk, dtype=np.float32)
    pieces = np.split(ramp, count)
    return [outputs(piece, is_final=index == count - 1) for index, piece in enumerate(pieces)]


def voices_answer() -> Outputs:
    """The response to a request for the list of voices."""
    voices = [
        {
            "name": "en",
            "language": "en",
            "description": "English, calm",
            "kind": "speaker",
            "languages": ["en"],
            "gender": "female",
            "styles": ["calm"],
            "aliases": ["alloy"],
            "auditioned": False,
            "license": "CC0-1.0",
            "provenance": {"method": "random", "seed": "1"},
            "sha256": "0" * 64,
        }
    ]
    return outputs(np.zeros(0, dtype=np.float32), is_final=True, voices=voices)


def health_answer(**metadata: object) -> Outputs:
    """The response to the question whether the models behind answer."""
    facts = {"healthy": True, "checkpoint": "demo", "precision": "int8", "untrained": False}
    return outputs(np.zeros(0, dtype=np.float32), is_final=True, **facts, **metadata)


def dry_run_answer() -> Outputs:
    """The response to a request for what a text would be spoken as."""
    prepared = {
        "segments": [
            {"text": "at three ", "start": 0, "end": 5, "estimated_s": 0.4, "pause_ms": 500}
        ],
        "alignment": [
            {"start": 0, "end": 3, "text": "at ", "spoken": "at "},
            {"start": 3, "end": 4, "text": "3", "spoken": "three "},
            {"start": 4, "end": 5, "text": "☃", "spoken": ""},
        ],
        "warnings": [
            {
                "code": "dropped_symbol",
                "message": "a symbol that has no reading was left out",
                "start": 4,
                "end": 5,
                "text": "☃",
                "spoken": "",
            }
        ],
        "estimated_s": 1,
    }
    return outputs(np.zeros(0, dtype=np.float32), is_final=True, **prepared)


class Failure(Exception):
    """What a script raises to answer with an error: a Triton code (gRPC) or a status (HTTP)."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class BrokenCall(Failure):
    """What a script raises to end the gRPC call itself with a status."""


Script = Callable[[Inputs, "Request"], Iterator[Outputs]]
WAIT_S = 10.0
"""How long a script waits for its caller to leave, and a test for a script."""


class Request:
    """One request as the server saw it."""

    def __init__(
        self, request_id: str, model: str, version: str, headers: Mapping[str, str]
    ) -> None:
        self.request_id = request_id
        self.model = model
        self.version = version
        """Empty: the server's choice."""
        self.headers = headers
        self.cancelled = threading.Event()
        """Set once the caller has left."""
        self.stop_key = ""
        self.is_stopped = False
        """Whether another request asked for the end, before the call was over."""


def fail(failure: Failure, after: int = 0) -> Script:
    """A script that sends `after` chunks and then fails."""

    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        yield from utterance(after + 1)[:after]
        raise failure

    return script


def endless(inputs: Inputs, request: Request) -> Iterator[Outputs]:
    """Sends one chunk, then waits until the caller has left."""
    yield utterance()[0]
    request.cancelled.wait(WAIT_S)


def silent(inputs: Inputs, request: Request) -> Iterator[Outputs]:
    """Sends nothing and waits until the caller has left."""
    request.cancelled.wait(WAIT_S)
    yield from ()
