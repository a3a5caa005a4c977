"""A request that goes wrong inside is one typed error, and changes no bit of the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import token_model
from chattts_pipeline.segment import derive_seed
from faults import FAULT_AFTER, INJECTED, EngineFault, FrontFault
from launcher import EmbeddedServer
from metrics import read_total
from repository_copies import add_faults, copy_repository
from speech_calls import Array, CallError, audio, stream
from tritonclient.utils import InferenceServerException

NUM_OTHERS = 7
STEPS = 200
ENGINE_FAULTS: dict[EngineFault, int] = {"prefill": 101, "decode": 102, "logits": 103}
FRONT_FAULTS: dict[FrontFault, int] = {
    "vocoder": 104,
    "vocoder once": 105,
    "vocoder batch": 106,
}
CAUSES: dict[str, str] = {
    "prefill": f"the engine failed: RuntimeError: {INJECTED}",
    "decode": f"the engine failed: RuntimeError: {INJECTED}",
    "logits": "the engine failed: FloatingPointError: the network gave a non-finite value",
    "vocoder": "chattts_vocoder: ",
}


REQUEST: dict[str, Any] = {
    "prompt": "[Stts][empty_spk][speed_5]hello[Ptts]",
    "min_new_tokens": STEPS,
    "max_new_tokens": STEPS,
}
SHARED_FAILURE = re.compile(r"work on \d+ requests failed .*; each alone")
"""The log says so when a call for several requests has raised."""


@pytest.fixture(scope="module")
def server(
    tiny_repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServer]:
    """A server in which the seeds above go wrong, in chattts_gpt and in chattts."""
    repository = tmp_path_factory.mktemp("faulty") / "models"
    copy_repository(tiny_repository, repository, max_num_waiting=2)
    segments = {derive_seed(seed, 0): fault for fault, seed in ENGINE_FAULTS.items()}
    direct = {seed: fault for fault, seed in ENGINE_FAULTS.items()}
    add_faults(repository, segments | direct, {seed: f for f, seed in FRONT_FAULTS.items()})
    server = EmbeddedServer(repository)
    server.start()
    yield server
    server.kill()


def speak(server: EmbeddedServer, seed: int) -> Array:
    text = ["hello world.", "this is a test.", "今天天气真好。"][seed % 3]
    steps = {"min_new_tokens": STEPS, "max_new_tokens": STEPS}
    return audio(stream(server, text=text, seed=seed, **steps))


def generate(server: EmbeddedServer, seed: int) -> token_model.Generated:
    return token_model.generate(server.grpc_url, seed=seed, **REQUEST)


@pytest.fixture(scope="module")
def references(server: EmbeddedServer) -> list[Array]:
    return [speak(server, seed) for seed in range(NUM_OTHERS)]


def together(
    call: Callable[[EmbeddedServer, int], Any], server: EmbeddedServer, culprit: int
) -> tuple[list[Any], Any]:
    """Run a culprit beside the others; return their results and its future."""
    with ThreadPoolExecutor(NUM_OTHERS + 1) as pool:
        others = [pool.submit(call, server, seed) for seed in range(NUM_OTHERS)]
        wrong = pool.submit(call, server, culprit)
        return [other.result() for other in others], wrong


@pytest.mark.parametrize("fault", ["prefill", "decode", "logits", "vocoder"])
def test_a_stream_that_goes_wrong_is_one_typed_error_and_the_others_keep_their_bits(
    server: EmbeddedServer, references: list[Array], fault: Any
) -> None:
    culprit = (ENGINE_FAULTS | FRONT_FAULTS)[fault]
    others, wrong = together(speak, server, culprit)
    error = wrong.exception()
    assert isinstance(error, CallError)
    assert error.code == "INTERNAL"
    assert error.message.startswith(CAUSES[fault])
    for got, expected in zip(others, references, strict=True):
        assert got.tobytes() == expected.tobytes()
    assert speak(server, 0).tobytes() == references[0].tobytes()


@pytest.mark.parametrize("fault", ["prefill", "decode", "logits"])
def test_a_request_of_the_token_model_that_goes_wrong_ends_alone(
    server: EmbeddedServer, fault: EngineFault
) -> None:
    alone = [generate(server, seed) for seed in range(NUM_OTHERS)]
    shared_before = len(SHARED_FAILURE.findall(server.log()))
    others, wrong = together(generate, server, ENGINE_FAULTS[fault])
    error = wrong.exception()
    if fault != "prefill":  # a prompt is computed alone
        assert len(SHARED_FAILURE.findall(server.log())) > shared_before
    assert isinstance(error, InferenceServerException)
    assert f"INTERNAL: {CAUSES[fault]}" in error.message()
    for got, expected in zip(others, alone, strict=True):
        np.testing.assert_array_equal(got.codes, expected.codes)
        np.testing.assert_array_equal(got.hidden, expected.hidden)


def test_what_a_caller_got_before_the_error_is_right(
    server: EmbeddedServer, tiny_server: EmbeddedServer
) -> None:
    seed = ENGINE_FAULTS["decode"]
    codes: list[Array] = []
    with token_model.open_stream(server.grpc_url) as opened:
        opened.send(seed=seed, chunk_tokens=10, **REQUEST)

        def read_to_the_end() -> None:
            while True:
                codes.append(opened.next_response().as_numpy("codes"))

        with pytest.raises(InferenceServerException, match=INJECTED):
            read_to_the_end()
    clean = generate(tiny_server, seed).codes
    np.testing.assert_array_equal(np.concatenate(codes), clean[:FAULT_AFTER])


def test_a_vocoder_that_fails_once_is_asked_again_and_nobody_notices(
    server: EmbeddedServer, tiny_server: EmbeddedServer
) -> None:
    culprit = FRONT_FAULTS["vocoder once"]
    before = server.log().count("tried again")
    got = speak(server, culprit)
    assert server.log().count("tried again") == before + 1
    assert got.tobytes() == speak(tiny_server, culprit).tobytes()


def test_a_batch_that_fails_whole_in_the_vocoder_costs_its_members_nothing(
    server: EmbeddedServer, references: list[Array]
) -> None:
    """Each call of the culprit makes the batch fail that it is in, unless it is alone.

    Its second try may be in a batch too, with first tries of the others.
    """
    before = server.log().count("tried again")
    others, culprit = together(speak, server, FRONT_FAULTS["vocoder batch"])
    assert server.log().count("tried again") >= before + 2  # one of them a neighbour
    error = culprit.exception()
    assert error is None or INJECTED in error.message
    for got, expected in zip(others, references, strict=True):
        assert got.tobytes() == expected.tobytes()


def test_what_is_too_long_is_refused_and_costs_no_step(server: EmbeddedServer) -> None:
    codes = np.zeros((4096, 4), np.int32)

    def prompt_of(num_codes: int, **inputs: Any) -> token_model.Generated:
        prompt = "[Stts]a[Ptts]"
        url = server.grpc_url
        return token_model.generate(
            url, prompt=prompt, audio_prompt_codes=codes[:num_codes], **inputs
        )

    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: stream(server, text="x" * 5001), "INVALID_ARG text: 5001 characters"),
        (lambda: prompt_of(4096), "INVALID_ARG: prompt: 4099 tokens are outside 1 ... 4095"),
        (
            lambda: prompt_of(3000, max_new_tokens=2048),
            "INVALID_ARG: max_new_tokens: 2048 is outside 1 ... 1093",
        ),
    ]
    families = ("chattts_engine_steps_total", "chattts_generated_tokens_total")
    before = [read_total(server, family) for family in families]
    for call, message in calls:
        with pytest.raises((CallError, InferenceServerException), match=message):
            call()
    assert [read_total(server, family) for family in families] == before
    speak(server, 0)
    assert all(
        read_total(server, family) > count for family, count in zip(families, before, strict=True)
    )
