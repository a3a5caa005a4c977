"""The two clients: twins with the same surface, thin over streams and transports."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from ._answers import read_dry_run, read_voices
from ._exceptions import InvalidRequestError, RequestTimeoutError, ServerUnavailableError
from ._protocol import SpeechRequest, dry_run_request, speech_request, voices_request
from ._stream import AsyncSpeechStream, SpeechStream, async_only_response, only_response
from ._transport import DEFAULT_URLS, TransportName, open_async_transport, open_transport
from ._types import UNSET, Audio, NormalizedText, SpeechOptions, Unset, Voice

if TYPE_CHECKING:
    from typing_extensions import Unpack

DEFAULT_TIMEOUT_S = 60.0


class _Settings:
    """What both clients know before anything is sent."""

    def __init__(self, url: str | None, transport: TransportName, timeout_s: float | None) -> None:
        if transport not in DEFAULT_URLS:
            raise ValueError(f"transport: {transport!r} is neither 'grpc' nor 'http'")
        self.url = DEFAULT_URLS[transport] if url is None else url
        """HOST:PORT of the server."""
        if "://" in self.url:
            raise ValueError(f"url: {url!r} has a scheme; write HOST:PORT")
        self.transport = transport
        """grpc or http."""
        self.timeout_s = _checked(timeout_s)
        """Seconds that a call may take unless it says otherwise; None = no limit."""

    def _limit(self, timeout_s: float | None | Unset) -> float | None:
        return self.timeout_s if timeout_s is UNSET else _checked(timeout_s)

    def _stream_request(self, text: str, options: Mapping[str, object]) -> SpeechRequest:
        if self.transport == "http":
            message = "transport: HTTP gives one response per request; use 'grpc' to stream"
            raise InvalidRequestError(message, field="transport")
        return speech_request(text, options, stream=True)


class ChatTTSClient(_Settings):
    """Speaks through a ChatTTS server; safe for use by several threads.

    Every call ends within `timeout_s`, and raises `ChatTTSError` when it fails.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        transport: TransportName = "grpc",
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
    ) -> None:
        """Prepare a client; nothing is sent yet.

        Args:
            url: HOST:PORT. Default: localhost:8001 for gRPC, localhost:8000 for HTTP.
            transport: "grpc", or "http" (no streaming; needs the `http` extra).
            timeout_s: seconds that a call may take; None = no limit.

        Raises:
            ValueError: a malformed argument.
            ImportError: the `http` extra is not installed.
        """
        super().__init__(url, transport, timeout_s)
        self._transport = open_transport(self.transport, self.url)

    def synthesize(
        self,
        text: str,
        *,
        timeout_s: float | None | Unset = UNSET,
        **options: Unpack[SpeechOptions],
    ) -> Audio:
        """Speak a text and return the whole utterance.

        Args:
            text: what to say.
            timeout_s: seconds for this call; None = no limit. Default: the client's.
            options: see `SpeechOptions`.

        Raises:
            ChatTTSError: see its subclasses.
        """
        request = speech_request(text, options, stream=False)
        with self._start(request, timeout_s) as stream:
            return stream.result()

    def stream(
        self,
        text: str,
        *,
        timeout_s: float | None | Unset = UNSET,
        **options: Unpack[SpeechOptions],
    ) -> SpeechStream:
        """Speak a text and return its chunks as they are made. gRPC only.

        Use it as a context manager: leaving it cancels on the server what has not been read.

        Args:
            text: what to say.
            timeout_s: seconds until the last chunk, including the time that the caller spends
                between chunks; None = no limit. Default: the client's.
            options: see `SpeechOptions`.

        Raises:
            ChatTTSError: see its subclasses; most of them while iterating.
        """
        return self._start(self._stream_request(text, options), timeout_s)

    def normalize(
        self,
        text: str,
        *,
        timeout_s: float | None | Unset = UNSET,
        **options: Unpack[SpeechOptions],
    ) -> NormalizedText:
        """How a text would be spoken: segments, warnings and alignment; nothing is spoken.

        Args:
            text: what would be said.
            timeout_s: seconds for this call; None = no limit. Default: the client's.
            options: as for speech; those that the text front end does not read change nothing.

        Raises:
            ChatTTSError: see its subclasses.
        """
        call = self._transport.start(dry_run_request(text, options), self._limit(timeout_s))
        return read_dry_run(only_response(call))

    def list_voices(
        self, *, timeout_s: float | None | Unset = UNSET, model_version: str = ""
    ) -> tuple[Voice, ...]:
        """The voices that the server knows by name.

        Args:
            timeout_s: seconds for this call; None = no limit. Default: the client's.
            model_version: as in `SpeechOptions`.

        Raises:
            ChatTTSError: see its subclasses.
        """
        call = self._transport.start(voices_request(model_version), self._limit(timeout_s))
        return read_voices(only_response(call))

    def is_ready(self, *, timeout_s: float | None | Unset = UNSET) -> bool:
        """Whether the server answers and its speech model is loaded.

        Raises:
            ChatTTSError: something answers, but not as a Triton server does.
        """
        try:
            return self._transport.is_ready(self._limit(timeout_s))
        except (ServerUnavailableError, RequestTimeoutError):
            return False

    def close(self) -> None:
        """Give back the connection; running requests are cancelled."""
        self._transport.close()

    def __enter__(self) -> ChatTTSClient:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self, request: SpeechRequest, timeout_s: float | None | Unset) -> SpeechStream:
        call = self._transport.start(request, self._limit(timeout_s))
        return SpeechStream(call, request.request_id)


class AsyncChatTTSClient(_Settings):
    """The asynchronous twin of `ChatTTSClient`; belongs to the event loop of its first call."""

    def __init__(
        self,
        url: str | None = None,
        *,
        transport: TransportName = "grpc",
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
    ) -> None:
        """Prepare a client; nothing is sent yet. Arguments and errors as in `ChatTTSClient`."""
        super().__init__(url, transport, timeout_s)
        self._transport = open_async_transport(self.transport, self.url)

    async def synthesize(
        self,
        text: str,
        *,
        timeout_s: float | None | Unset = UNSET,
        **options: Unpack[SpeechOptions],
    ) -> Audio:
        """Speak a text and return the whole utterance; see `ChatTTSClient.synthesize`."""
        request = speech_request(text, options, stream=False)
        async with self._start(request, timeout_s) as stream:
            return await stream.result()

    def stream(
        self,
        text: str,
        *,
        timeout_s: float | None | Unset = UNSET,
        **options: Unpack[SpeechOptions],
    ) -> AsyncSpeechStream:
        """Speak a text and return its chunks as they are made; see `ChatTTSClient.stream`.

        Call it inside a running event loop; there is nothing to await before the iteration.
        """
        return self._start(self._stream_request(text, options), timeout_s)

    async def normalize(
        self,
        text: str,
        *,
        timeout_s: float | None | Unset = UNSET,
        **options: Unpack[SpeechOptions],
    ) -> NormalizedText:
        """How a text would be spoken; see `ChatTTSClient.normalize`."""
        call = self._transport.start(dry_run_request(text, options), self._limit(timeout_s))
        return read_dry_run(await async_only_response(call))

    async def list_voices(
        self, *, timeout_s: float | None | Unset = UNSET, model_version: str = ""
    ) -> tuple[Voice, ...]:
        """The voices that the server knows by name; see `ChatTTSClient.list_voices`."""
        call = self._transport.start(voices_request(model_version), self._limit(timeout_s))
        return read_voices(await async_only_response(call))

    async def is_ready(self, *, timeout_s: float | None | Unset = UNSET) -> bool:
        """Whether the server answers and its model is loaded; see `ChatTTSClient.is_ready`."""
        try:
            return await self._transport.is_ready(self._limit(timeout_s))
        except (ServerUnavailableError, RequestTimeoutError):
            return False

    async def close(self) -> None:
        """Give back the connections; running requests are cancelled."""
        await self._transport.close()

    async def __aenter__(self) -> AsyncChatTTSClient:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def _start(self, request: SpeechRequest, timeout_s: float | None | Unset) -> AsyncSpeechStream:
        call = self._transport.start(request, self._limit(timeout_s))
        return AsyncSpeechStream(call, request.request_id)


def _checked(timeout_s: float | None) -> float | None:
    if timeout_s is not None and not timeout_s > 0:
        message = f"timeout_s: {timeout_s!r} is not above 0; None means no limit"
        raise InvalidRequestError(message, field="timeout_s")
    return timeout_s
