"""ChatTTS on Triton: speak a text with a server, by stream or at once."""

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
