"""Faults for requests with marked seeds, installed into the code of a copied model repository.

The product has no hooks for this: repository_copies.add_faults appends a line to the copy that
replaces methods of its classes. Imports nothing of the tests, since it is copied too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy

EngineFault = Literal["prefill", "decode", "logits"]
"""Computing the prompt or a later step raises, or the logits of a step are NaN."""
FrontFault = Literal["vocoder", "vocoder once", "vocoder batch"]
"""The vocoder is called with a state of a wrong size, which its runtime refuses: from the third
call on, or only the third time. Or all its calls are marked, and any batch of several requests with
a marked one fails whole."""
FAULT_AFTER = 30
"""Steps that a request gets before its decoding goes wrong."""
FAULTY_CALL = 3
INJECTED = "injected failure"
MARK = 0.123456789


def install_engine(faults: Mapping[int, EngineFault]) -> None:
    """Let the CPU runner fail; `faults` has seeds of the token model's requests."""
    from chattts_engine.onnx_runner import OnnxRunner

    prefill, decode, code_logits = OnnxRunner.prefill, OnnxRunner.decode, OnnxRunner.code_logits
    spoilt: set[bytes] = set()

    def fault_of(sequence: Any) -> EngineFault | None:
        return faults.get(sequence.request.sampling.seed)

    def failing_prefill(self: Any, sequence: Any, inputs: Any, start: int) -> Any:
        hidden = prefill(self, sequence, inputs, start)
        if fault_of(sequence) == "prefill":
            raise RuntimeError(INJECTED)
        return hidden

    def failing_decode(self: Any, sequences: Any, inputs: Any) -> Any:
        hidden = decode(self, sequences, inputs)
        for row, sequence in enumerate(sequences):
            if sequence.num_generated >= FAULT_AFTER:
                if fault_of(sequence) == "decode":
                    raise RuntimeError(INJECTED)
                if fault_of(sequence) == "logits":
                    spoilt.add(hidden[row].tobytes())
        return hidden

    def spoilt_logits(self: Any, hidden: Any) -> Any:
        logits = code_logits(self, hidden)
        logits[[row.tobytes() in spoilt for row in hidden]] = float("nan")
        return logits

    OnnxRunner.prefill = failing_prefill  # type: ignore[method-assign]
    OnnxRunner.decode = failing_decode  # type: ignore[method-assign]
    OnnxRunner.code_logits = spoilt_logits  # type: ignore[method-assign]


def install_front(faults: Mapping[int, FrontFault], vocoder: Any) -> None:
    """Let calls of model.py's class Vocoder fail; `faults` has seeds of chattts' requests."""
    from chattts_pipeline import Speech

    current = threading.local()
    run: Callable[[Any], None] = Speech.run
    call = vocoder._call

    def marked_run(self: Any) -> None:
        current.fault, current.num_calls = faults.get(self._plan.request.seed), 0
        run(self)

    def failing_call(self: Any, chunk: Any) -> Any:
        fault = getattr(current, "fault", None)
        current.num_calls = getattr(current, "num_calls", 0) + 1
        is_faulty = fault == "vocoder" and current.num_calls >= FAULTY_CALL
        is_faulty |= fault == "vocoder once" and current.num_calls == FAULTY_CALL
        if is_faulty:
            chunk = replace(chunk, state=chunk.state[:-1])
        if fault == "vocoder batch":
            hidden = chunk.hidden.copy()
            hidden[0, 0] = MARK
            chunk = replace(chunk, hidden=hidden)
        return call(self, chunk)

    Speech.run = marked_run  # type: ignore[method-assign]
    vocoder._call = failing_call


def install_vocoder(model: Any) -> None:
    """Let the stand-in of the onnxruntime backend fail whole batches, as the C++ backend does."""
    run_merged = model._run_merged

    def failing_run(self: Any, feeds: Any) -> Any:
        marks = [feed["hidden"][0, 0, 0] == numpy.float32(MARK) for feed in feeds]
        try:
            if any(marks) and len(marks) > 1:
                raise RuntimeError(INJECTED)
            return run_merged(self, feeds)
        except Exception as error:
            return [error] * len(feeds)

    model._run = failing_run
