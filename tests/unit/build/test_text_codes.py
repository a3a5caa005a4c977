"""base16384 and the strings built on it."""

from __future__ import annotations

import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_codes import (
    FILTERS,
    decode_bytes,
    decode_speaker,
    encode_bytes,
    encode_prompt,
    encode_speaker,
)


@given(st.binary(max_size=100))
def test_bytes_survive(data: bytes) -> None:
    assert decode_bytes(encode_bytes(data)) == data


@pytest.mark.parametrize(
    ("count", "characters"), [(0, 0), (1, 2), (2, 3), (3, 3), (4, 4), (5, 4), (6, 5), (7, 4)]
)
def test_a_tail_takes_as_many_characters_as_its_bits_and_a_marker(
    count: int, characters: int
) -> None:
    assert len(encode_bytes(bytes(count))) == characters


def test_speakers_survive() -> None:
    vector = np.random.default_rng(0).standard_normal(768).astype(np.float16)
    np.testing.assert_array_equal(decode_speaker(encode_speaker(vector)), vector)


@pytest.mark.parametrize("text", ["", "en", "hello", "一一", "㴅", encode_bytes(b"no lzma here")])
def test_a_string_that_is_no_speaker_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        decode_speaker(text)


def test_an_audio_prompt_holds_its_shape_and_codes_row_by_row() -> None:
    codes = np.arange(12).reshape(3, 4) * 50
    data = decode_bytes(encode_prompt(codes))
    assert np.frombuffer(data[:4], "<u2").tolist() == [4, 3]
    packed = lzma.decompress(data[4:], lzma.FORMAT_RAW, filters=FILTERS)
    np.testing.assert_array_equal(np.frombuffer(packed, "<u2").reshape(4, 3), codes.T)
