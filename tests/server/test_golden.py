"""Through the server: the token model and the vocoder give the golden values."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from golden import GREEDY_TEMPERATURE, NUM_TEXTS, TINY_ARRAYS, TINY_CASES, assert_close
from launcher import EmbeddedServer
from token_model import generate, generate_together
from tritonclient.utils import InferenceServerException

P = 512
CHUNK_STEPS = 24


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


def float_tensor(name: str, array: Any) -> triton.InferInput:
    tensor = triton.InferInput(name, list(array.shape), "FP32")
    tensor.set_data_from_numpy(array)
    return tensor


class Vocoder:
    """chattts_vocoder as a direct caller uses it, one segment per call."""

    def __init__(self, url: str, repository: Path) -> None:
        facts = json.loads((repository / "chattts/1/weights/checkpoint.json").read_text())
        self.context_steps = int(facts["context_steps"])
        self._state_size = int(facts["vocoder_state_size"])
        self._url = url

    def speak(self, hidden: Any) -> Any:
        num_calls = -(-(len(hidden) + self.context_steps) // CHUNK_STEPS)
        padding = num_calls * CHUNK_STEPS - len(hidden)
        padded = np.pad(hidden, ((0, padding), (0, 0)))
        mask = np.pad(np.ones(len(hidden), np.float32), (0, padding))
        state = np.zeros((1, self._state_size), np.float32)
        pieces = []
        with triton.InferenceServerClient(self._url) as client:
            for call in range(num_calls):
                part = slice(call * CHUNK_STEPS, (call + 1) * CHUNK_STEPS)
                inputs = {"hidden": padded[None, part], "mask": mask[None, part], "state": state}
                tensors = [float_tensor(name, array) for name, array in inputs.items()]
                result = client.infer("chattts_vocoder", tensors)
                pieces.append(result.as_numpy("audio")[0])
                state = result.as_numpy("next_state")
        audio = np.concatenate(pieces)[P * self.context_steps :]
        assert not audio[P * len(hidden) - P // 2 :].any()
        return audio[: P * len(hidden) - P // 2]


@pytest.fixture(scope="module")
def vocoder(tiny_server: EmbeddedServer, tiny_repository: Path) -> Vocoder:
    return Vocoder(tiny_server.grpc_url, tiny_repository)


@pytest.mark.parametrize("text", range(NUM_TEXTS))
def test_waveforms(vocoder: Vocoder, text: int) -> None:
    audio = vocoder.speak(TINY_ARRAYS[f"greedy_hidden_{text}"])
    assert_close(audio, TINY_ARRAYS[f"wav_hidden_{text}"])


def test_a_long_waveform(vocoder: Vocoder) -> None:
    assert_close(vocoder.speak(TINY_ARRAYS["long_hidden"]), TINY_ARRAYS["long_wav"])


def test_waveforms_asked_for_together_have_the_bits_of_one_by_one(vocoder: Vocoder) -> None:
    segments = [TINY_ARRAYS["long_hidden"][: 7 * count] for count in range(1, 17)]
    with ThreadPoolExecutor(len(segments)) as pool:
        together = list(pool.map(vocoder.speak, segments))
    for hidden, audio in zip(segments, together, strict=True):
        assert audio.tobytes() == vocoder.speak(hidden).tobytes()


@pytest.mark.parametrize("steps", [1, 23, 25, 6000])
def test_another_number_of_steps_per_call_is_refused_by_name(
    tiny_server: EmbeddedServer, steps: int
) -> None:
    inputs = {"hidden": (1, steps, 64), "mask": (1, steps), "state": (1, 10)}
    tensors = [float_tensor(name, np.zeros(shape, np.float32)) for name, shape in inputs.items()]
    with (
        triton.InferenceServerClient(tiny_server.grpc_url) as client,
        pytest.raises(
            InferenceServerException, match=r"shape for input '(hidden|mask)'.*Expected \[-1,24"
        ),
    ):
        client.infer("chattts_vocoder", tensors)
