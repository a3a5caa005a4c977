"""Three ways to ask for speech, and the record of what each caller saw.

Each caller has a connection of its own, as callers on different machines have: gRPC would otherwise
join equal channels of a process to one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from chattts_client import ChatTTSClient, ChatTTSError
from tritonclient import grpc as triton
from tritonclient.utils import InferenceServerException

from .playback import Playback
from .records import Record
from .texts import Text

KINDS = ("stream", "unary", "http")
"""gRPC streaming; unary gRPC and HTTP, both by the model that answers once."""
LIMIT_S = 120.0
"""A request that takes longer has failed."""
_UNARY_MODEL = "chattts_unary"
_CHANNEL_OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
]


class Caller(Protocol):
    """Speaks texts one after the other."""

    def speak(self, text: Text, seed: int) -> Playback:
        """Ask for a text and wait for its end.

        Raises:
            ChatTTSError, InferenceServerException: it failed.
        """

    def close(self) -> None:
        """Give back the connection."""


class StreamCaller:
    """Reads the pieces of a gRPC stream as they come."""

    def __init__(self, url: str) -> None:
        self._client = ChatTTSClient(url, timeout_s=LIMIT_S, max_retries=0)

    def speak(self, text: Text, seed: int) -> Playback:
        """Ask for a text and wait for its last piece."""
        arrivals_s, durations_s = [], []
        started = time.perf_counter()
        with self._client.stream(text.text, voice=text.language, seed=seed) as stream:
            for chunk in stream:
                if len(chunk.samples):
                    arrivals_s.append(time.perf_counter() - started)
                    durations_s.append(chunk.duration_s)
        return Playback(arrivals_s, durations_s)

    def close(self) -> None:
        """Give back the connection."""
        self._client.close()


class HttpCaller:
    """Asks over HTTP: one answer per request."""

    def __init__(self, url: str) -> None:
        self._client = ChatTTSClient(url, transport="http", timeout_s=LIMIT_S, max_retries=0)

    def speak(self, text: Text, seed: int) -> Playback:
        """Ask for a text and wait for the whole of it."""
        audio = self._client.synthesize(text.text, voice=text.language, seed=seed)
        return Playback([audio.elapsed_s], [audio.duration_s])

    def close(self) -> None:
        """Give back the connection."""
        self._client.close()


class UnaryCaller:
    """Asks by unary gRPC, as a client of any KServe server does."""

    def __init__(self, url: str) -> None:
        self._client = triton.InferenceServerClient(url, channel_args=_CHANNEL_OPTIONS)

    def speak(self, text: Text, seed: int) -> Playback:
        """Ask for a text and wait for the whole of it."""
        inputs = [
            _tensor("text", "BYTES", np.array([text.text.encode()], dtype=object)),
            _tensor("voice", "BYTES", np.array([text.language.encode()], dtype=object)),
            _tensor("seed", "UINT64", np.array([seed], dtype=np.uint64)),
        ]
        started = time.perf_counter()
        result = self._client.infer(_UNARY_MODEL, inputs, client_timeout=LIMIT_S)
        samples, rate = result.as_numpy("audio"), result.as_numpy("sample_rate")
        json.loads(result.as_numpy("metadata").item())  # a caller reads it
        return Playback([time.perf_counter() - started], [len(samples) / int(rate.item())])

    def close(self) -> None:
        """Give back the connection."""
        self._client.close()


OPENERS: dict[str, Callable[[str], Caller]] = {
    "stream": StreamCaller,
    "unary": UnaryCaller,
    "http": HttpCaller,
}
"""How to open a caller of each kind at HOST:PORT."""


def call(caller: Caller, kind: str, text: Text, seed: int) -> Record:
    """Let a caller speak, and record what it saw; errors become records too."""
    started_s, clock = time.time(), time.perf_counter()
    playback, error = Playback((), ()), ""
    try:
        playback = caller.speak(text, seed)
    except (ChatTTSError, InferenceServerException) as failure:
        error = f"{type(failure).__name__}: {failure}"
    latency_s = time.perf_counter() - clock
    waits_s = playback.waits_s
    return Record(
        kind=kind,
        language=text.language,
        length=text.length,
        characters=len(text.text),
        started_s=started_s,
        latency_s=latency_s,
        first_audio_s=playback.arrivals_s[0] if playback.arrivals_s else 0.0,
        audio_s=sum(playback.durations_s),
        waits=len(waits_s),
        waited_s=sum(waits_s),
        error=error,
    )


def _tensor(name: str, datatype: str, data: Any) -> Any:
    return triton.InferInput(name, data.shape, datatype).set_data_from_numpy(data)
