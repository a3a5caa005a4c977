"""The token engine: continuous batching, paged KV and exact sampling for the ChatTTS GPT.

Knows nothing of Triton: model.py beside this package adapts it.
"""

from .chunk import Chunk
from .config import EngineConfig, GPTConfig
from .delivery import Deliveries, Pull, Push
from .engine import Engine, StepOutput
from .loading import LoadedEngine, load_engine, warm_up
from .request import RequestParser
from .sampling_params import SamplingParams
from .sequence import GenerationRequest
from .torch_options import TorchOptions
from .worker import EngineWorker, QueueFullError

__all__ = [
    "Chunk",
    "Deliveries",
    "Engine",
    "EngineConfig",
    "EngineWorker",
    "GPTConfig",
    "GenerationRequest",
    "LoadedEngine",
    "Pull",
    "Push",
    "QueueFullError",
    "RequestParser",
    "SamplingParams",
    "StepOutput",
    "TorchOptions",
    "load_engine",
    "warm_up",
]
