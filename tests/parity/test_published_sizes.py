"""The golden vectors at the published sizes, with weights from a formula.

NumPy reference and ONNX graphs against what the published package computes. Tolerance: 1e-4 of
the largest value (golden.RELATIVE_TOLERANCE); seen are 3e-6 and less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import layout
import numpy as np
import pytest
import reference_encoder
import reference_gpt
import reference_speech
import selfcheck
import vocoder_graph
from checkpoint import Array, Checkpoint
from golden import TINY, VECTOR_ARRAYS, VECTOR_CASES, assert_close
from gpt_graph import write_gpt
from layout import GptSizes
from make_checkpoint import full_sizes
from numpy.typing import NDArray
from parity.formula import integers, tensors, uniform
from vocoder_runs import run_in_batches
from voice_format import decode_speaker, encode_speaker

FULL = full_sizes()
NUM_GPT_LAYERS = 2
SPEAKER_TOKEN = FULL.gpt.num_text_tokens - 50 + layout.SPECIAL_TOKENS.index("[spk_emb]")
NUM_HIDDEN = 8
"""Steps of hidden states that the vectors hold per case."""
GPT_CASES = {
    "gpt_plain": 2,
    "gpt_plain_single": 1,
    "gpt_nospk": 1,
    "gpt_prompt": 2,
    "gpt_tempvec": 1,
}
"""Cases and their batch sizes."""


SHAPES = {
    "Decoder": layout.decoder_tensors(FULL.decoder, FULL.vocos.num_mels),
    "DVAE": layout.dvae_tensors(FULL.dvae),
    "Vocos": layout.vocos_tensors(FULL.vocos),
}


@cache
def weights(part: str) -> dict[str, Array]:
    return tensors(part, SHAPES[part])


class FormulaCheckpoint(Checkpoint):
    """A checkpoint of the published sizes whose files are formulas."""

    def load(self, part: str) -> dict[str, Array]:
        return weights(part)


@pytest.fixture(scope="module")
def checkpoint() -> Iterator[Checkpoint]:
    yield FormulaCheckpoint(Path(), "formula", True, FULL.gpt, FULL.decoder, FULL.dvae, FULL.vocos)
    weights.cache_clear()


@pytest.fixture(scope="module")
def vocoder(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("vocoder") / "model.onnx"
    path.write_bytes(vocoder_graph.write_hidden_vocoder(checkpoint).onnx)
    return selfcheck.open_session(path)


@pytest.fixture(scope="module")
def dvae(checkpoint: Checkpoint) -> dict[str, Array]:
    return checkpoint.load("DVAE")


@pytest.fixture(scope="module")
def wave() -> Array:
    n = np.arange(12_000)
    tone = 0.3 * np.sin(2 * np.pi * 220 * n / 24_000) * np.sin(2 * np.pi * 1.5 * n / 24_000)
    return tone.astype(np.float32) + np.float32(0.05) * uniform("input:wav", len(n))


@pytest.fixture(scope="module")
def gpt_sizes() -> GptSizes:
    return replace(FULL.gpt, num_layers=NUM_GPT_LAYERS)


@pytest.fixture(scope="module")
def embed(gpt_sizes: GptSizes) -> dict[str, Array]:
    shapes = layout.embed_tensors(gpt_sizes)
    return tensors("Embed", {name: s for name, s in shapes.items() if name.startswith("emb_")})


@pytest.fixture(scope="module")
def gpt_session(gpt_sizes: GptSizes, tmp_path_factory: pytest.TempPathFactory) -> Any:
    layers = tensors("gpt", layout.gpt_tensors(gpt_sizes))
    path = tmp_path_factory.mktemp("gpt") / "gpt.onnx"
    path.write_bytes(write_gpt(gpt_sizes, layers, "fp32"))
    return selfcheck.open_session(path)


def speaker() -> NDArray[np.float16]:
    return (np.float32(4) * uniform("input:spk", FULL.gpt.hidden_size)).astype(np.float16)


def test_hidden_states_become_the_published_mel_and_waveform(checkpoint: Checkpoint) -> None:
    hidden = np.float32(2) * uniform("input:hidden", 1, FULL.gpt.hidden_size, 7)
    decoder, vocos = checkpoint.load("Decoder"), checkpoint.load("Vocos")
    mel = reference_speech.hidden_to_mel(hidden[0].T, decoder, FULL.decoder.num_layers)
    assert_close(mel.T[None], VECTOR_ARRAYS["decoder_mel"])
    audio = reference_speech.mel_to_wave(mel, vocos, FULL.vocos.num_layers)
    assert_close(audio[None], VECTOR_ARRAYS["decoder_wav"])


def test_the_vocoder_graph_gives_the_published_waveform(vocoder: Any) -> None:
    hidden = np.float32(2) * uniform("input:hidden", 1, FULL.gpt.hidden_size, 7)
    audio = selfcheck.run_vocoder(vocoder, hidden[0].T, 24)
    assert_close(audio[None], VECTOR_ARRAYS["decoder_wav"])


def test_the_vocoder_gives_the_same_bits_in_any_batch_and_chunks(vocoder: Any) -> None:
    random = np.random.default_rng(8)
    shapes = [(steps, FULL.gpt.hidden_size) for steps in (3, 20, 31, 50)]
    segments = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    waves = run_in_batches(vocoder, segments, chunk_steps=24, seed=8)
    for segment, wave in zip(segments, waves, strict=True):
        assert wave.tobytes() == selfcheck.run_vocoder(vocoder, segment, 51).tobytes()


def test_codes_become_the_published_mel_with_residual_scale_one_quarter(
    dvae: dict[str, Array],
) -> None:
    codes = integers("input:codes", layout.NUM_CODES, 1, 4, 9)
    np.testing.assert_array_equal(codes, VECTOR_ARRAYS["dvae_codes_in"])
    mel = reference_speech.codes_to_mel(codes[0].T, dvae, FULL.dvae.decoder.num_layers)
    assert_close(mel.T[None], VECTOR_ARRAYS["dvae_mel_scale_1_4"])
    other = VECTOR_ARRAYS["dvae_mel_scale_1_5"]
    assert selfcheck.relative_error(mel.T[None], other) > 1e-2


def test_a_waveform_becomes_the_published_codes(dvae: dict[str, Array], wave: Array) -> None:
    layers = FULL.dvae.encoder.num_layers
    mel = reference_encoder.log_mel(wave, dvae)
    assert_close(mel.T, VECTOR_ARRAYS["logmel"])
    down = reference_encoder.downsample(mel, dvae)
    assert_close(down.T[:8], VECTOR_ARRAYS["enc_down"])
    features = reference_encoder.features(wave, dvae, layers)
    assert_close(features.T[:8], VECTOR_ARRAYS["enc_feat_first8"])
    codes = reference_encoder.encode(wave, dvae, layers)
    np.testing.assert_array_equal(codes.T, VECTOR_ARRAYS["enc_codes_A"])


def test_speaker_vectors_are_normalised_in_half_precision() -> None:
    np.testing.assert_array_equal(speaker(), VECTOR_ARRAYS["spk_f16"])
    normed = reference_gpt.normalize_speaker(speaker())
    np.testing.assert_array_equal(normed.astype(np.float16), VECTOR_ARRAYS["spk_norm_f16"])


def test_speaker_strings_hold_the_published_vector() -> None:
    decoded = decode_speaker(VECTOR_CASES["spk_string"])
    np.testing.assert_array_equal(decoded, VECTOR_ARRAYS["spk_f16"])
    np.testing.assert_array_equal(decode_speaker(encode_speaker(decoded)), decoded)


@pytest.mark.parametrize(
    ("case", "row"), [(case, row) for case, rows in GPT_CASES.items() for row in range(rows)]
)
def test_the_gpt_graph_gives_the_published_hidden_states(
    case: str, row: int, gpt_session: Any, gpt_sizes: GptSizes, embed: dict[str, Array]
) -> None:
    golden = VECTOR_CASES[case]
    is_real = np.array(golden["attention"][row], bool)
    ids = np.array(golden["token_ids_row"][row])[is_real]
    prompt = integers("input:prompt", layout.NUM_CODES, 4, 7).T if case == "gpt_prompt" else None
    if prompt is not None:
        # channel 0 of the audio prompt stands at the end of the golden ids
        np.testing.assert_array_equal(ids[-len(prompt) :], prompt[:, 0])
        ids = ids[: -len(prompt)]
    embeds = reference_gpt.embed_prompt(ids, embed, (SPEAKER_TOKEN, speaker()), prompt)
    codes = np.array(golden["codes"][row])[: NUM_HIDDEN - 1]
    embeds = np.concatenate([embeds, reference_gpt.embed_codes(codes, embed)])
    hidden = selfcheck.run_gpt(gpt_session, embeds, num_decoded=len(codes))
    assert_close(hidden[-NUM_HIDDEN:], VECTOR_ARRAYS[f"{case}_hidden_row{row}"])


def test_filters_and_window_are_those_of_the_published_package() -> None:
    stored = Checkpoint.open(TINY).load("DVAE")
    prefix = "preprocessor_mel.mel_spec."
    assert_close(
        tensors("DVAE", {"mel_scale.fb": (layout.NUM_BINS, 100)})["mel_scale.fb"],
        stored[f"{prefix}mel_scale.fb"],
    )
    assert_close(
        tensors("DVAE", {"window": (layout.N_FFT,)})["window"],
        stored[f"{prefix}spectrogram.window"],
    )
