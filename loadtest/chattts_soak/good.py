"""Requests that are read to their end: by stream, at once, slowly, long, under a deadline."""

from __future__ import annotations

import time
from random import Random

import numpy as np
from chattts_client import ChatTTSClient, SpeechOptions

from .callers import LIMIT_S, UNARY, EventStream, Target, samples_of, tensors, values
from .outcomes import HINT, Outcome, WrongAnswerError
from .utterances import Repertoire, Utterance

PRIORITIES = (1, 2, 3)


def stream(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Stream an utterance and compare every sample."""
    utterance = chance.choice(repertoire.short)
    return _read_stream(target.grpc, utterance, chance.choice(PRIORITIES))


def at_once(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Ask for one response over a gRPC stream."""
    return _ask_at_once(target.grpc, chance.choice(repertoire.short), chance.choice(PRIORITIES))


def http(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Ask the unary model over HTTP."""
    return _ask_at_once(target.http, chance.choice(repertoire.short), chance.choice(PRIORITIES))


def long(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Stream a text of many segments; some at the lowest priority."""
    return _read_stream(target.grpc, chance.choice(repertoire.long), chance.choice(PRIORITIES))


def unary_grpc(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Ask the unary model over gRPC, with Triton's own client."""
    utterance = chance.choice(repertoire.short)
    answer = target.raw.infer(UNARY, tensors(values(utterance)), client_timeout=LIMIT_S)
    utterance.check_whole(answer.as_numpy("audio"))
    return Outcome.OK


def http_stream(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Read all events of /generate_stream."""
    utterance = repertoire.short[0]
    with EventStream(target.http_url, values(utterance)) as events:
        received = list(events)
    if HINT in received[-1].get("error", ""):
        return Outcome.FULL
    if not received[-1].get("is_final"):
        raise WrongAnswerError(f"the last event is {str(received[-1])[:200]}")
    utterance.check_whole(np.concatenate([samples_of(event) for event in received]))
    return Outcome.OK


def shaped(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Stream, or ask at once, what is written out before and filtered after."""
    ask = chance.choice((_read_stream, _ask_at_once))
    return ask(target.grpc, chance.choice(repertoire.shaped), chance.choice(PRIORITIES))


def slow_reader(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Read a chunk, sleep, read the next."""
    utterance = chance.choice(repertoire.short)
    return _read_stream(target.grpc, utterance, 2, pause_s=chance.uniform(0.05, 0.6))


def late_reader(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Read nothing of a long text for a while, then all of it."""
    utterance = repertoire.long[0]
    return _read_stream(target.grpc, utterance, 2, first_pause_s=chance.uniform(1.0, 4.0))


def deadline(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Let the server end an utterance where it is after some milliseconds."""
    limit_ms = round(10 ** chance.uniform(0.5, 2.7))
    return _ask_until(target, chance.choice(repertoire.short), {"deadline_ms": limit_ms})


def queue_deadline(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Let the server drop an utterance that has not begun after some milliseconds."""
    limit_ms = round(10 ** chance.uniform(0.0, 1.5))
    return _ask_until(target, chance.choice(repertoire.short), {"queue_deadline_ms": limit_ms})


def low_latency(target: Target, repertoire: Repertoire, chance: Random) -> Outcome:
    """Stream with latency=low, whose samples depend on the moment: only their number is known."""
    utterance = chance.choice(repertoire.short)
    options: SpeechOptions = {**utterance.options, "latency": "low"}
    with target.grpc.stream(utterance.text, **options) as stream:
        audio = stream.result()
    if len(audio.samples) != len(utterance.samples) or not np.isfinite(audio.samples).all():
        raise WrongAnswerError(f"{len(audio.samples)} samples, not {len(utterance.samples)}")
    return Outcome.OK


def _ask_until(target: Target, utterance: Utterance, limit: SpeechOptions) -> Outcome:
    options: SpeechOptions = {**utterance.options, **limit}
    audio = target.grpc.synthesize(utterance.text, **options)
    if audio.finish_reasons == ("deadline",):
        utterance.check_cut_short(audio.samples)
        return Outcome.LATE
    utterance.check_whole(audio.samples)
    return Outcome.OK


def _ask_at_once(client: ChatTTSClient, utterance: Utterance, priority: int) -> Outcome:
    options: SpeechOptions = {**utterance.options, "priority": priority}
    audio = client.synthesize(utterance.text, **options)
    utterance.check_whole(audio.samples)
    return Outcome.OK


def _read_stream(
    client: ChatTTSClient,
    utterance: Utterance,
    priority: int,
    *,
    first_pause_s: float = 0.0,
    pause_s: float = 0.0,
) -> Outcome:
    segments = []
    options: SpeechOptions = {**utterance.options, "priority": priority}
    with client.stream(utterance.text, **options) as stream:
        time.sleep(first_pause_s)
        for chunk in stream:
            segments.append(chunk.segment_index)
            time.sleep(pause_s)
        audio = stream.result()
    if segments != sorted(segments):
        raise WrongAnswerError(f"segments out of order: {segments}")
    utterance.check_whole(audio.samples)
    return Outcome.OK
