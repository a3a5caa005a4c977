"""base16384, speaker strings and audio-prompt strings."""

from __future__ import annotations

import lzma
import struct
from typing import Any

import golden
import numpy as np
import pytest
from chattts_voices.strings import (
    decode_audio_prompt,
    decode_base16384,
    decode_speaker,
    encode_audio_prompt,
    encode_base16384,
    encode_speaker,
    is_audio_prompt,
)
from hypothesis import given, settings
from hypothesis import strategies as st

HIDDEN = 64
SPEAKER: str = golden.TINY_CASES["spk_string"]
PROMPT: str = golden.TINY_CASES["prompt_string"]


def compress(content: bytes) -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]
    return lzma.compress(content, lzma.FORMAT_RAW, filters=filters)


def speaker_string(vector: np.ndarray[Any, Any]) -> str:
    return encode_base16384(compress(vector.astype("<f2").tobytes()))


@given(st.binary(min_size=1, max_size=100))
def test_bytes_survive(content: bytes) -> None:
    assert decode_base16384(encode_base16384(content)) == content


@pytest.mark.parametrize(
    ("content", "string"),
    [
        (b"", ""),
        (bytes(7), "一一一一"),
        (b"\xff" * 7, "\u8dff" * 4),
        (b"\x00\x04", "丁一\u3d02"),
        (b"\x80", "\u6e00\u3d01"),
    ],
)
def test_bytes_become_the_characters_of_the_specification(content: bytes, string: str) -> None:
    assert encode_base16384(content) == string


@pytest.mark.parametrize(
    ("count", "characters"), [(1, 2), (2, 3), (3, 3), (4, 4), (5, 4), (6, 5), (7, 4), (8, 6)]
)
def test_a_tail_takes_as_many_characters_as_its_bits_and_a_marker(
    count: int, characters: int
) -> None:
    assert len(encode_base16384(bytes(count))) == characters


def test_a_published_speaker_string_decodes_to_the_same_values_and_back() -> None:
    vector = decode_speaker(SPEAKER, HIDDEN)
    assert np.array_equal(vector, golden.TINY_ARRAYS["spk_vector"])
    assert np.array_equal(decode_speaker(encode_speaker(vector)), vector)


def test_the_vector_of_published_size_decodes_to_the_same_values_and_back() -> None:
    vector = decode_speaker(golden.VECTOR_CASES["spk_string"], 768)
    assert np.array_equal(vector, golden.VECTOR_ARRAYS["spk_f16"])
    assert np.array_equal(decode_speaker(encode_speaker(vector)), vector)


@pytest.mark.parametrize(
    ("string", "codes"),
    [
        (PROMPT, golden.TINY_ARRAYS["prompt_codes"]),
        (golden.VECTOR_CASES["prompt_string"], golden.VECTOR_ARRAYS["prompt_codes"]),
    ],
)
def test_a_published_audio_prompt_decodes_to_the_same_codes_and_back(
    string: str, codes: Any
) -> None:
    decoded = decode_audio_prompt(string)
    assert np.array_equal(decoded.T, codes)
    assert np.array_equal(decode_audio_prompt(encode_audio_prompt(decoded)), decoded)


@settings(deadline=None)  # liblzma may have to wait for memory
@given(st.integers(1, 80), st.integers(0, 2**32 - 1))
def test_speakers_of_any_length_come_back(size: int, seed: int) -> None:
    vector = np.random.default_rng(seed).normal(size=size).astype(np.float16) + np.float16(0.1)
    assert np.array_equal(decode_speaker(speaker_string(vector), size), vector)
    assert np.array_equal(decode_speaker(encode_speaker(vector)), vector)


@pytest.mark.parametrize(
    "string",
    [
        SPEAKER[:-10],
        SPEAKER[4:],
        SPEAKER[:20] + "@" + SPEAKER[21:],
        SPEAKER + "一",
        SPEAKER[:-1],
        speaker_string(np.ones(HIDDEN - 1)),
        speaker_string(np.ones(HIDDEN + 1)),
        speaker_string(np.ones(700)),
        speaker_string(np.ones(768)),
        speaker_string(np.zeros(HIDDEN)),
        speaker_string(np.full(HIDDEN, np.nan)),
        speaker_string(np.full(HIDDEN, np.inf)),
        encode_base16384(compress(np.ones(HIDDEN, "<f2").tobytes()) + b"more"),
        encode_base16384(b"no lzma here"),
        "一" * 400,
        "@@@",
        PROMPT,
        "㴁" * 30,
        "",
    ],
)
def test_a_broken_speaker_string_says_what_is_allowed(string: str) -> None:
    with pytest.raises(ValueError, match=r".+; allowed: a speaker string of 64 float16 values$"):
        decode_speaker(string, HIDDEN)


def test_every_truncated_speaker_string_is_refused() -> None:
    for length in range(len(SPEAKER)):
        with pytest.raises(ValueError, match="allowed"):
            decode_speaker(SPEAKER[:length], HIDDEN)


def test_a_string_that_unpacks_to_a_huge_vector_is_refused_without_unpacking_it() -> None:
    bomb = encode_base16384(compress(bytes(50_000_000)))
    assert len(bomb) < 20_000
    with pytest.raises(ValueError, match="more than 16384 bytes"):
        decode_speaker(bomb, HIDDEN)


@pytest.mark.parametrize(
    ("rows", "steps", "code"),
    [(3, 5, 1), (4, 0, 1), (4, 5, 625), (4, 6, 1), (4, 4, 1), (4, 5000, 1)],
)
def test_a_broken_audio_prompt_says_what_is_allowed(rows: int, steps: int, code: int) -> None:
    codes = np.full((4, 5), code, "<u2")
    string = encode_base16384(struct.pack("<HH", rows, steps) + compress(codes.tobytes()))
    with pytest.raises(ValueError, match=r"allowed: an audio-prompt string of 4 x T codes"):
        decode_audio_prompt(string)


def test_the_two_kinds_of_strings_are_told_apart() -> None:
    assert is_audio_prompt(PROMPT)
    assert not is_audio_prompt(SPEAKER)
    with pytest.raises(ValueError, match="allowed: an audio-prompt string"):
        decode_audio_prompt(SPEAKER)
