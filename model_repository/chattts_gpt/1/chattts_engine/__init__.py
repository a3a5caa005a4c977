"""The token engine: continuous batching, paged KV and exact sampling for the ChatTTS GPT.

Knows nothing of Triton: model.py beside this package adapts it.
"""

from .chunk import Chunk
from .config import EngineConfig, GPTConfig
from .delivery import Deliveries, Pull, Push
from .engine import Engine, StepOutput
from .engine_handle import EngineHandle
from .loading import LoadedEngine, load_engine, warm_up
from .messages import EngineJob
from .metrics import EngineMetrics, take_switch
from .request import RequestParser
from .router import Callbacks, EngineRouter, QueueFullError
from .sampling_params import SamplingParams
from .sequence import GenerationRequest
from .stats import Snapshot
from .tokenizer import Tokenizer
from .torch_options import TorchOptions

__all__ = [
    "Callbacks",
    "Chunk",
    "Deliveries",
    "Engine",
    "EngineConfig",
    "EngineHandle",
    "EngineJob",
    "EngineMetrics",
    "EngineRouter",
    "GPTConfig",
    "GenerationRequest",
    "LoadedEngine",
    "Pull",
    "Push",
    "QueueFullError",
    "RequestParser",
    "SamplingParams",
    "Snapshot",
    "StepOutput",
    "Tokenizer",
    "TorchOptions",
    "load_engine",
    "warm_up",
    "take_switch",
]
