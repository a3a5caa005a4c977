"""A user's program, for the type checker only: each part of the client, each result's type."""

from collections.abc import AsyncGenerator, Generator, Sequence

import numpy as np
from chattts_client import (
    AsyncChatTTSClient,
    Audio,
    AudioChunk,
    ChatTTSClient,
    ChatTTSError,
    Health,
    InvalidRequestError,
    MetricsSnapshot,
    ModelInfo,
    NormalizedText,
    RateLimit,
    SpeechOptions,
    Tls,
    UtteranceCache,
    Voice,
)
from numpy.typing import NDArray
from typing_extensions import assert_type

OPTIONS: SpeechOptions = {"voice": "en", "seed": 7, "language": "en", "options": {"trim": True}}


def connect(token: str, folder: str) -> ChatTTSClient:
    """Name each setting."""
    return ChatTTSClient(
        "tts.example.org:443",
        transport="grpc",
        timeout_s=30,
        tls=Tls(ca_file="ca.pem"),
        headers={"authorization": f"Bearer {token}"},
        max_retries=3,
        rate_limit=RateLimit(requests=10, per_s=1.0),
        cache=UtteranceCache(folder, use="first"),
        metrics_url="tts.example.org:8002",
    )


def speak(client: ChatTTSClient, texts: Sequence[str]) -> NDArray[np.float32]:
    """Call each method."""
    audio = client.synthesize("hello", **OPTIONS)
    assert_type(audio, Audio)
    assert_type(audio.samples, NDArray[np.float32])
    assert_type(audio.seed, int)
    assert_type(audio.finish_reasons, tuple[str, ...])
    assert_type(audio.timings.first_audio_ms, float | None)
    assert_type(audio.time_to_first_audio_s, float | None)
    assert_type(audio.from_cache, bool)
    assert_type(audio.to_wav_bytes(), bytes)
    with client.stream("hello", voice="en", latency="low") as stream:
        for chunk in stream:
            assert_type(chunk, AudioChunk)
        assert_type(stream.result(), Audio)
    assert_type(client.synthesize_many(texts, concurrency=4), Generator[Audio, None, None])
    for one in client.synthesize_many([("hello", OPTIONS)], return_errors=True):
        assert_type(one, Audio | ChatTTSError)
    assert_type(client.normalize("3:20"), NormalizedText)
    assert_type(client.voices(), tuple[Voice, ...])
    assert_type(client.models(), tuple[ModelInfo, ...])
    assert_type(client.health().ready, bool)
    assert_type(client.metrics_snapshot(), MetricsSnapshot)
    return audio.samples


async def growing() -> AsyncGenerator[str, None]:
    """Texts that are made meanwhile."""
    yield "hello"


async def speak_too(texts: Sequence[str]) -> Health:
    """Call each method of the twin."""
    async with AsyncChatTTSClient(timeout_s=None) as client:
        assert_type(await client.synthesize("hello", **OPTIONS), Audio)
        async with client.stream("hello") as stream:
            async for chunk in stream:
                assert_type(chunk, AudioChunk)
            assert_type(await stream.result(), Audio)
        assert_type(client.synthesize_many(texts), AsyncGenerator[Audio, None])
        async for one in client.synthesize_many(texts, return_errors=True):
            assert_type(one, Audio | ChatTTSError)
        assert_type(client.synthesize_many(growing()), AsyncGenerator[Audio, None])
        assert_type(await client.normalize("3:20"), NormalizedText)
        assert_type(await client.voices(), tuple[Voice, ...])
        assert_type(await client.models(), tuple[ModelInfo, ...])
        assert_type(await client.metrics_snapshot(), MetricsSnapshot)
        return await client.health()


def explain(error: ChatTTSError) -> str:
    """Read each field of an error."""
    assert_type(error.code, str)
    assert_type(error.retryable, bool)
    assert_type(error.hint, str)
    assert_type(error.retry_after_s, float | None)
    if isinstance(error, InvalidRequestError):
        assert_type(error.field, str | None)
    return error.request_id
