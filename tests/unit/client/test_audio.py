"""WAV files and PCM: what is written is what was spoken."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import numpy as np
import pytest
from chattts_client import WavWriter
from chattts_client._audio import pcm16, wav_bytes, write_wav


def test_pcm16_rounds_and_clips_to_the_full_range() -> None:
    samples = np.array([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0], dtype=np.float32)
    values = np.frombuffer(pcm16(samples), dtype="<i2")
    assert values.tolist() == [-32767, -32767, 0, 16384, 32767, 32767]


def test_wav_bytes_are_a_mono_16_bit_file_of_the_samples() -> None:
    samples = np.linspace(-1, 1, 480, dtype=np.float32)
    with wave.open(io.BytesIO(wav_bytes(samples, 24_000))) as file:
        assert file.getparams()[:4] == (1, 2, 24_000, 480)
        assert file.readframes(480) == pcm16(samples)


def test_no_samples_make_a_valid_empty_file() -> None:
    with wave.open(io.BytesIO(wav_bytes(np.zeros(0, dtype=np.float32), 24_000))) as file:
        assert file.getnframes() == 0


def test_a_file_written_in_chunks_equals_one_written_at_once(tmp_path: Path) -> None:
    samples = np.linspace(-1, 1, 1000, dtype=np.float32)
    write_wav(tmp_path / "whole.wav", samples, 24_000)
    with WavWriter(tmp_path / "chunks.WAV", 24_000) as writer:
        for piece in np.split(samples, 4):
            writer.write(piece)
    assert (tmp_path / "chunks.WAV").read_bytes() == (tmp_path / "whole.wav").read_bytes()


def test_an_unfinished_file_can_be_read_up_to_the_last_chunk(tmp_path: Path) -> None:
    path = tmp_path / "partial.wav"
    with WavWriter(path, 24_000) as writer:
        writer.write(np.zeros(300, dtype=np.float32))
        with wave.open(str(path)) as file:
            assert file.getnframes() == 300


def test_another_suffix_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not end in .wav"):
        write_wav(tmp_path / "audio.mp3", np.zeros(3, dtype=np.float32), 24_000)
    assert not list(tmp_path.iterdir())
