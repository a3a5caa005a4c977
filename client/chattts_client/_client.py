"""The two clients: twins with the same surface, thin over streams and transports."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from ._answers import Reader, read_dry_run, read_voices
from ._cache import Shelf
from ._exceptions import RequestTimeoutError, ServerUnavailableError
from ._health import Health
from ._protocol import SpeechRequest, dry_run_request, speech_request, voices_request
from ._settings import ClientSettings
from ._stream import AsyncSpeechStream, SpeechStream, ask, ask_async
from ._transport import AsyncTransport, Transport, open_async_transport, open_transport
from ._types import UNSET, Audio, NormalizedText, SpeechOptions, Unset, Voice

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ChatTTSClient(ClientSettings):
    """Speaks through a ChatTTS server; safe for use by several threads.

    Every call ends within `timeout_s`, and raises `ChatTTSError` when it fails.
    """

    _transport: Transport

    def _open(self) -> None:
        self._transport = open_transport(self.transport, self._endpoint)

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
        return read_dry_run(self._ask(dry_run_request(text, options), timeout_s))

    def voices(
        self, *, timeout_s: float | None | Unset = UNSET, model_version: str = ""
    ) -> tuple[Voice, ...]:
        """The voices that the server knows by name.

        Args:
            timeout_s: seconds for this call; None = no limit. Default: the client's.
            model_version: as in `SpeechOptions`.

        Raises:
            ChatTTSError: see its subclasses.
        """
        return read_voices(self._ask(voices_request(model_version), timeout_s))

    def health(self, *, timeout_s: float | None | Unset = UNSET) -> Health:
        """Whether a server answers, would speak now, and follows this client's contract.

        Args:
            timeout_s: seconds for this call; None = no limit. Default: the client's.

        Raises:
            InvalidRequestError: `timeout_s` is wrong; a server that is not there raises nothing.
        """
        try:
            return _health(self.url, self._transport.is_ready(self._limit(timeout_s)))
        except (ServerUnavailableError, RequestTimeoutError):
            return _health(self.url, False)

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
        patience, shelf = self._patience(timeout_s), Shelf(self.cache, request)
        return SpeechStream(self._transport, request, patience, shelf)

    def _ask(self, request: SpeechRequest, timeout_s: float | None | Unset) -> Reader:
        return ask(self._transport, request, self._patience(timeout_s))


class AsyncChatTTSClient(ClientSettings):
    """The asynchronous twin of `ChatTTSClient`; belongs to the event loop of its first call."""

    _transport: AsyncTransport

    def _open(self) -> None:
        self._transport = open_async_transport(self.transport, self._endpoint)

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
        return read_dry_run(await self._ask(dry_run_request(text, options), timeout_s))

    async def voices(
        self, *, timeout_s: float | None | Unset = UNSET, model_version: str = ""
    ) -> tuple[Voice, ...]:
        """The voices that the server knows by name; see `ChatTTSClient.voices`."""
        return read_voices(await self._ask(voices_request(model_version), timeout_s))

    async def health(self, *, timeout_s: float | None | Unset = UNSET) -> Health:
        """Whether a server answers and would speak now; see `ChatTTSClient.health`."""
        try:
            return _health(self.url, await self._transport.is_ready(self._limit(timeout_s)))
        except (ServerUnavailableError, RequestTimeoutError):
            return _health(self.url, False)

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
        patience, shelf = self._patience(timeout_s), Shelf(self.cache, request)
        return AsyncSpeechStream(self._transport, request, patience, shelf)

    async def _ask(self, request: SpeechRequest, timeout_s: float | None | Unset) -> Reader:
        return await ask_async(self._transport, request, self._patience(timeout_s))


def _health(url: str, is_ready: bool) -> Health:
    return Health(
        url=url,
        live=is_ready,
        ready=is_ready,
        reason="" if is_ready else "no ready model answers",
        server_version="",
        contract=0,
        compatible=True,
    )
