"""The front of ChatTTS: request checks, text, voices, streaming, and a request's life."""

from .audio import AudioEncoder
from .contract import CONTRACT
from .errors import ServerNotReadyError, SpeechError, child_error
from .final_pause import FinalPause, LateEndings
from .finished_calls import FinishedCalls
from .health import Health
from .journal import Journal
from .metrics import RUNNING, SPECS, FrontMetrics, MetricTable, RunningGauge
from .outcome import RequestRecord, trace_id
from .pacing import LowLatency
from .planner import Planner, read_lexicon
from .request import SpeechRequest
from .request_log import RequestLog
from .retried_speech import RetriedSpeech
from .services import Caller, Services, Tensors, TokenChunk
from .settings import Checkpoint, Settings
from .slots import Slot, Slots
from .speech import Speech
from .streaming import VocoderChunk, VocoderSizes
from .vocabulary import Vocabulary
from .warm_up import WARM_UP_REQUEST, ending_where_hung, warm_up

__all__ = [
    "CONTRACT",
    "RUNNING",
    "SPECS",
    "WARM_UP_REQUEST",
    "AudioEncoder",
    "Caller",
    "Checkpoint",
    "FinalPause",
    "FinishedCalls",
    "FrontMetrics",
    "Health",
    "Journal",
    "LateEndings",
    "LowLatency",
    "MetricTable",
    "Planner",
    "RequestLog",
    "RequestRecord",
    "RetriedSpeech",
    "RunningGauge",
    "ServerNotReadyError",
    "Services",
    "Settings",
    "Slot",
    "Slots",
    "Speech",
    "SpeechError",
    "SpeechRequest",
    "Tensors",
    "TokenChunk",
    "Vocabulary",
    "VocoderChunk",
    "VocoderSizes",
    "child_error",
    "ending_where_hung",
    "read_lexicon",
    "trace_id",
    "warm_up",
]
