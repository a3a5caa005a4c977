"""What has arrived of one utterance: the rules about order, end and clock that both twins share."""

from __future__ import annotations

import copy
import time
from dataclasses import fields

import numpy as np

from ._answers import Reader, read_chunk
from ._exceptions import (
    ChatTTSError,
    ProtocolError,
    RequestCancelledError,
    ServerUnavailableError,
)
from ._process import Process
from ._types import Audio, AudioChunk, Summary

_CUT_HINT = "Send it again for all of it; health() says whether the server is there again."


class Receiver:
    """What has arrived so far: checks the order and keeps the clock."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.process = Process()
        """Where the stream was made: in the child of a fork nobody reads it."""
        self._start_s = time.perf_counter()
        self._first_audio_s: float | None = None
        self._elapsed_s = 0.0
        self._chunks: list[AudioChunk] = []
        self._is_kept = False
        self._audio: Audio | None = None
        self._failure: ChatTTSError | None = None

    def add(self, reader: Reader | None) -> AudioChunk:
        """Decode the next response.

        Raises:
            ProtocolError: it is malformed, or the server has closed the stream instead.
        """
        if reader is None:
            raise ProtocolError("the stream ended without a final response")
        return self._take(read_chunk(reader, len(self._chunks)))

    def add_kept(self, chunk: AudioChunk) -> AudioChunk:
        """Take a whole utterance out of the cache instead of all responses."""
        self._is_kept = True
        return self._take(chunk)

    def _take(self, chunk: AudioChunk) -> AudioChunk:
        self._elapsed_s = time.perf_counter() - self._start_s
        if len(chunk.samples) and not self.has_audio:
            self._first_audio_s = self._elapsed_s
        self._chunks.append(chunk)
        return chunk

    def check_over(self, reader: Reader | None) -> None:
        """Take what comes after the final response: the end.

        Raises:
            ProtocolError: another response.
        """
        if reader is not None:
            raise ProtocolError("a response came after the final one")

    def fail(self, error: ChatTTSError) -> None:
        """Add to an error what this stream knows, and keep it for whoever reads on.

        What failed after audio was handed over is never tried again, and says how much came.
        """
        error.request_id = error.request_id or self.request_id
        if self.has_audio:
            error.args = (f"{error}; the speech is cut {self._progress}",)
            error.retryable = False
            if isinstance(error, ServerUnavailableError):  # its hint is about who never answered
                error.hint = _CUT_HINT
        self._failure = copy.copy(error)

    def check(self) -> None:
        """Raise the error that has ended this utterance, if one has.

        Each time it is a copy: a traceback would refer to this object, which holds the error.
        """
        if self._failure is not None:
            raise copy.copy(self._failure)

    def audio(self) -> Audio:
        """Everything received, as one utterance.

        Raises:
            RequestCancelledError: the stream was closed before its end.
        """
        if self._audio is None:
            self._audio = self._assemble()
        return self._audio

    def _assemble(self) -> Audio:
        summary = self._chunks[-1].summary if self._chunks else None
        if summary is None:
            message = f"the stream was closed before its end, {self._progress}"
            raise RequestCancelledError(message, request_id=self.request_id)
        samples = self._chunks[0].samples  # one response: its samples as they came, no copy
        if len(self._chunks) > 1:
            samples = np.concatenate([chunk.samples for chunk in self._chunks])
            samples.flags.writeable = False
        return Audio(
            **{field.name: getattr(summary, field.name) for field in fields(Summary)},
            samples=samples,
            sample_rate=self._chunks[-1].sample_rate,
            time_to_first_audio_s=self._first_audio_s,
            elapsed_s=self._elapsed_s,
            from_cache=self._is_kept,
        )

    @property
    def has_begun(self) -> bool:
        """True once anything has arrived."""
        return bool(self._chunks)

    @property
    def has_audio(self) -> bool:
        """True once samples have arrived."""
        return any(len(chunk.samples) for chunk in self._chunks)

    @property
    def is_complete(self) -> bool:
        """True once the final response has arrived."""
        return bool(self._chunks) and self._chunks[-1].is_final

    @property
    def _progress(self) -> str:
        return f"after {sum(chunk.duration_s for chunk in self._chunks):.2f} s of audio"
