"""Tensors of one chattts_gpt request to a validated GenerationRequest.

The one place that knows the model's input names, defaults and ranges besides config.pbtxt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as SequenceOf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .config import GPTConfig
from .sampling_params import MAX_NEW_TOKENS, SamplingParams
from .sequence import GenerationRequest, Mode
from .tokenizer import SPEAKER_TOKEN, Tokenizer

MAX_PROMPT_BYTES = 65536
MAX_ID_BYTES = 256
DEFAULT_CHUNK_TOKENS = 24
MAX_DEADLINE_MS = 2**31 - 1

# The published defaults of the two generation modes (infer_code and refine_text).
_DEFAULTS: dict[Mode, dict[str, Any]] = {
    "code": {"temperature": 0.3, "repetition_penalty": 1.05, "max_new_tokens": MAX_NEW_TOKENS},
    "text": {"temperature": 0.7, "repetition_penalty": 1.0, "max_new_tokens": 384},
}

Inputs = Mapping[str, NDArray[Any]]


class RequestParser:
    """Validates requests for one set of weights."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        gpt: GPTConfig,
        max_num_tokens: int,
        draw_seed: Callable[[], int],
        draw_id: Callable[[], str],
    ) -> None:
        """Keep what requests are checked against.

        Args:
            tokenizer: of the weights.
            gpt: sizes of the weights.
            max_num_tokens: longest prompt plus generation; a default max_new_tokens stays below.
            draw_seed: gives the seed of a request without one.
            draw_id: gives the id of a request without one.
        """
        self._tokenizer = tokenizer
        self._gpt = gpt
        self._max_num_tokens = max_num_tokens
        self._draw_seed = draw_seed
        self._draw_id = draw_id

    def parse(self, inputs: Inputs, now_s: float) -> GenerationRequest:
        """Build the request that a set of input tensors describes.

        Args:
            inputs: the tensors that were given, by name.
            now_s: the engine's clock, for the deadline.

        Raises:
            ValueError: starts with the name of the wrong input and states its range.
        """
        mode = _mode(inputs)
        token_ids = self._token_ids(inputs)
        audio_prompt = self._audio_prompt(inputs)
        num_prompt_tokens = len(token_ids) + (0 if audio_prompt is None else len(audio_prompt))
        chunk_tokens = _int(inputs, "chunk_tokens", DEFAULT_CHUNK_TOKENS, 1, MAX_NEW_TOKENS)
        return GenerationRequest(
            id=_text(inputs, "id", "", MAX_ID_BYTES) or self._draw_id(),
            mode=mode,
            prompt_token_ids=token_ids,
            sampling=self._sampling(inputs, mode, self._max_num_tokens - num_prompt_tokens),
            speaker_embedding=self._speaker(inputs, token_ids),
            audio_prompt_codes=audio_prompt,
            priority=_int(inputs, "priority", 2, 1, 3),
            deadline_s=_deadline(inputs, "deadline_ms", now_s),
            queue_deadline_s=_deadline(inputs, "queue_deadline_ms", now_s),
            first_chunk_tokens=_int(inputs, "first_chunk_tokens", chunk_tokens, 1, MAX_NEW_TOKENS),
            chunk_tokens=chunk_tokens,
            return_hidden=bool(_scalar(inputs, "return_hidden", np.bool_, mode == "code")),
        )

    def named_id(self, inputs: Inputs, name: str) -> str:
        """Return the id that a `cancel` or `next` call names.

        Raises:
            ValueError: it is empty, or other inputs came with it.
        """
        others = [other for other in inputs if other != name]
        if others:
            raise ValueError(f"{name}: stands alone, but {', '.join(others)} came with it")
        request_id = _text(inputs, name, "", MAX_ID_BYTES)
        if not request_id:
            raise ValueError(f"{name}: is empty; allowed: an id of 1 ... {MAX_ID_BYTES} bytes")
        return request_id

    def is_pulled(self, inputs: Inputs) -> bool:
        """Whether a request's chunks are fetched by `next` calls.

        Raises:
            ValueError: it is, but has no id to fetch them by.
        """
        is_pulled = bool(_scalar(inputs, "pull", np.bool_, False))
        if is_pulled and "id" not in inputs:
            raise ValueError("pull: needs an id")
        return is_pulled

    def _token_ids(self, inputs: Inputs) -> NDArray[np.int64]:
        prompt = _text(inputs, "prompt", "", MAX_PROMPT_BYTES)
        token_ids = self._tokenizer.encode(prompt)
        if not len(token_ids):
            raise ValueError(f"prompt: is empty; allowed: 1 ... {MAX_PROMPT_BYTES} bytes of text")
        if token_ids.max() >= self._gpt.num_text_tokens:
            raise ValueError("prompt: the tokenizer gave an id that the checkpoint does not have")
        return token_ids

    def _sampling(self, inputs: Inputs, mode: Mode, room: int) -> SamplingParams:
        defaults = _DEFAULTS[mode]
        # Without room for one token the engine refuses the prompt.
        most = min(defaults["max_new_tokens"], max(1, room))
        temperature = _tensor(inputs, "temperature", np.float32)
        if temperature is None:
            temperature = np.array([defaults["temperature"]], np.float32)
        allowed = [(1,), (self._gpt.num_codebooks,)] if mode == "code" else [(1,)]
        if temperature.shape not in allowed:
            raise _shape_error("temperature", temperature, allowed)
        seed = _scalar(inputs, "seed", np.uint64, None)
        return SamplingParams(
            # Shortest decimal of the float32 given, so that messages show what the caller wrote.
            temperature=tuple(float(str(value)) for value in temperature),
            top_p=_float(inputs, "top_p", 0.7),
            top_k=int(_scalar(inputs, "top_k", np.int32, 20)),
            repetition_penalty=_float(inputs, "repetition_penalty", defaults["repetition_penalty"]),
            min_new_tokens=int(_scalar(inputs, "min_new_tokens", np.int32, 0)),
            max_new_tokens=int(_scalar(inputs, "max_new_tokens", np.int32, most)),
            seed=self._draw_seed() if seed is None else int(seed),
        )

    def _speaker(self, inputs: Inputs, token_ids: NDArray[np.int64]) -> NDArray[np.float16] | None:
        vector = _tensor(inputs, "speaker_embedding", np.float16)
        if vector is None:
            return None
        if vector.shape != (self._gpt.hidden_size,):
            raise ValueError(
                f"speaker_embedding: has shape {vector.shape}; this checkpoint's speakers "
                f"have {self._gpt.hidden_size} values"
            )
        if not np.isfinite(vector).all() or not vector.any():
            raise ValueError("speaker_embedding: must be finite and not all zero")
        if self._tokenizer.speaker_id not in token_ids:
            raise ValueError(f"speaker_embedding: the prompt has no {SPEAKER_TOKEN} token for it")
        return vector

    def _audio_prompt(self, inputs: Inputs) -> NDArray[np.int32] | None:
        codes = _tensor(inputs, "audio_prompt_codes", np.int32)
        if codes is None:
            return None
        if codes.ndim != 2 or codes.shape[1] != self._gpt.num_codebooks:
            raise _shape_error("audio_prompt_codes", codes, [("T", self._gpt.num_codebooks)])
        if not len(codes):
            return None
        if codes.min() < 0 or codes.max() >= self._gpt.end_of_speech:
            raise ValueError(
                f"audio_prompt_codes: values must lie in 0 ... {self._gpt.end_of_speech - 1}"
            )
        return codes


def _mode(inputs: Inputs) -> Mode:
    text = _text(inputs, "mode", "code", MAX_ID_BYTES)
    if text == "code":
        return "code"
    if text == "text":
        return "text"
    raise ValueError(f"mode: {text!r} is not one of code, text")


def _tensor(inputs: Inputs, name: str, dtype: type[np.generic]) -> NDArray[Any] | None:
    """Return an input that was given; its type is checked, its shape is not."""
    tensor = inputs.get(name)
    if tensor is not None and tensor.dtype != dtype:
        allowed = "bytes" if dtype is np.object_ else np.dtype(dtype).name
        raise ValueError(f"{name}: has type {tensor.dtype}; allowed: {allowed}")
    return tensor


def _scalar(inputs: Inputs, name: str, dtype: type[np.generic], default: Any) -> Any:
    tensor = _tensor(inputs, name, dtype)
    if tensor is None:
        return default
    if tensor.shape != (1,):
        raise _shape_error(name, tensor, [(1,)])
    return tensor[0]


def _shape_error(name: str, tensor: NDArray[Any], allowed: SequenceOf[object]) -> ValueError:
    shapes = " or ".join(str(shape) for shape in allowed)
    return ValueError(f"{name}: has shape {tensor.shape}; allowed: {shapes}")


def _float(inputs: Inputs, name: str, default: float) -> float:
    return float(str(_scalar(inputs, name, np.float32, default)))


def _int(inputs: Inputs, name: str, default: int, low: int, high: int) -> int:
    value = int(_scalar(inputs, name, np.int32, default))
    if not low <= value <= high:
        raise ValueError(f"{name}: {value} is outside {low} ... {high}")
    return value


def _deadline(inputs: Inputs, name: str, now_s: float) -> float | None:
    """Return when a number of milliseconds from now is over; 0 is never."""
    milliseconds = _int(inputs, name, 0, 0, MAX_DEADLINE_MS)
    return now_s + milliseconds / 1000 if milliseconds else None


def _text(inputs: Inputs, name: str, default: str, max_bytes: int) -> str:
    raw = _scalar(inputs, name, np.object_, None)
    if raw is None and name not in inputs:
        return default
    if not isinstance(raw, bytes):
        raise ValueError(f"{name}: has a value of type {type(raw).__name__}; allowed: bytes")
    if len(raw) > max_bytes:
        raise ValueError(f"{name}: {len(raw)} bytes are outside 0 ... {max_bytes}")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: is not valid UTF-8 (byte {error.start})") from None
