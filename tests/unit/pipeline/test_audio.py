"""Encodings of the audio."""

from __future__ import annotations

import base64
import io
import struct
import wave

import numpy as np
from chattts_pipeline.audio import AudioEncoder, pcm16, wav_header

RATE = 24000
SAMPLES = np.array([0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0], np.float32)


def test_pcm16_rounds_and_clips() -> None:
    values = np.frombuffer(pcm16(SAMPLES), "<i2")
    assert values.tolist() == [0, 16384, -16384, 32767, -32767, 32767, -32767]


def test_f32_passes_the_samples_on() -> None:
    audio, content = AudioEncoder("f32", RATE, is_streamed=True).encode(SAMPLES)
    assert np.array_equal(audio, SAMPLES)
    assert content == b""


def test_pcm16_pieces_have_no_header() -> None:
    encoder = AudioEncoder("pcm16", RATE, is_streamed=True)
    pieces = [encoder.encode(SAMPLES[:3]), encoder.encode(SAMPLES[3:])]
    assert b"".join(content for _, content in pieces) == pcm16(SAMPLES)
    assert all(len(audio) == 0 for audio, _ in pieces)


def test_a_whole_wav_has_exact_sizes() -> None:
    _, content = AudioEncoder("wav_base64", RATE, is_streamed=False).encode(SAMPLES)
    with wave.open(io.BytesIO(base64.b64decode(content, validate=True))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
        assert file.readframes(file.getnframes()) == pcm16(SAMPLES)


def test_streamed_wav_pieces_join_to_one_file_with_placeholder_sizes() -> None:
    encoder = AudioEncoder("wav_base64", RATE, is_streamed=True)
    pieces = [encoder.encode(part)[1] for part in (SAMPLES[:2], SAMPLES[2:5], SAMPLES[5:])]
    joined = b"".join(base64.b64decode(piece, validate=True) for piece in pieces)
    assert joined == wav_header(RATE, None) + pcm16(SAMPLES)
    assert joined.count(b"RIFF") == 1
    assert struct.unpack_from("<I", joined, 4) == struct.unpack_from("<I", joined, 40)
    assert struct.unpack_from("<I", joined, 40) == (0xFFFFFFFF,)
