from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chattts_engine.request import MAX_PROMPT_BYTES, RequestParser
from chattts_engine.tokenizer import Tokenizer
from fakes import FAKE_GPT
from golden import TINY
from hypothesis import given, settings
from hypothesis import strategies as st
from random_tensors import Array, outcome
from random_tensors import tensors as random_tensors

MAX_NUM_TOKENS = 3000
PROMPT = "[Stts][spk_emb][speed_5]hello[Ptts]"


@pytest.fixture(scope="module")
def parser() -> RequestParser:
    tokenizer = Tokenizer(TINY / "asset" / "tokenizer" / "tokenizer.json")
    gpt = replace(FAKE_GPT, hidden_size=64, num_text_tokens=223)
    return RequestParser(tokenizer, gpt, MAX_NUM_TOKENS, lambda: 77, lambda: "drawn")


TYPES: dict[str, Any] = {
    **dict.fromkeys(["prompt", "mode", "id"], np.object_),
    **dict.fromkeys(["temperature", "top_p", "repetition_penalty"], np.float32),
    **dict.fromkeys(["top_k", "min_new_tokens", "max_new_tokens", "priority"], np.int32),
    **dict.fromkeys(["deadline_ms", "queue_deadline_ms"], np.int32),
    **dict.fromkeys(["first_chunk_tokens", "chunk_tokens", "audio_prompt_codes"], np.int32),
    **dict.fromkeys(["return_hidden", "pull"], np.bool_),
    "seed": np.uint64,
    "speaker_embedding": np.float16,
}


def tensors(**values: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays as Triton hands them over."""
    arrays = {}
    for name, value in {"prompt": PROMPT.encode(), **values}.items():
        if isinstance(value, bytes):
            arrays[name] = np.array([value], dtype=np.object_)
        else:
            arrays[name] = np.atleast_1d(np.array(value, dtype=TYPES[name]))
    return arrays


def test_defaults_are_the_published_ones(parser: RequestParser) -> None:
    request = parser.parse(tensors(), now_s=5.0)
    sampling = request.sampling
    assert (request.id, request.mode, request.priority) == ("drawn", "code", 2)
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == ((0.3,), 0.7, 20)
    assert (sampling.repetition_penalty, sampling.max_new_tokens) == (1.05, 2048)
    assert sampling.seed == 77
    assert request.deadline_s is None
    assert request.return_hidden
    text = parser.parse(tensors(mode=b"text"), now_s=5.0)
    assert (text.sampling.temperature, text.sampling.repetition_penalty) == ((0.7,), 1.0)
    assert text.sampling.max_new_tokens == 384
    assert not text.return_hidden


def test_given_values_are_taken(parser: RequestParser) -> None:
    request = parser.parse(
        tensors(
            id=b"mine",
            seed=2**64 - 1,
            temperature=[0.1, 0.2, 0.3, 0.4],
            deadline_ms=1500,
            queue_deadline_ms=500,
            first_chunk_tokens=4,
            chunk_tokens=9,
            audio_prompt_codes=[[1, 2, 3, 624]],
            speaker_embedding=np.ones(64),
        ),
        now_s=5.0,
    )
    assert request.id == "mine"
    assert request.sampling.seed == 2**64 - 1
    assert request.sampling.temperature == (0.1, 0.2, 0.3, 0.4)
    assert (request.deadline_s, request.queue_deadline_s) == (6.5, 5.5)
    assert (request.first_chunk_tokens, request.chunk_tokens) == (4, 9)
    assert request.num_prompt_tokens == len(request.prompt_token_ids) + 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt", b""),
        ("prompt", b"  "),
        ("prompt", b"\xff\xfe"),
        ("prompt", b"x" * (MAX_PROMPT_BYTES + 1)),
        ("mode", b"speech"),
        ("temperature", float("nan")),
        ("temperature", 3.0),
        ("temperature", [0.3, 0.3]),
        ("top_p", [0.5, 0.5]),
        ("top_p", float("inf")),
        ("top_k", 0),
        ("repetition_penalty", -1.0),
        ("min_new_tokens", -1),
        ("max_new_tokens", 2**31 - 1),
        ("seed", [1, 2]),
        ("chunk_tokens", 0),
        ("first_chunk_tokens", 0),
        ("priority", 4),
        ("deadline_ms", -1),
        ("queue_deadline_ms", -1),
        ("speaker_embedding", np.ones(63)),
        ("speaker_embedding", np.zeros(64)),
        ("speaker_embedding", np.full(64, np.nan)),
        ("audio_prompt_codes", [[1, 2, 3, 625]]),
        ("audio_prompt_codes", [[-1, 2, 3, 4]]),
        ("audio_prompt_codes", [[1, 2, 3]]),
    ],
)
def test_bad_input_is_refused_by_name(parser: RequestParser, field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{field}: "):
        parser.parse(tensors(**{field: value}), now_s=0.0)


def test_a_speaker_without_its_slot_is_refused(parser: RequestParser) -> None:
    inputs = tensors(prompt=b"[Stts][empty_spk]hello[Ptts]", speaker_embedding=np.ones(64))
    with pytest.raises(ValueError, match=r"^speaker_embedding: the prompt has no \[spk_emb\]"):
        parser.parse(inputs, now_s=0.0)


@pytest.mark.parametrize("name", ["cancel", "next"])
def test_a_call_that_names_a_request_stands_alone(parser: RequestParser, name: str) -> None:
    named = np.array([b"mine"], dtype=np.object_)
    assert parser.named_id({name: named}, name) == "mine"
    with pytest.raises(ValueError, match=f"^{name}: stands alone, but prompt"):
        parser.named_id({**tensors(), name: named}, name)
    with pytest.raises(ValueError, match=f"^{name}: is empty"):
        parser.named_id({name: np.array([b""], dtype=np.object_)}, name)


def test_a_pulled_request_needs_an_id(parser: RequestParser) -> None:
    assert not parser.is_pulled(tensors())
    assert parser.is_pulled(tensors(pull=True, id=b"mine"))
    with pytest.raises(ValueError, match="^pull: needs an id"):
        parser.is_pulled(tensors(pull=True))


def test_the_default_length_is_what_fits_beside_the_prompt(parser: RequestParser) -> None:
    codes = np.zeros((MAX_NUM_TOKENS - 100, 4), np.int32)
    request = parser.parse(tensors(audio_prompt_codes=codes), 0.0)
    assert request.num_prompt_tokens + request.sampling.max_new_tokens == MAX_NUM_TOKENS
    asked = parser.parse(tensors(audio_prompt_codes=codes, max_new_tokens=2048), 0.0)
    assert asked.sampling.max_new_tokens == 2048


@settings(max_examples=150, deadline=None)
@given(given_tensors=random_tensors(TYPES), has_prompt=st.booleans())
def test_any_tensors_are_a_request_in_range_or_one_error_that_names_an_input(
    parser: RequestParser, given_tensors: dict[str, Array], has_prompt: bool
) -> None:
    inputs = {**given_tensors, **(tensors() if has_prompt else {})}
    request, refusal = outcome(parser.parse, inputs, 5.0)
    if request is None:
        assert re.match(r"\w+: ", refusal)
        assert refusal.split(":")[0] in {*inputs, "prompt"}
        return
    sampling = request.sampling
    assert request.num_prompt_tokens >= 1
    assert 0 <= sampling.min_new_tokens <= sampling.max_new_tokens
    assert 1 <= sampling.max_new_tokens <= 2048
    assert all(1e-5 <= value <= 2 for value in sampling.temperature)
    assert request.priority in (1, 2, 3)
    assert request.mode in ("code", "text")
    assert min(request.first_chunk_tokens, request.chunk_tokens) >= 1
    assert all(d is None or d > 5.0 for d in (request.deadline_s, request.queue_deadline_s))


@settings(max_examples=100, deadline=None)
@given(inputs=random_tensors({"next": np.object_, "cancel": np.object_, **TYPES}))
def test_any_tensors_name_a_request_or_are_refused_by_name(
    parser: RequestParser, inputs: dict[str, Array]
) -> None:
    for name in ("next", "cancel"):
        if name in inputs:
            found, refusal = outcome(parser.named_id, inputs, name)
            assert found or refusal.startswith(f"{name}: ")
    _, refusal = outcome(parser.is_pulled, inputs)
    assert not refusal or refusal.startswith("pull: ")
