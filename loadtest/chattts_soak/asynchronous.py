"""The same traffic from asyncio, and bursts of more requests than the server takes at once."""

from __future__ import annotations

import asyncio
from random import Random

import numpy as np
from chattts_client import AsyncChatTTSClient, AsyncSpeechStream, SpeechOptions

from .callers import LIMIT_S
from .outcomes import Outcome, Tally
from .utterances import Repertoire, Utterance

BURST = "burst"
"""The kind of request that `burst` counts."""
_LEAVE_S = 0.3
"""Most seconds until a task is cancelled."""


async def stream(client: AsyncChatTTSClient, repertoire: Repertoire, chance: Random) -> Outcome:
    """Stream an utterance and compare every sample."""
    utterance = chance.choice(repertoire.short)
    async with _open(client, utterance) as spoken:
        audio = await spoken.result()
    utterance.check_whole(audio.samples)
    return Outcome.OK


async def at_once(client: AsyncChatTTSClient, repertoire: Repertoire, chance: Random) -> Outcome:
    """Ask for one response."""
    return await _ask_at_once(client, chance.choice(repertoire.short))


async def leave(client: AsyncChatTTSClient, repertoire: Repertoire, chance: Random) -> Outcome:
    """Leave a stream after a chunk or before the first one."""
    utterance = chance.choice(repertoire.short)
    samples = [np.zeros(0, np.float32)]
    most = chance.randrange(3)
    async with _open(client, utterance) as spoken:
        if most:
            async for chunk in spoken:
                samples.append(chunk.samples)
                if len(samples) > most:
                    break
    utterance.check_beginning(np.concatenate(samples))
    return Outcome.LEFT


async def cancel_task(
    client: AsyncChatTTSClient, repertoire: Repertoire, chance: Random
) -> Outcome:
    """Cancel the task that reads a stream."""
    utterance = chance.choice(repertoire.long)
    task = asyncio.create_task(_ask_at_once(client, utterance))
    await asyncio.sleep(chance.uniform(0.0, _LEAVE_S))
    task.cancel()
    (result,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(result, asyncio.CancelledError):
        return Outcome.LEFT
    if isinstance(result, BaseException):
        raise result
    return result


async def burst(
    url: str, utterance: Utterance, num_requests: int, chance: Random, tally: Tally
) -> None:
    """Ask for one utterance many times at once; each is answered, or refused at once.

    Args:
        url: HOST:PORT for gRPC.
        utterance: long enough that all are there before the first is over.
        num_requests: more than `max_streams` of the front model and some are refused.
        chance: chooses the priorities.
        tally: gets every request.
    """

    async def ask(priority: int) -> None:
        try:
            options: SpeechOptions = {**utterance.options, "priority": priority}
            audio = await client.synthesize(utterance.text, **options)
            utterance.check_whole(audio.samples)
        except Exception as error:
            tally.add_error(BURST, error)
        else:
            tally.add(BURST, Outcome.OK)

    async with AsyncChatTTSClient(url, timeout_s=LIMIT_S, max_retries=0) as client:
        await asyncio.gather(*(ask(chance.choice((1, 2, 3))) for _ in range(num_requests)))


def _open(client: AsyncChatTTSClient, utterance: Utterance) -> AsyncSpeechStream:
    return client.stream(utterance.text, **utterance.options)


async def _ask_at_once(client: AsyncChatTTSClient, utterance: Utterance) -> Outcome:
    audio = await client.synthesize(utterance.text, **utterance.options)
    utterance.check_whole(audio.samples)
    return Outcome.OK
