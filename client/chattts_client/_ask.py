"""Requests with exactly one response, which is no speech: the voices, how a text is spoken."""

from __future__ import annotations

import asyncio
import time

from ._answers import Reader
from ._exceptions import ProtocolError
from ._protocol import SpeechRequest
from ._retry import Patience
from ._transport import AsyncTransport, Transport


def ask(transport: Transport, request: SpeechRequest, patience: Patience) -> Reader:
    """Send a request that has exactly one response, and again as long as it makes sense.

    Raises:
        ProtocolError: there is none, or another one follows.
    """

    def attempt() -> Reader:
        time.sleep(patience.turn_s())
        call = transport.start(request, patience.left_s())
        first = call.receive()
        return _only(first, call.receive() if first is not None else None)

    return patience.run(attempt, time.sleep)


async def ask_async(
    transport: AsyncTransport, request: SpeechRequest, patience: Patience
) -> Reader:
    """The asynchronous twin of `ask`."""

    async def attempt() -> Reader:
        await asyncio.sleep(patience.turn_s())
        call = transport.start(request, patience.left_s())
        first = await call.receive()
        return _only(first, await call.receive() if first is not None else None)

    return await patience.run_async(attempt, asyncio.sleep)


def _only(first: Reader | None, second: Reader | None) -> Reader:
    if first is None or second is not None:
        raise ProtocolError("not exactly one response")
    return first
