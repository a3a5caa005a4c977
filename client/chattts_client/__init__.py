"""ChatTTS on Triton: speak a text with a server, by stream or at once."""

TYPE_CHECKING = False
"""Known to type checkers under this name; the module `typing` is not needed for it."""
if TYPE_CHECKING:
    from ._async_client import AsyncChatTTSClient
    from ._audio import WavWriter
    from ._cache import UtteranceCache
    from ._client import ChatTTSClient
    from ._exceptions import (
        ChatTTSError,
        InvalidRequestError,
        ProtocolError,
        RequestCancelledError,
        RequestTimeoutError,
        ServerError,
        ServerUnavailableError,
    )
    from ._health import Health, ModelInfo
    from ._limits import RateLimit
    from ._metrics import MetricSample, MetricsSnapshot
    from ._stream import AsyncSpeechStream, SpeechStream
    from ._tls import Tls
    from ._types import (
        AlignedSpan,
        Audio,
        AudioChunk,
        NormalizedText,
        SpeechOptions,
        SpeechWarning,
        Summary,
        TextSegment,
        Timings,
        Voice,
    )

__all__ = [
    "AlignedSpan",
    "AsyncChatTTSClient",
    "AsyncSpeechStream",
    "Audio",
    "AudioChunk",
    "ChatTTSClient",
    "ChatTTSError",
    "Health",
    "InvalidRequestError",
    "MetricSample",
    "MetricsSnapshot",
    "ModelInfo",
    "NormalizedText",
    "ProtocolError",
    "RateLimit",
    "RequestCancelledError",
    "RequestTimeoutError",
    "ServerError",
    "ServerUnavailableError",
    "SpeechOptions",
    "SpeechStream",
    "SpeechWarning",
    "Summary",
    "TextSegment",
    "Timings",
    "Tls",
    "UtteranceCache",
    "Voice",
    "WavWriter",
]

_PLACES = {
    "_async_client": ("AsyncChatTTSClient",),
    "_audio": ("WavWriter",),
    "_cache": ("UtteranceCache",),
    "_client": ("ChatTTSClient",),
    "_exceptions": (
        "ChatTTSError",
        "InvalidRequestError",
        "ProtocolError",
        "RequestCancelledError",
        "RequestTimeoutError",
        "ServerError",
        "ServerUnavailableError",
    ),
    "_health": (
        "Health",
        "ModelInfo",
    ),
    "_limits": ("RateLimit",),
    "_metrics": (
        "MetricSample",
        "MetricsSnapshot",
    ),
    "_stream": (
        "AsyncSpeechStream",
        "SpeechStream",
    ),
    "_tls": ("Tls",),
    "_types": (
        "AlignedSpan",
        "Audio",
        "AudioChunk",
        "NormalizedText",
        "SpeechOptions",
        "SpeechWarning",
        "Summary",
        "TextSegment",
        "Timings",
        "Voice",
    ),
}
"""Module to the names that come from it when they are first used, so that the package itself is
there at once: the command line can then meet Ctrl-C from its start."""

del TYPE_CHECKING


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _PLACES.items():
        if name in names:
            value: object = getattr(import_module(f".{module}", __name__), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
