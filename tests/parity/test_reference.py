"""The NumPy reference against the published package on the tiny golden checkpoint.

Tolerance: 1e-4 of the largest value (golden.RELATIVE_TOLERANCE); seen are 2e-6 and less.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import reference_encoder
import reference_gpt
import reference_speech
from checkpoint import Array, Checkpoint
from golden import NUM_TEXTS, TINY, TINY_ARRAYS, TINY_CASES, assert_close
from voice_format import decode_audio_prompt, decode_speaker, encode_audio_prompt

CHECKPOINT = Checkpoint.open(TINY)
PARTS = {part: CHECKPOINT.load(part) for part in ("Decoder", "DVAE", "Embed", "Vocos", "gpt")}
TEXTS = range(NUM_TEXTS)


def speaker_token() -> int:
    added = json.loads((TINY / "asset/tokenizer/added_tokens.json").read_text(encoding="utf-8"))
    return int(added["[spk_emb]"])


def embed(ids: Any, prompt_codes: Any = None) -> Array:
    speaker = (speaker_token(), TINY_ARRAYS["spk_vector"])
    return reference_gpt.embed_prompt(ids, PARTS["Embed"], speaker, prompt_codes)


@pytest.mark.parametrize("text", TEXTS)
def test_prompts_become_the_golden_embeddings_bit_for_bit(text: int) -> None:
    found = embed(TINY_ARRAYS[f"ids_{text}"])
    np.testing.assert_array_equal(found, TINY_ARRAYS[f"embed_{text}"])


@pytest.mark.parametrize("text", TEXTS)
def test_embeddings_become_the_golden_hidden_states_and_logits(text: int) -> None:
    embeds = TINY_ARRAYS[f"embed_{text}"]
    hidden = reference_gpt.hidden_states(embeds, PARTS["gpt"], CHECKPOINT.gpt)
    assert_close(hidden, TINY_ARRAYS[f"prefill_hidden_{text}"])
    logits = reference_gpt.code_logits(hidden[-1:], PARTS["Embed"], CHECKPOINT.gpt)
    assert_close(logits[0], TINY_ARRAYS[f"prefill_logits_{text}"])


@pytest.mark.parametrize("text", TEXTS)
def test_hidden_states_become_the_golden_mel_and_waveform(text: int) -> None:
    hidden = TINY_ARRAYS[f"greedy_hidden_{text}"]
    layers = CHECKPOINT.decoder.num_layers
    mel = reference_speech.hidden_to_mel(hidden, PARTS["Decoder"], layers)
    assert_close(mel.T, TINY_ARRAYS[f"mel_hidden_{text}"])
    wave = reference_speech.mel_to_wave(mel, PARTS["Vocos"], CHECKPOINT.vocos.num_layers)
    assert_close(wave, TINY_ARRAYS[f"wav_hidden_{text}"])


@pytest.mark.parametrize("text", TEXTS)
def test_codes_become_the_golden_mel_and_waveform(text: int) -> None:
    codes, layers = TINY_ARRAYS[f"greedy_codes_{text}"], CHECKPOINT.dvae.decoder.num_layers
    mel = reference_speech.codes_to_mel(codes, PARTS["DVAE"], layers)
    assert_close(mel.T, TINY_ARRAYS[f"mel_codes_{text}"])
    wave = reference_speech.mel_to_wave(mel, PARTS["Vocos"], CHECKPOINT.vocos.num_layers)
    assert_close(wave, TINY_ARRAYS[f"wav_codes_{text}"])


def test_a_recording_becomes_the_golden_codes_and_string() -> None:
    layers = CHECKPOINT.dvae.encoder.num_layers
    codes = reference_encoder.encode(TINY_ARRAYS["prompt_wav"], PARTS["DVAE"], layers)
    np.testing.assert_array_equal(codes.T, TINY_ARRAYS["prompt_codes"])
    # not the strings themselves: the packed bytes may differ from liblzma to liblzma
    for string in (TINY_CASES["prompt_string"], encode_audio_prompt(codes)):
        np.testing.assert_array_equal(decode_audio_prompt(string), codes)


def test_an_audio_prompt_follows_the_text_in_the_golden_order() -> None:
    codes, ids = TINY_ARRAYS["prompt_codes"].T, TINY_ARRAYS["prompt_ids"]
    is_text = np.arange(len(ids)) < len(ids) - len(codes)
    np.testing.assert_array_equal(ids[~is_text], codes)
    embeds = embed(ids[is_text, 0], codes)
    assert embeds.shape == (len(ids), CHECKPOINT.gpt.hidden_size)
    hidden = reference_gpt.hidden_states(embeds, PARTS["gpt"], CHECKPOINT.gpt)
    logits = reference_gpt.code_logits(hidden[-1:], PARTS["Embed"], CHECKPOINT.gpt)[0]
    np.testing.assert_array_equal(logits.argmax(axis=-1), TINY_ARRAYS["prompt_gen_codes"][0])


def test_the_speaker_string_holds_the_golden_vector() -> None:
    decoded = decode_speaker(TINY_CASES["spk_string"])
    np.testing.assert_array_equal(decoded, TINY_ARRAYS["spk_vector"])
