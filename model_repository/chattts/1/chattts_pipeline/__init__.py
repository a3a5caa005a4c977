"""The front of ChatTTS: request checks, text, voices, streaming, and a request's life."""

from .audio import AudioEncoder
from .errors import SpeechError, child_error
from .finished_calls import FinishedCalls
from .pacing import LowLatency
from .request import SpeechRequest
from .segment import SpeechPlan
from .services import Services, Tensors, TokenChunk
from .settings import Checkpoint, Settings
from .speakers import VoiceRegistry
from .speech import Speech
from .streaming import VocoderChunk, VocoderSizes
from .text import spoken_segments
from .vocabulary import Vocabulary, outside_vocabulary_warning

__all__ = [
    "AudioEncoder",
    "Checkpoint",
    "FinishedCalls",
    "LowLatency",
    "Services",
    "Settings",
    "Speech",
    "SpeechError",
    "SpeechPlan",
    "SpeechRequest",
    "Tensors",
    "TokenChunk",
    "Vocabulary",
    "VocoderChunk",
    "VocoderSizes",
    "VoiceRegistry",
    "child_error",
    "outside_vocabulary_warning",
    "spoken_segments",
]
