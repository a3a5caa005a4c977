"""The vocoder of a built repository in this process, and what a voice says as hidden states."""

from __future__ import annotations

import json
import queue
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import tritonclient.grpc
from chattts_pipeline import LowLatency, VocoderSizes
from chattts_pipeline.low_latency import LowLatencyStream
from chattts_pipeline.pacing import Pace
from chattts_pipeline.prompts import code_prompt
from chattts_pipeline.streaming import FloatArray, SegmentStream
from chattts_voices import VoiceRegistry

from .lookahead import SpokenSegment, speak_segment

SAMPLE_RATE = 24_000
SAMPLES_PER_STEP = 512
_TOKEN_MODEL = "chattts_gpt"
_ANSWER_LIMIT_S = 60.0
_TYPES = {"object": "BYTES", "float16": "FP16", "uint64": "UINT64"}


class ImpatientPace(Pace):
    """A listener who is never ahead: the smallest pieces throughout, so the largest errors."""

    def add_sent(self, num_samples: int) -> None:
        """Forget it."""


class LocalVocoder:
    """A vocoder's graph.

    Args:
        graph: its ONNX file.
        hidden_size: H.
    """

    def __init__(self, graph: Path, hidden_size: int) -> None:
        self._session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
        facts = self._session.get_modelmeta().custom_metadata_map
        context_steps, state_size = int(facts["context_steps"]), int(facts["state_size"])
        self.sizes = VocoderSizes(context_steps, SAMPLES_PER_STEP, hidden_size, state_size)

    @classmethod
    def of_repository(cls, repository: Path) -> LocalVocoder:
        """Open the vocoder of a built repository."""
        graph = repository / "chattts_vocoder" / "1" / "model.onnx"
        return cls(graph, _facts(repository)["hidden_size"])

    def exact(self, hidden: FloatArray) -> FloatArray:
        """Return the samples (S,) of hidden states (T, H)."""
        return speak_segment(SegmentStream(self.sizes), self._session, hidden, []).samples

    def low(self, hidden: FloatArray, low_latency: LowLatency) -> SpokenSegment:
        """Speak hidden states (T, H) with the smallest pieces that the settings allow."""
        pace = ImpatientPace(low_latency, self.sizes, SAMPLE_RATE)
        stream = LowLatencyStream(self.sizes, low_latency, pace)
        arrivals = [stream.first_steps, *[stream.chunk_steps] * len(hidden)]
        return speak_segment(stream, self._session, hidden, arrivals)


def hidden_states(url: str, repository: Path, text: str, voice: str, seed: int) -> FloatArray:
    """Let a server's token model speak one segment.

    Args:
        url: HOST:PORT of its gRPC.
        repository: what it serves.
        text: one segment, in words that need no text front end.
        voice: a name of its registry.
        seed: 0 ... 2**64 - 1.

    Returns:
        Hidden states (T, H).
    """
    weights = repository / "chattts" / "1" / "weights"
    registry = VoiceRegistry(weights / "voices", _facts(repository)["hidden_size"], voice)
    speaker = registry.find(voice).speaker_embedding
    prompt = code_prompt(text, style="[speed_5]", has_speaker=speaker is not None, transcript="")
    inputs: dict[str, Any] = {
        "prompt": np.array([prompt.encode()], np.object_),
        "seed": np.array([seed], np.uint64),
    }
    if speaker is not None:
        inputs["speaker_embedding"] = speaker
    return _generate(url, inputs)


def _facts(repository: Path) -> dict[str, Any]:
    path = repository / "chattts" / "1" / "weights" / "checkpoint.json"
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return facts


def _generate(url: str, inputs: dict[str, Any]) -> FloatArray:
    answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
    tensors = []
    for name, array in inputs.items():
        tensor = tritonclient.grpc.InferInput(name, list(array.shape), _TYPES[array.dtype.name])
        tensor.set_data_from_numpy(array)
        tensors.append(tensor)
    parts = []
    with tritonclient.grpc.InferenceServerClient(url) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        client.async_stream_infer(_TOKEN_MODEL, tensors)
        reason = b""
        while not reason:
            result, error = answers.get(timeout=_ANSWER_LIMIT_S)
            if error is not None:
                raise error
            parts.append(result.as_numpy("hidden"))
            reason = result.as_numpy("finish_reason")[0]
        client.stop_stream()
    joined: FloatArray = np.concatenate([part for part in parts if len(part)])
    return joined
