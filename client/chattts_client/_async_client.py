"""The asynchronous client; _client.py is its twin and documents each method."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeVar, overload

from ._answers import Reader, read_dry_run, read_voices
from ._ask import ask_async
from ._cache import Shelf
from ._exceptions import ChatTTSError
from ._health import Health, ModelInfo, async_answered, find_health, find_models
from ._many import speak_many_async
from ._metrics import MetricsSnapshot, fetch_metrics
from ._plan import DEFAULT_CONCURRENCY, Item, Plan, Progress
from ._protocol import SpeechRequest, dry_run_request, speech_request, voices_request
from ._settings import ClientSettings
from ._stream import AsyncSpeechStream
from ._transport import AsyncTransport, open_async_transport
from ._types import UNSET, Audio, NormalizedText, SpeechOptions, Unset, Voice

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class AsyncChatTTSClient(ClientSettings):
    """The asynchronous twin of `ChatTTSClient`; belongs to the event loop of its first call.

    In another loop, or in the child of a fork, it raises RuntimeError.
    """

    _transport: AsyncTransport

    def _open(self) -> None:
        self._transport = open_async_transport(self.transport, self._endpoint)
        self._loop: asyncio.AbstractEventLoop | None = None

    def _check_caller(self) -> None:
        super()._check_caller()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            message = (
                "no event loop is running: call it in a coroutine, with `await`, `async for` or "
                "`async with`; without one, ChatTTSClient does the same"
            )
            raise RuntimeError(message) from None
        if self._loop not in (None, loop):
            raise RuntimeError("the client belongs to another event loop; make one in each loop")
        self._loop = loop

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

    @overload
    def synthesize_many(
        self,
        items: Iterable[Item] | AsyncIterable[Item],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        on_progress: Progress | None = None,
        return_errors: Literal[False] = False,
        timeout_s: float | None | Unset = UNSET,
        **options: Unpack[SpeechOptions],
    ) -> AsyncGenerator[Audio, None]: ...

    @overload
    def synthesize_many(
        self,
        items: Iterable[Item] | AsyncIterable[Item],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        on_progress: Progress | None = None,
        return_errors: bool,
        timeout_s: float | None | Unset = UNSET,
        **options: Unpack[SpeechOptions],
    ) -> AsyncGenerator[Audio | ChatTTSError, None]: ...

    def synthesize_many(
        self,
        items: Iterable[Item] | AsyncIterable[Item],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        on_progress: Progress | None = None,
        return_errors: bool = False,
        timeout_s: float | None | Unset = UNSET,
        **options: Unpack[SpeechOptions],
    ) -> AsyncGenerator[Audio | ChatTTSError, None]:
        """Speak many texts at once, in their order; see `ChatTTSClient.synthesize_many`.

        Leaving early stops the rest once the generator is closed: `contextlib.aclosing` does so.
        Items may come from an asynchronous iterable, whose waiting holds up nothing; while a
        synchronous one has to wait for its next item, the whole loop does.
        """
        self._limit(timeout_s)
        plan = Plan(items, dict(options), concurrency, on_progress, return_errors)
        return speak_many_async(
            plan,
            lambda text, own: self._start(speech_request(text, own, stream=False), timeout_s),
        )

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
        return await self._ask(dry_run_request(text, options), read_dry_run, timeout_s)

    async def voices(
        self, *, timeout_s: float | None | Unset = UNSET, model_version: str = ""
    ) -> tuple[Voice, ...]:
        """The voices that the server knows by name; see `ChatTTSClient.voices`."""
        return await self._ask(voices_request(model_version), read_voices, timeout_s)

    async def models(self, *, timeout_s: float | None | Unset = UNSET) -> tuple[ModelInfo, ...]:
        """The models of this project that the server has; see `ChatTTSClient.models`."""
        patience = self._patience(timeout_s)
        return await async_answered(
            find_models(), lambda asked: self._transport.ask(asked, patience.left_s())
        )

    async def health(self, *, timeout_s: float | None | Unset = UNSET) -> Health:
        """Whether a server answers and would speak now; see `ChatTTSClient.health`."""
        patience = self._patience(timeout_s)
        return await async_answered(
            find_health(self.url), lambda asked: self._transport.ask(asked, patience.left_s())
        )

    async def metrics_snapshot(self, *, timeout_s: float | None | Unset = UNSET) -> MetricsSnapshot:
        """What the server's metrics say now; see `ChatTTSClient.metrics_snapshot`."""
        return await asyncio.to_thread(fetch_metrics, self.metrics_url, self._limit(timeout_s))

    async def close(self) -> None:
        """Give back the connections; running requests are cancelled."""
        if not self._process.is_left:
            await self._transport.close()
        self._is_closed = True

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

    async def _ask(
        self, request: SpeechRequest, read: Callable[[Reader], T], timeout_s: float | None | Unset
    ) -> T:
        try:
            return read(await ask_async(self._transport, request, self._patience(timeout_s)))
        except ChatTTSError as error:
            error.request_id = error.request_id or request.request_id
            raise
