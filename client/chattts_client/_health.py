"""Is there a server, does it speak, which models has it, and does it follow this client's contract?

Each procedure is a generator of questions, so that both twins share it: they differ in how they
wait for the answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

from ._answers import contract_mismatch
from ._exceptions import (
    ChatTTSError,
    ProtocolError,
    RequestTimeoutError,
    ServerError,
    ServerUnavailableError,
)
from ._json import JsonObject, get, get_list
from ._protocol import MODELS, STREAMING_MODEL, Question

T = TypeVar("T")
Procedure = Generator[Question, JsonObject, T]
"""Yields questions, is sent the answers or thrown their errors, and returns what was found."""

_NOBODY = (ServerUnavailableError, RequestTimeoutError, ProtocolError)
"""Errors that say nothing of a living Triton."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What was found behind an address."""

    url: str
    """HOST:PORT that was asked."""
    live: bool
    """True: a Triton server answers."""
    ready: bool
    """True: its models answer too, and this client understands them: it would speak now."""
    reason: str
    """One sentence: why it is not ready; empty if it is."""
    server_version: str
    """Of Triton, such as 2.51.0; empty if it did not say."""
    contract: int
    """Version of the inputs, outputs and metadata that the models follow; 0: they did not say."""
    compatible: bool | None
    """Whether this client understands that version; None: no answer that would tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """One version of one model."""

    name: str
    """chattts speaks, chattts_unary speaks over HTTP; the others work behind them."""
    version: str
    """What may be passed as `model_version`; empty if none is served."""
    ready: bool
    """True: it is loaded."""
    checkpoint: str = ""
    """Name of its weights; only of chattts, while it is healthy."""
    precision: str = ""
    """Number format of its token model, such as fp32 or int8; as above."""
    untrained: bool | None = None
    """True: random weights, whose audio is noise by design; None: it did not say."""


def find_health(url: str) -> Procedure[Health]:
    """What is behind `url`; raises no error of a call."""
    facts: JsonObject = {}
    reason = ""
    try:
        facts = yield Question("facts")
        reason = contract_mismatch(facts)
    except ChatTTSError as error:
        reason = str(error)
    is_live, version = bool(facts), ""
    if not is_live:
        try:
            is_live = get((yield Question("live")), "live", bool)
        except ChatTTSError as error:
            is_live = not isinstance(error, _NOBODY)
    if is_live:
        try:
            version = get((yield Question("server")), "version", str)
        except ChatTTSError:
            version = ""  # it may keep that to itself
    contract = facts.get("contract")
    return Health(
        url=url,
        live=is_live,
        ready=not reason,
        reason=reason,
        server_version=version,
        contract=contract if isinstance(contract, int) else 0,
        compatible=not contract_mismatch(facts) if facts else None,
    )


def find_models() -> Procedure[tuple[ModelInfo, ...]]:
    """Every served version of this project's models.

    Asks for each by its name: Triton's list of all models is closed on careful servers.

    Raises:
        ChatTTSError: no answer; a model that is not there is left out.
    """
    found: list[ModelInfo] = []
    for name in MODELS:
        try:
            versions = get_list((yield Question("model", name)), "versions", str)
        except ServerError:  # unknown
            continue
        except ServerUnavailableError as error:
            if not _is_unloaded(error):
                raise
            found.append(ModelInfo(name=name, version="", ready=False))
            continue
        for version in versions:
            found.append((yield from _find_version(name, version)))
    return tuple(found)


def _find_version(name: str, version: str) -> Procedure[ModelInfo]:
    is_ready = get((yield Question("ready", name, version)), "ready", bool)
    facts: JsonObject = {}
    if is_ready and name == STREAMING_MODEL:
        try:
            facts = yield Question("facts", name, version)
        except ChatTTSError:
            is_ready = False  # loaded, but it does not answer
    checkpoint, precision = facts.get("checkpoint"), facts.get("precision")
    untrained = facts.get("untrained")
    return ModelInfo(
        name=name,
        version=version,
        ready=is_ready,
        checkpoint=checkpoint if isinstance(checkpoint, str) else "",
        precision=precision if isinstance(precision, str) else "",
        untrained=untrained if isinstance(untrained, bool) else None,
    )


def _is_unloaded(error: ServerUnavailableError) -> bool:
    return "no available versions" in str(error)


def answered(procedure: Procedure[T], ask: Callable[[Question], JsonObject]) -> T:
    """Run a procedure to its end."""
    try:
        asked = next(procedure)
        while True:
            try:
                answer = ask(asked)
            except ChatTTSError as error:
                asked = procedure.throw(error)
            else:
                asked = procedure.send(answer)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return] # StopIteration is not generic


async def async_answered(
    procedure: Procedure[T], ask: Callable[[Question], Awaitable[JsonObject]]
) -> T:
    """The asynchronous twin of `answered`."""
    try:
        asked = next(procedure)
        while True:
            try:
                answer = await ask(asked)
            except ChatTTSError as error:
                asked = procedure.throw(error)
            else:
                asked = procedure.send(answer)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return] # StopIteration is not generic
