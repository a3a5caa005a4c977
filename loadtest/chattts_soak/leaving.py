"""Requests that are left at random moments, in every way that a caller can go."""

from __future__ import annotations

import queue
import time
from random import Random
from typing import Any

import numpy as np
import tritonclient.grpc as triton
from chattts_client import (
    ChatTTSClient,
    RequestCancelledError,
    RequestTimeoutError,
    ServerUnavailableError,
    SpeechStream,
)

from .callers import LIMIT_S, STREAMING, UNARY, EventStream, Target, samples_of, tensors, values
from .outcomes import HINT, Outcome
from .relay import Relay
from .utterances import Repertoire, Utterance

_BEFORE_FIRST_S = 0.03
"""About as long as the first response takes."""
_UNARY_S = 0.2


def before_first(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Cancel a stream at once or a little later, without reading."""
    with _open(target.grpc, chance.choice(repertoire.short)):
        time.sleep(chance.choice((0.0, chance.uniform(0.0, _BEFORE_FIRST_S))))
    return Outcome.LEFT


def between(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Cancel a stream after some chunks."""
    utterance = chance.choice((*repertoire.short, *repertoire.long))
    with _open(target.grpc, utterance) as stream:
        _read_some(stream, utterance, chance)
    return Outcome.LEFT


def at_the_end(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Cancel the call on its final response, before the server has ended it."""
    utterance = chance.choice(repertoire.short)
    answers: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
    with triton.InferenceServerClient(target.grpc_url) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        inputs = tensors(values(utterance))
        client.async_stream_infer(STREAMING, inputs, parameters={"code_in_errors": True})
        is_final, samples = False, []
        while not is_final:
            result, error = answers.get(timeout=LIMIT_S)
            if error is not None:
                raise error
            samples.append(result.as_numpy("audio"))
            is_final = bool(result.as_numpy("is_final")[0])
        client.stop_stream(cancel_requests=True)
    utterance.check_whole(np.concatenate(samples))
    return Outcome.LEFT


def close_connection(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Close a connection with three streams on it."""
    utterances = [chance.choice(repertoire.short) for _ in range(3)]
    client = ChatTTSClient(target.grpc_url, timeout_s=LIMIT_S, max_retries=0)
    try:
        streams = [_open(client, utterance) for utterance in utterances]
        _read_some(streams[0], utterances[0], chance)
    finally:
        client.close()
    return Outcome.LEFT


def lose_connection(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Have the connection reset without a word in the middle of a stream."""
    utterance = chance.choice(repertoire.long)
    with (
        Relay(target.grpc_url) as relay,
        ChatTTSClient(relay.url, timeout_s=LIMIT_S, max_retries=0) as client,
    ):
        stream = _open(client, utterance)
        _read_some(stream, utterance, chance)
        relay.sever()
        try:
            audio = stream.result()
        except ServerUnavailableError:
            return Outcome.LEFT
    utterance.check_whole(audio.samples)  # all of it had arrived before
    return Outcome.OK


def time_limit(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Set a gRPC deadline that passes somewhere within the answer, if at all."""
    utterance = chance.choice((*repertoire.short, *repertoire.long))
    limit_s = 10 ** chance.uniform(-2.3, 0.0)
    try:
        audio = target.grpc.synthesize(utterance.text, timeout_s=limit_s, **utterance.options)
    except (RequestTimeoutError, RequestCancelledError):
        return Outcome.LEFT  # this side's clock or the server's, whichever was first
    utterance.check_whole(audio.samples)
    return Outcome.OK


def drop_http_stream(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Drop /generate_stream, before its first event or after some."""
    utterance = chance.choice((*repertoire.short, *repertoire.long))
    most = chance.randrange(3)
    with EventStream(target.http_url, values(utterance)) as events:
        time.sleep(chance.uniform(0.0, _BEFORE_FIRST_S))
        received = [event for event, _ in zip(events, range(most), strict=False)] if most else []
    if received and HINT in received[-1].get("error", ""):
        return Outcome.FULL
    if received:
        samples = np.concatenate([samples_of(event) for event in received])
        utterance.check_beginning(samples)
    return Outcome.LEFT


def drop_unary(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Cancel a unary gRPC call while it waits for its answer."""
    utterance = chance.choice(repertoire.short)
    call = target.raw.async_infer(UNARY, tensors(values(utterance)), callback=_ignore)
    time.sleep(chance.uniform(0.0, _UNARY_S))
    call.cancel()
    return Outcome.LEFT


def _ignore(result: object, error: object) -> None:
    """Take the answer of a call that was cancelled, or was quicker."""


def _open(client: ChatTTSClient, utterance: Utterance) -> SpeechStream:
    return client.stream(utterance.text, **utterance.options)


def _read_some(stream: SpeechStream, utterance: Utterance, chance: Random) -> None:
    """Read some chunks and compare them."""
    samples = []
    most = chance.randrange(1, 6)
    for chunk in stream:
        samples.append(chunk.samples)
        if len(samples) == most or chunk.is_final:
            break
    utterance.check_beginning(np.concatenate(samples))
