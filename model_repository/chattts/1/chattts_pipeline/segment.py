"""One segment in the token model: its inputs, its refine pass, and the thread that reads it."""

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from chattts_text import Segment as TextSegment
from chattts_voices import Voice
from chattts_voices.strings import NUM_CODEBOOKS
from numpy.typing import NDArray

from .carry_over import AudioPrompt, carried_over
from .errors import SpeechError
from .prompts import code_prompt, has_same_words, refine_prompt
from .quality import Reason, SegmentQuality
from .request import DEFAULT_MAX_NEW_TOKENS, SpeechRequest
from .services import Services, TokenChunk
from .shaping import SegmentShape
from .short_text import min_steps
from .streaming import AudioStream
from .tokens import split_style

_GOLDEN_RATIO = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True, eq=False)
class SpeechPlan:
    """What one request comes down to."""

    request: SpeechRequest
    """As the caller sent it."""
    segments: tuple[TextSegment, ...]
    """What is to be said, and the silence after each segment; empty: nothing can be spoken."""
    voice: Voice
    """Who speaks."""
    seed: int
    """0 ... 2**64 - 1; each segment derives its own."""
    request_id: str
    """The caller's name for the request."""
    speech_id: str
    """Unique among the running requests."""
    warnings: tuple[dict[str, Any], ...] = ()
    """Code and message of what the caller should know, and where in the text it is."""

    def __post_init__(self) -> None:
        """Refuse what cannot be done.

        Raises:
            ValueError: Carry-over with a voice that has an audio prompt already.
        """
        if self.request.options.carry_over and self.voice.audio_prompt_codes is not None:
            allowed = "a voice without an audio prompt, which all segments continue from anyway"
            raise ValueError(f"options: carry_over is True; needs {allowed}")


def derive_seed(seed: int, index: int) -> int:
    """Derive the seed of one pass of a request; it depends on nothing but the arguments.

    Source: the output function of SplitMix64 (Steele, Lea, Flood 2014) at position `index` + 1.

    Args:
        seed: The request's seed, 0 ... 2**64 - 1.
        index: 2 * segment for mode code, 2 * segment + 1 for its refine pass.

    Returns:
        0 ... 2**64 - 1.
    """
    value = (seed + (index + 1) * _GOLDEN_RATIO) & _MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31


class Segment:
    """One segment. `read` runs in a reader thread; the rest belongs to the request's thread.

    What `read` changes (text, warnings) is settled before it hands over the first chunk.

    Args:
        plan: The request.
        index: Which segment of it.
        services: Models and threads.
        stream: Its way through the vocoder.
        expires_at: Deadline on the monotonic clock in seconds; None: none.
    """

    def __init__(
        self,
        plan: SpeechPlan,
        index: int,
        services: Services,
        stream: AudioStream,
        expires_at: float | None,
    ) -> None:
        self.index = index
        self.text = plan.segments[index].text.strip()
        self.warnings: list[dict[str, str]] = []
        self.stream = stream
        self.shape = SegmentShape(
            plan.request.options, services.sample_rate, plan.segments[index].pause_ms
        )
        self.finish_reason = ""
        self.queue_ms = 0
        self.num_retries = 0
        """Derived seeds tried because the end came first."""
        self.mean_batch = 0.0
        """Sequences decoded together, itself included, on average over its steps."""
        self.has_begun = False
        self.queue_expires_at: float | None = None
        """When it ends unless the token model has begun, on the monotonic clock in seconds."""
        self.is_late = False
        """It ends with finish reason "deadline" as soon as it starts."""
        self.audio_prompt = AudioPrompt(plan.voice.audio_prompt_codes, plan.voice.transcript)
        """What it continues from; to be changed before it starts."""
        self.quality = SegmentQuality(
            services.sample_rate,
            services.vocoder_sizes.samples_per_step,
            plan.segments[index].estimated_s,
        )
        """Is shown its samples as the vocoder made them."""
        self._codes: list[NDArray[np.int32]] = [np.zeros((0, NUM_CODEBOOKS), np.int32)]
        self._plan = plan
        self._services = services
        self._expires_at = expires_at
        self._live_id = ""
        self._is_stopped = False
        self.reader: Future[None] | None = None

    def accept(self, chunk: TokenChunk) -> None:
        """Take a chunk over.

        Raises:
            SpeechError: The token model gave up, or ended the speech before the first step.
        """
        self.has_begun = True
        self.queue_ms = chunk.queue_ms
        self.num_retries = chunk.num_retries
        self.mean_batch = chunk.mean_batch
        self._codes.append(chunk.codes)
        self.stream.append(chunk.hidden)
        self.finish_reason = chunk.finish_reason
        where = f"segment {self.index}"
        if chunk.finish_reason == "cancelled":
            raise SpeechError("CANCELLED", f"{where}: cancelled")
        if chunk.finish_reason == "error":
            raise SpeechError("INTERNAL", f"{where}: the token model failed")
        if chunk.finish_reason == "eos" and not self.stream.num_steps:
            raise SpeechError("INTERNAL", f"{where}: the speech ended at once; try another seed")

    def carry_over(self) -> AudioPrompt:
        """Return what later segments continue from, once this one, the first, has ended."""
        return carried_over(self._codes, self.text)

    def faults(self) -> tuple[Reason, ...]:
        """Return what is wrong with the segment; nothing as long as it has not ended."""
        if not self.finish_reason:
            return ()
        codes = np.concatenate(self._codes)
        return self.quality.reasons(codes, self.finish_reason, self._min_new_tokens())

    def stop(self) -> None:
        """Make the token model stop working on this segment, if it is."""
        self._is_stopped = True
        live_id = self._live_id
        if live_id:
            # The request ends with its own error; a token model that is gone has nothing to stop.
            with contextlib.suppress(SpeechError):
                self._services.tokens.cancel(live_id)

    def read(self, put: Callable[[TokenChunk | Exception], None]) -> None:
        """Refine and generate; hand over chunks, the last one with a finish reason, or an error."""
        try:
            if self._plan.request.refine:
                self._refine()
            self._generate(put)
        except Exception as error:  # raised again by the request's thread
            put(error)

    def _refine(self) -> None:
        _, style = split_style(self._plan.request.style)
        inputs = self._inputs(refine_prompt(self.text, style), "text", 2 * self.index + 1)
        if inputs is None:
            return
        token_ids: list[int] = []
        for chunk in self._run(inputs):
            token_ids.extend(chunk.token_ids.tolist())
            self.is_late = chunk.finish_reason == "deadline"
        self.queue_expires_at = None  # met
        if self.is_late:
            return
        refined = self._services.decode_refined(token_ids)
        if has_same_words(refined, self.text):
            self.text = refined
            return
        message = f"segment {self.index}: the refine pass changed the words; spoken without it"
        self.warnings.append({"code": "refine_discarded", "message": message})

    def _generate(self, put: Callable[[TokenChunk | Exception], None]) -> None:
        request, voice = self._plan.request, self._plan.voice
        style = split_style(request.style)[0] if request.refine else request.style
        has_speaker = voice.speaker_embedding is not None
        prompt = code_prompt(
            self.text,
            style=style,
            has_speaker=has_speaker,
            transcript=self.audio_prompt.transcript,
        )
        inputs = self._inputs(prompt, "code", 2 * self.index)
        if inputs is None:
            put(self._nothing())
            return
        for chunk in self._run(inputs | self._code_inputs()):
            if chunk.finish_reason:
                self._live_id = ""
            put(chunk)

    def _nothing(self) -> TokenChunk:
        """Return the only chunk of a segment that has no time left."""
        return TokenChunk(
            hidden=np.zeros((0, 0), np.float32),
            codes=np.zeros((0, NUM_CODEBOOKS), np.int32),
            token_ids=np.zeros(0, np.int32),
            finish_reason="deadline",
            queue_ms=self.queue_ms,
            num_retries=0,
        )

    def _run(self, inputs: dict[str, NDArray[Any]]) -> Iterator[TokenChunk]:
        self._live_id = inputs["id"][0].decode()
        if self._is_stopped:
            raise SpeechError("CANCELLED", f"segment {self.index}: cancelled")
        chunk = None
        for chunk in self._services.tokens.generate(inputs):
            yield chunk
        self._live_id = ""
        if chunk is None or not chunk.finish_reason:
            raise SpeechError("INTERNAL", f"segment {self.index}: the token model stopped early")

    def _inputs(self, prompt: str, mode: str, pass_index: int) -> dict[str, NDArray[Any]] | None:
        """Return what both passes ask of the token model, None if there is no time left."""
        request = self._plan.request
        inputs: dict[str, NDArray[Any]] = {
            "prompt": _bytes(prompt),
            "mode": _bytes(mode),
            "id": _bytes(f"{self._plan.speech_id}/{pass_index}"),
            "seed": np.array([derive_seed(self._plan.seed, pass_index)], np.uint64),
            "priority": np.array([request.priority], np.int32),
        }
        deadlines = {"deadline_ms": self._expires_at, "queue_deadline_ms": self.queue_expires_at}
        for name, expires_at in deadlines.items():
            if expires_at is not None:
                remaining_ms = int((expires_at - time.monotonic()) * 1000)
                self.is_late |= remaining_ms < 1
                inputs[name] = np.array([remaining_ms], np.int32)
        return None if self.is_late else inputs

    def _code_inputs(self) -> dict[str, NDArray[Any]]:
        request, voice = self._plan.request, self._plan.voice
        inputs: dict[str, NDArray[Any]] = {
            "temperature": np.array([request.temperature], np.float32),
            "top_p": np.array([request.top_p], np.float32),
            "top_k": np.array([request.top_k], np.int32),
            "repetition_penalty": np.array([request.repetition_penalty], np.float32),
            "min_new_tokens": np.array([self._min_new_tokens()], np.int32),
            "first_chunk_tokens": np.array([self.stream.first_steps], np.int32),
            "chunk_tokens": np.array([self.stream.chunk_steps], np.int32),
        }
        if request.max_new_tokens is not None:
            inputs["max_new_tokens"] = np.array([request.max_new_tokens], np.int32)
        if voice.speaker_embedding is not None:
            inputs["speaker_embedding"] = voice.speaker_embedding
        if self.audio_prompt.codes is not None:
            inputs["audio_prompt_codes"] = self.audio_prompt.codes
        return inputs

    def _min_new_tokens(self) -> int:
        request = self._plan.request
        if request.min_new_tokens is not None:
            return request.min_new_tokens
        return min(min_steps(self.text), request.max_new_tokens or DEFAULT_MAX_NEW_TOKENS)


def _bytes(text: str) -> NDArray[np.object_]:
    return np.array([text.encode()], dtype=np.object_)
