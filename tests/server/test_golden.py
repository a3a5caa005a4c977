"""Through the server: the token model and the vocoder give the golden values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from golden import GREEDY_TEMPERATURE, NUM_TEXTS, TINY_ARRAYS, TINY_CASES, assert_close
from launcher import EmbeddedServer
from token_model import generate, generate_together


def greedy(prompt: str, steps: int, **inputs: Any) -> dict[str, Any]:
    return {
        "prompt": prompt,
        "temperature": GREEDY_TEMPERATURE,
        "min_new_tokens": steps,
        "max_new_tokens": steps,
        **inputs,
    }


def spoken(text: int, steps: int) -> dict[str, Any]:
    return greedy(TINY_CASES["decorated"][text], steps, speaker_embedding=TINY_ARRAYS["spk_vector"])


@pytest.mark.parametrize("text", range(NUM_TEXTS))
def test_greedy_codes_and_hidden_states(tiny_server: EmbeddedServer, text: int) -> None:
    result = generate(tiny_server.grpc_url, **spoken(text, 40))
    np.testing.assert_array_equal(result.codes, TINY_ARRAYS[f"greedy_codes_{text}"])
    assert_close(result.hidden, TINY_ARRAYS[f"greedy_hidden_{text}"])
    assert result.finish_reason == "length"
    assert result.usage[:2] == [len(TINY_ARRAYS[f"ids_{text}"]), 40]


def test_four_texts_at_once(tiny_server: EmbeddedServer) -> None:
    results = generate_together(tiny_server.grpc_url, [spoken(t, 24) for t in range(NUM_TEXTS)])
    for text, result in enumerate(results):
        np.testing.assert_array_equal(result.codes, TINY_ARRAYS[f"batch_codes_{text}"])


def test_no_speaker(tiny_server: EmbeddedServer) -> None:
    result = generate(tiny_server.grpc_url, **greedy(TINY_CASES["decorated_no_speaker"], 24))
    np.testing.assert_array_equal(result.codes, TINY_ARRAYS["nospk_codes"])


def test_audio_prompt(tiny_server: EmbeddedServer) -> None:
    inputs = greedy(
        TINY_CASES["decorated_prompt"],
        24,
        speaker_embedding=TINY_ARRAYS["spk_vector"],
        audio_prompt_codes=TINY_ARRAYS["prompt_codes"].T,
    )
    result = generate(tiny_server.grpc_url, **inputs)
    np.testing.assert_array_equal(result.codes, TINY_ARRAYS["prompt_gen_codes"])


def test_refined_text(tiny_server: EmbeddedServer) -> None:
    inputs = greedy(TINY_CASES["refine_decorated"], 24, mode="text")
    result = generate(tiny_server.grpc_url, **inputs)
    np.testing.assert_array_equal(result.token_ids, TINY_ARRAYS["refine_tokens"])
    assert result.codes.shape == (0, 4)
    assert len(result.hidden) == 0


def vocode(url: str, hidden: Any) -> Any:
    tensor = triton.InferInput("hidden", [1, *hidden.shape], "FP32")
    tensor.set_data_from_numpy(hidden[None])
    with triton.InferenceServerClient(url) as client:
        return client.infer("chattts_vocoder", [tensor]).as_numpy("audio")[0]


@pytest.mark.parametrize("text", range(NUM_TEXTS))
def test_waveforms(tiny_server: EmbeddedServer, text: int) -> None:
    audio = vocode(tiny_server.grpc_url, TINY_ARRAYS[f"greedy_hidden_{text}"])
    assert_close(audio, TINY_ARRAYS[f"wav_hidden_{text}"])


def test_a_long_waveform(tiny_server: EmbeddedServer) -> None:
    assert_close(vocode(tiny_server.grpc_url, TINY_ARRAYS["long_hidden"]), TINY_ARRAYS["long_wav"])


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_shortest_waveforms_have_their_exact_length(
    tiny_server: EmbeddedServer, steps: int
) -> None:
    audio = vocode(tiny_server.grpc_url, TINY_ARRAYS["long_hidden"][:steps])
    assert audio.shape == (512 * steps - 256,)
