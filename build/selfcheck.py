"""Compare freshly written ONNX files with the NumPy reference on a short input.

A build that fails a check writes nothing. The inputs are random but the same in every build.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import reference_gpt
import reference_speech
from checkpoint import Array, Checkpoint, Tensors
from gpt_graph import Precision
from layout import NUM_CODES, SAMPLES_PER_STEP, SPECIAL_TOKENS, GptSizes

TOLERANCE = 1e-4
"""Largest float32 difference over the largest magnitude: 100 times what is seen, and far below
what a wrong weight or a wrong axis makes."""
MIN_INT8_COSINE = 0.98
"""Of hidden states: rounding gives 0.99 and more, saturating kernels give 0.92."""
NUM_TOKENS = 10
NUM_STEPS = 6
CHECK_CHUNK_STEPS = 4
"""Of the vocoder: a chunk whose end is no end of the segment, and several that flush."""
SEED = 20240528


class CheckError(RuntimeError):
    """A written file computes something else than the reference."""


def open_session(path: Path) -> Any:
    """Open an ONNX file on the CPU, warnings of the runtime off."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def relative_error(found: Array, wanted: Array) -> float:
    """Return the largest difference over the largest wanted magnitude; inf if shapes differ."""
    if found.shape != wanted.shape:
        return float("inf")
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def _require_close(path: Path, found: Array, wanted: Array) -> float:
    error = relative_error(found, wanted)
    if not error <= TOLERANCE:
        raise CheckError(
            f"{path.name}: differs from the reference by {error:.2g} (allowed {TOLERANCE:g})"
        )
    return error


def sample_embeddings(sizes: GptSizes, embed: Tensors) -> Array:
    """Return input embeddings (10, H): text, a speaker vector, and two frames of codes."""
    random = np.random.default_rng(SEED)
    frames = random.integers(0, NUM_CODES, (2, sizes.num_codebooks))
    first_special = sizes.num_text_tokens - len(SPECIAL_TOKENS)
    ids = random.integers(0, first_special, NUM_TOKENS - len(frames))
    vector = random.standard_normal(sizes.hidden_size).astype(np.float16)
    return reference_gpt.embed_prompt(ids, embed, (int(ids[1]), vector), frames)


def empty_cache(session: Any, batch: int, length: int) -> dict[str, npt.NDArray[Any]]:
    """Return the KV inputs of a GPT graph, in the type that it takes."""
    types = {"tensor(float)": np.float32, "tensor(int8)": np.int8}
    return {
        tensor.name: np.zeros((batch, tensor.shape[1], length, tensor.shape[3]), types[tensor.type])
        for tensor in session.get_inputs()
        if tensor.name.startswith("past_")
    }


def run_gpt(session: Any, embeds: Array, num_decoded: int) -> Array:
    """Run (T, H) embeddings through a GPT graph: prefill, then `num_decoded` single steps."""
    length = len(embeds)
    past = empty_cache(session, 1, length)
    names = [output.name for output in session.get_outputs()]
    bounds = [0, *range(length - num_decoded, length + 1)]
    parts = []
    for start, end in zip(bounds[:-1], bounds[1:], strict=True):
        feeds = {
            "inputs_embeds": embeds[None, start:end],
            "seqlens_k": np.array([end - 1], np.int32),
            "total_sequence_length": np.array(end, np.int32),
        }
        results = dict(zip(names, session.run(names, {**feeds, **past}), strict=True))
        parts.append(results.pop("hidden")[0])
        past = {name.replace("present", "past"): value for name, value in results.items()}
    return np.concatenate(parts)


def check_gpt(path: Path, embeds: Array, hidden: Array, precision: Precision) -> str:
    """Check a GPT graph against reference hidden states (T, H); return the figure to report.

    Raises:
        CheckError: the difference is larger than the precision explains.
    """
    found = run_gpt(open_session(path), embeds, num_decoded=2)
    if precision == "fp32":
        return f"error {_require_close(path, found, hidden):.1e}"
    norms = np.linalg.norm(found, axis=1) * np.linalg.norm(hidden, axis=1)
    cosine = float((np.sum(found * hidden, axis=1) / norms).min())
    if not cosine >= MIN_INT8_COSINE:
        raise CheckError(f"{path.name}: cosine {cosine:.4f}, at least {MIN_INT8_COSINE} is needed")
    return f"cosine {cosine:.4f}"


def check_head(path: Path, hidden: Array, logits: Array) -> str:
    """Check a head graph against reference logits; return the figure to report."""
    found = open_session(path).run(None, {"hidden": hidden})[0]
    return f"error {_require_close(path, found, logits):.1e}"


def run_vocoder(session: Any, steps: Any, chunk_steps: int) -> Array:
    """Run one segment through a vocoder graph, chunk by chunk.

    Args:
        session: of a graph by vocoder_graph.py.
        steps: hidden states (T, H) float32 or codes (T, 4) int32.
        chunk_steps: steps per call, at least 1.

    Returns:
        The waveform (512 T - 256,) float32.
    """
    facts = session.get_modelmeta().custom_metadata_map
    context_steps = int(facts["context_steps"])
    num_calls = -(-(len(steps) + context_steps) // chunk_steps)
    padding = num_calls * chunk_steps - len(steps)
    padded = np.pad(steps, ((0, padding), (0, 0))).reshape(num_calls, 1, chunk_steps, -1)
    mask = np.pad(np.ones(len(steps), np.float32), (0, padding)).reshape(num_calls, 1, -1)
    state = np.zeros((1, int(facts["state_size"])), np.float32)
    pieces = []
    for call in range(num_calls):
        feeds = {session.get_inputs()[0].name: padded[call], "mask": mask[call], "state": state}
        audio, state = session.run(["audio", "next_state"], feeds)
        pieces.append(audio[0])
    start = SAMPLES_PER_STEP * context_steps
    end = start + SAMPLES_PER_STEP * len(steps) - SAMPLES_PER_STEP // 2
    wave: Array = np.concatenate(pieces)[start:end]
    return wave


def check_vocoder(path: Path, checkpoint: Checkpoint, is_code_path: bool = False) -> str:
    """Check a vocoder graph (hidden path or codes path) on a short input; return the figure."""
    random = np.random.default_rng(SEED)
    inputs: Any
    if is_code_path:
        shape: tuple[int, int] = (NUM_STEPS, checkpoint.gpt.num_codebooks)
        codes = random.integers(0, NUM_CODES, shape).astype(np.int32)
        dvae, layers = checkpoint.load("DVAE"), checkpoint.dvae.decoder.num_layers
        inputs = codes
        mel = reference_speech.codes_to_mel(codes, dvae, layers)
    else:
        shape = (NUM_STEPS, checkpoint.gpt.hidden_size)
        hidden = random.standard_normal(shape).astype(np.float32)
        decoder, layers = checkpoint.load("Decoder"), checkpoint.decoder.num_layers
        inputs = hidden
        mel = reference_speech.hidden_to_mel(hidden, decoder, layers)
    wave = reference_speech.mel_to_wave(mel, checkpoint.load("Vocos"), checkpoint.vocos.num_layers)
    found = run_vocoder(open_session(path), inputs, CHECK_CHUNK_STEPS)
    return f"error {_require_close(path, found, wave):.1e}"
