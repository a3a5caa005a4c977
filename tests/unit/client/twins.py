"""Both clients behind one synchronous face, so that each behaviour is tested on each twin."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from chattts_client import (
    AsyncChatTTSClient,
    Audio,
    AudioChunk,
    ChatTTSClient,
    ChatTTSError,
    Health,
    MetricsSnapshot,
    ModelInfo,
    NormalizedText,
    Voice,
)
from chattts_client._settings import TransportName


class SyncTwin:
    """Calls a `ChatTTSClient`."""

    def __init__(self, url: str, transport: TransportName = "grpc", **settings: Any) -> None:
        self._arguments: dict[str, Any] = {"url": url, "transport": transport, **settings}

    def synthesize(self, text: str, **options: Any) -> Audio:
        with ChatTTSClient(**self._arguments) as client:
            return client.synthesize(text, **options)

    def stream(self, text: str, **options: Any) -> tuple[list[AudioChunk], Audio]:
        with ChatTTSClient(**self._arguments) as client, client.stream(text, **options) as stream:
            return list(stream), stream.result()

    def stream_one(self, text: str, **options: Any) -> AudioChunk:
        """Take the first chunk and leave."""
        with ChatTTSClient(**self._arguments) as client, client.stream(text, **options) as stream:
            return next(stream)

    def synthesize_many(self, items: Any, **options: Any) -> Iterator[Audio | ChatTTSError]:
        with (
            ChatTTSClient(**self._arguments) as client,
            contextlib.closing(client.synthesize_many(items, **options)) as audios,
        ):
            yield from audios

    def normalize(self, text: str, **options: Any) -> NormalizedText:
        with ChatTTSClient(**self._arguments) as client:
            return client.normalize(text, **options)

    def voices(self, **options: Any) -> tuple[Voice, ...]:
        with ChatTTSClient(**self._arguments) as client:
            return client.voices(**options)

    def models(self, **options: Any) -> tuple[ModelInfo, ...]:
        with ChatTTSClient(**self._arguments) as client:
            return client.models(**options)

    def metrics_snapshot(self, **options: Any) -> MetricsSnapshot:
        with ChatTTSClient(**self._arguments) as client:
            return client.metrics_snapshot(**options)

    def health(self, **options: Any) -> Health:
        with ChatTTSClient(**self._arguments) as client:
            return client.health(**options)


class AsyncTwin:
    """Calls an `AsyncChatTTSClient` in a loop of its own."""

    def __init__(self, url: str, transport: TransportName = "grpc", **settings: Any) -> None:
        self._arguments: dict[str, Any] = {"url": url, "transport": transport, **settings}

    def synthesize(self, text: str, **options: Any) -> Audio:
        async def run() -> Audio:
            async with AsyncChatTTSClient(**self._arguments) as client:
                return await client.synthesize(text, **options)

        return asyncio.run(run())

    def stream(self, text: str, **options: Any) -> tuple[list[AudioChunk], Audio]:
        async def run() -> tuple[list[AudioChunk], Audio]:
            client = AsyncChatTTSClient(**self._arguments)
            async with client, client.stream(text, **options) as stream:
                return [chunk async for chunk in stream], await stream.result()

        return asyncio.run(run())

    def stream_one(self, text: str, **options: Any) -> AudioChunk:
        async def run() -> AudioChunk:
            client = AsyncChatTTSClient(**self._arguments)
            async with client, client.stream(text, **options) as stream:
                return await anext(stream)

        return asyncio.run(run())

    def synthesize_many(self, items: Any, **options: Any) -> Iterator[Audio | ChatTTSError]:
        loop = asyncio.new_event_loop()  # one for all the steps
        run = loop.run_until_complete

        async def begin() -> tuple[AsyncChatTTSClient, AsyncGenerator[Any, None]]:
            client = AsyncChatTTSClient(**self._arguments)
            return client, client.synthesize_many(items, **options)

        async def step(audios: AsyncGenerator[Any, None]) -> Audio | ChatTTSError | None:
            return await anext(audios, None)

        client, audios = run(begin())
        try:
            while (audio := run(step(audios))) is not None:
                yield audio
        finally:
            run(audios.aclose())
            run(client.close())
            loop.close()

    def normalize(self, text: str, **options: Any) -> NormalizedText:
        async def run() -> NormalizedText:
            async with AsyncChatTTSClient(**self._arguments) as client:
                return await client.normalize(text, **options)

        return asyncio.run(run())

    def voices(self, **options: Any) -> tuple[Voice, ...]:
        async def run() -> tuple[Voice, ...]:
            async with AsyncChatTTSClient(**self._arguments) as client:
                return await client.voices(**options)

        return asyncio.run(run())

    def models(self, **options: Any) -> tuple[ModelInfo, ...]:
        async def run() -> tuple[ModelInfo, ...]:
            async with AsyncChatTTSClient(**self._arguments) as client:
                return await client.models(**options)

        return asyncio.run(run())

    def metrics_snapshot(self, **options: Any) -> MetricsSnapshot:
        async def run() -> MetricsSnapshot:
            async with AsyncChatTTSClient(**self._arguments) as client:
                return await client.metrics_snapshot(**options)

        return asyncio.run(run())

    def health(self, **options: Any) -> Health:
        async def run() -> Health:
            async with AsyncChatTTSClient(**self._arguments) as client:
                return await client.health(**options)

        return asyncio.run(run())


Twin = SyncTwin | AsyncTwin
TWINS: dict[str, type[SyncTwin] | type[AsyncTwin]] = {"sync": SyncTwin, "async": AsyncTwin}
