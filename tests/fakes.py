"""Small stand-ins that unit tests drive the engine with."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from typing import Literal

import numpy as np
from chattts_engine.config import EngineConfig, GPTConfig
from chattts_engine.embeddings import Embeddings
from chattts_engine.engine import Engine, StepOutput
from chattts_engine.runner import RunnerDeadError
from chattts_engine.sampling_params import SamplingParams
from chattts_engine.sequence import GenerationRequest, Sequence
from numpy.typing import NDArray

HIDDEN = 8
CODEBOOKS = 4
AUDIO_TOKENS = 626
TEXT_TOKENS = 40
SPEAKER_ID = 5
END_OF_TEXT = 7

FAKE_GPT = GPTConfig(
    checkpoint="fake",
    untrained=True,
    precision="fp32",
    runner="onnx",
    hidden_size=HIDDEN,
    intermediate_size=16,
    num_layers=1,
    num_heads=2,
    head_dim=4,
    num_codebooks=CODEBOOKS,
    num_audio_tokens=AUDIO_TOKENS,
    num_text_tokens=TEXT_TOKENS,
    max_position_embeddings=4096,
    rms_norm_eps=1e-6,
    rope_theta=10000.0,
)


Fault = Literal["prefill", "decode", "batch", "hidden", "logits"]
"""What goes wrong for a request: a call that computes it raises ("batch": only beside others), or
its hidden state or its logits are NaN."""
FAULT_AFTER = 3
"""Tokens that a faulty request gets before; a prompt fails at once."""


class FakeRunner:
    """A small recurrent network: its state per position is the cache, so a lost or mixed-up cache,
    a skipped position or a wrong input changes every later token."""

    def __init__(
        self, dies_at_decode: int | None = None, faults: Mapping[str, Fault] | None = None
    ) -> None:
        rng = np.random.default_rng(0)
        self._state_weight = rng.normal(size=(HIDDEN, HIDDEN)).astype(np.float32)
        self._code_weight = rng.normal(size=(HIDDEN, CODEBOOKS * AUDIO_TOKENS)).astype(np.float32)
        self._text_weight = rng.normal(size=(HIDDEN, TEXT_TOKENS)).astype(np.float32)
        self._states: dict[str, list[NDArray[np.float32]]] = {}
        self.decode_batches: list[int] = []
        self.faults: dict[str, Fault] = dict(faults or {})
        self._dies_at_decode = dies_at_decode
        self._spoilt: set[bytes] = set()

    @property
    def num_held(self) -> int:
        """Sequences whose cache is held."""
        return len(self._states)

    def prefill(
        self, sequence: Sequence, inputs: NDArray[np.float32], start: int
    ) -> NDArray[np.float32]:
        states = self._states.setdefault(sequence.id, [])
        hidden = [self._write(states, start + i, row) for i, row in enumerate(inputs)]
        if self.faults.get(sequence.id) == "prefill":
            raise RuntimeError("scripted failure")
        return np.stack(hidden)

    def decode(
        self, sequences: SequenceOf[Sequence], inputs: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        self.decode_batches.append(len(sequences))
        if len(self.decode_batches) == self._dies_at_decode:
            raise RunnerDeadError("scripted failure")
        hidden = np.empty((len(sequences), HIDDEN), np.float32)
        for row, sequence in enumerate(sequences):
            fault = self._fault(sequence)
            if fault == "decode" or (fault == "batch" and len(sequences) > 1):
                raise RuntimeError("scripted failure")  # with the rows before it written
            hidden[row] = self._write(
                self._states[sequence.id], sequence.num_computed_tokens, inputs[row]
            )
            if fault == "logits":
                self._spoilt.add(hidden[row].tobytes())
            if fault == "hidden":
                hidden[row] = np.nan
        return hidden

    def release(self, sequence: Sequence) -> None:
        self._states.pop(sequence.id, None)

    def code_logits(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        return self._logits(hidden, self._code_weight).reshape(-1, CODEBOOKS, AUDIO_TOKENS)

    def text_logits(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        return self._logits(hidden, self._text_weight)

    def _logits(
        self, hidden: NDArray[np.float32], weight: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        logits = np.stack([row @ weight for row in hidden])
        logits[[row.tobytes() in self._spoilt for row in hidden], -1] = np.nan
        return logits

    def _fault(self, sequence: Sequence) -> Fault | None:
        has_begun = sequence.num_generated >= FAULT_AFTER
        return self.faults.get(sequence.id) if has_begun else None

    def _write(
        self, states: list[NDArray[np.float32]], position: int, row: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Compute a position from the one before it; writing it again changes nothing."""
        before = states[position - 1] if position else np.zeros(HIDDEN, np.float32)
        state: NDArray[np.float32] = np.tanh(before @ self._state_weight + row)
        states[position:] = [state]
        return state


def make_engine(runner: FakeRunner | None = None, **limits: int) -> Engine:
    """Return an engine over a fake runner."""
    rng = np.random.default_rng(1)
    embeddings = Embeddings(
        rng.normal(size=(TEXT_TOKENS, HIDDEN)).astype(np.float32),
        rng.normal(size=(CODEBOOKS, AUDIO_TOKENS, HIDDEN)).astype(np.float32),
        SPEAKER_ID,
    )
    config = EngineConfig(**{"max_num_seqs": 4, "max_model_len": 256, **limits})
    return Engine(config, FAKE_GPT, runner or FakeRunner(), embeddings, END_OF_TEXT)


def make_request(
    request_id: str,
    prompt_tokens: int = 5,
    max_new_tokens: int = 12,
    seed: int = 1,
    **fields: object,
) -> GenerationRequest:
    """Return a request whose length is max_new_tokens: its end token is forbidden until then."""
    sampling = SamplingParams(
        seed=seed,
        temperature=(1.0,),
        max_new_tokens=max_new_tokens,
        min_new_tokens=max_new_tokens,
    )
    values: dict[str, object] = {
        "id": request_id,
        "mode": "code",
        "prompt_token_ids": np.arange(prompt_tokens) % SPEAKER_ID,
        "sampling": sampling,
        **fields,
    }
    return GenerationRequest(**values)  # type: ignore[arg-type]


class Transcript:
    """Collects step outputs per request."""

    def __init__(self) -> None:
        self.tokens: dict[str, list[tuple[int, ...]]] = {}
        self.reasons: dict[str, str] = {}
        self.errors: dict[str, str] = {}

    def add(self, outputs: list[StepOutput]) -> None:
        for output in outputs:
            tokens = self.tokens.setdefault(output.sequence.id, [])
            assert output.sequence.id not in self.reasons, "an output after the last one"
            if output.token is not None:
                tokens.append(tuple(int(code) for code in output.token))
            if output.finish_reason is not None:
                self.reasons[output.sequence.id] = output.finish_reason
                if output.finish_reason == "error":
                    self.errors[output.sequence.id] = output.sequence.error


def run_all(engine: Engine, requests: list[GenerationRequest]) -> Transcript:
    """Submit everything at time 0 and step until idle."""
    for request in requests:
        engine.add_request(request, 0.0)
    transcript = Transcript()
    while engine.has_unfinished:
        transcript.add(engine.step(0.0))
    return transcript
