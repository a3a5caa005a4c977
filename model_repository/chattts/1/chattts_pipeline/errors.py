"""The one error type that a request can end with, and how a child model's error becomes one."""

import re
from typing import Literal, cast

ErrorCode = Literal["INVALID_ARG", "UNAVAILABLE", "CANCELLED", "INTERNAL"]

_PREFIXED = re.compile(r"\b(INVALID_ARG|UNAVAILABLE|CANCELLED|INTERNAL): (.*)", re.DOTALL)
_MODEL_NOT_READY = "is not ready"
_MODEL_DEAD = "is not healthy"
_SERVER_NOT_READY = "Server not ready"


class SpeechError(Exception):
    """A request that ends without (all of) its audio.

    Attributes:
        code: What kind of error, as Triton names it.
        message: One sentence for the caller.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.message = message


class ServerNotReadyError(SpeechError):
    """The server takes no calls between its models: not all are loaded yet, or it is stopping."""

    def __init__(self) -> None:
        super().__init__("UNAVAILABLE", "the server is starting or stopping; try again in 1 s")


def child_error(model: str, message: str) -> SpeechError:
    """Turn the error message of a child model into the error of the request.

    The code is read from the message: server 2.51 replaces the codes of child errors by INTERNAL.

    Args:
        model: The child's name.
        message: Its message; the token model's begin with a code, such as "UNAVAILABLE: full".
    """
    found = _PREFIXED.search(message)
    if found:
        return SpeechError(cast(ErrorCode, found[1]), found[2])
    if _SERVER_NOT_READY in message:
        return ServerNotReadyError()
    if _MODEL_NOT_READY in message:
        return SpeechError("UNAVAILABLE", f"{model} is not ready; try again in a few seconds")
    if _MODEL_DEAD in message:
        return SpeechError("UNAVAILABLE", f"{model} has died or hangs; try again in a few seconds")
    return SpeechError("INTERNAL", f"{model}: {message}")
