"""The synchronous client, thin over streams and transports; _async_client.py is its twin."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeVar, overload

from ._answers import Reader, read_dry_run, read_voices
from ._ask import ask
from ._cache import Shelf
from ._exceptions import ChatTTSError
from ._health import Health, ModelInfo, answered, find_health, find_models
from ._many import speak_many
from ._metrics import MetricsSnapshot, fetch_metrics
from ._plan import DEFAULT_CONCURRENCY, Item, Plan, Progress
from ._protocol import SpeechRequest, dry_run_request, speech_request, voices_request
from ._settings import ClientSettings
from ._stream import SpeechStream
from ._transport import Transport, open_transport
from ._types import UNSET, Audio, NormalizedText, SpeechOptions, Unset, Voice

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class ChatTTSClient(ClientSettings):
    """Speaks through a ChatTTS server; safe for use by several threads.

    Every call ends within `timeout_s`, and raises `ChatTTSError` when it fails. After a fork the
    child needs a client of its own: this one raises RuntimeError there.
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

    @overload
    def synthesize_many(
        self,
        items: Iterable[Item],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        on_progress: Progress | None = None,
        return_errors: Literal[False] = False,
        timeout_s: float | None | Unset = UNSET,
        **options: Unpack[SpeechOptions],
    ) -> Generator[Audio, None, None]: ...

    @overload
    def synthesize_many(
        self,
        items: Iterable[Item],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        on_progress: Progress | None = None,
        return_errors: bool,
        timeout_s: float | None | Unset = UNSET,
        **options: Unpack[SpeechOptions],
    ) -> Generator[Audio | ChatTTSError, None, None]: ...

    def synthesize_many(
        self,
        items: Iterable[Item],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        on_progress: Progress | None = None,
        return_errors: bool = False,
        timeout_s: float | None | Unset = UNSET,
        **options: Unpack[SpeechOptions],
    ) -> Generator[Audio | ChatTTSError, None, None]:
        """Speak many texts at once and give their utterances in the order of the texts.

        Nothing is sent before the first one is asked for. Leaving early stops the rest on the
        server; `contextlib.closing` around the generator says when.

        Args:
            items: texts, or pairs of a text and options of its own; read only a little ahead, in
                another thread. What they raise is raised after the utterances before it; a
                generator is closed with this one.
            concurrency: how many are spoken at once.
            on_progress: takes how many have ended so far, well or not; called between the results.
            return_errors: True gives an error in the place of its utterance. False raises it when
                its turn has come, and stops the rest.
            timeout_s: seconds for each utterance, from its start; None = no limit. Default: the
                client's.
            options: for all texts; see `SpeechOptions`.

        Raises:
            InvalidRequestError: a wrong argument, at once.
            ChatTTSError: see its subclasses; while iterating.
        """
        self._limit(timeout_s)
        plan = Plan(items, dict(options), concurrency, on_progress, return_errors)
        return speak_many(
            plan,
            lambda text, own: self._start(speech_request(text, own, stream=False), timeout_s),
        )

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
        return self._ask(dry_run_request(text, options), read_dry_run, timeout_s)

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
        return self._ask(voices_request(model_version), read_voices, timeout_s)

    def models(self, *, timeout_s: float | None | Unset = UNSET) -> tuple[ModelInfo, ...]:
        """The models of this project that the server has, each version by itself.

        Asked once, without retries: the answer is how it is now.

        Args:
            timeout_s: seconds for all questions together; None = no limit. Default: the client's.

        Raises:
            ChatTTSError: see its subclasses.
        """
        patience = self._patience(timeout_s)
        return answered(find_models(), lambda asked: self._transport.ask(asked, patience.left_s()))

    def health(self, *, timeout_s: float | None | Unset = UNSET) -> Health:
        """Whether a server answers, would speak now, and follows this client's contract.

        Asked once, without retries: the answer is how it is now.

        Args:
            timeout_s: seconds for all questions together; None = no limit. Default: the client's.

        Raises:
            InvalidRequestError: `timeout_s` is wrong; a server that is not there raises nothing.
        """
        patience = self._patience(timeout_s)
        return answered(
            find_health(self.url), lambda asked: self._transport.ask(asked, patience.left_s())
        )

    def metrics_snapshot(self, *, timeout_s: float | None | Unset = UNSET) -> MetricsSnapshot:
        """What the server's metrics say now; asked at `metrics_url` over plain HTTP.

        Asked once, without retries: the answer is how it is now.

        Args:
            timeout_s: seconds for this call; None = no limit. Default: the client's.

        Raises:
            ChatTTSError: see its subclasses.
        """
        return fetch_metrics(self.metrics_url, self._limit(timeout_s))

    def close(self) -> None:
        """Give back the connection; running requests are cancelled."""
        if not self._process.is_left:
            self._transport.close()
        self._is_closed = True

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

    def _ask(
        self, request: SpeechRequest, read: Callable[[Reader], T], timeout_s: float | None | Unset
    ) -> T:
        try:
            return read(ask(self._transport, request, self._patience(timeout_s)))
        except ChatTTSError as error:
            error.request_id = error.request_id or request.request_id
            raise
