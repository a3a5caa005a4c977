"""ChatTTS on Triton: speak a text with a server, by stream or at once."""

from ._audio import WavWriter
from ._client import AsyncChatTTSClient, ChatTTSClient
from ._exceptions import (
    ChatTTSError,
    InvalidRequestError,
    ProtocolError,
    RequestCancelledError,
    RequestTimeoutError,
    ServerError,
    ServerUnavailableError,
)
from ._stream import AsyncSpeechStream, SpeechStream
from ._types import (
    Audio,
    AudioChunk,
    SpeechOptions,
    SpeechWarning,
    Summary,
    Timings,
    Voice,
)

__all__ = [
    "AsyncChatTTSClient",
    "AsyncSpeechStream",
    "Audio",
    "AudioChunk",
    "ChatTTSClient",
    "ChatTTSError",
    "InvalidRequestError",
    "ProtocolError",
    "RequestCancelledError",
    "RequestTimeoutError",
    "ServerError",
    "ServerUnavailableError",
    "SpeechOptions",
    "SpeechStream",
    "SpeechWarning",
    "Summary",
    "Timings",
    "Voice",
    "WavWriter",
]
