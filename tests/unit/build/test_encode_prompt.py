"""Audio prompts from WAV files."""

from __future__ import annotations

import json
import wave
from pathlib import Path

import numpy as np
import pytest
from checkpoint import Array, Checkpoint
from conftest import TINY_CHECKPOINT
from encode_prompt import main, read_wave
from golden import TINY_ARRAYS
from reference_encoder import encode
from text_codes import encode_prompt

WAVE: Array = TINY_ARRAYS["prompt_wav"]


def write_wave(
    path: Path, samples: Array, rate: int = 24_000, channels: int = 1, width: int = 4
) -> Path:
    scale = 2.0 ** (8 * width - 1) - 1
    integers = np.round(samples.astype(np.float64) * scale).astype(f"<i{width}")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(integers.tobytes())
    return path


@pytest.mark.parametrize(("width", "tolerance"), [(2, 2**-15), (4, 2**-24)])
def test_samples_are_read_between_minus_one_and_one(
    width: int, tolerance: float, tmp_path: Path
) -> None:
    samples = read_wave(write_wave(tmp_path / "a.wav", WAVE, width=width))
    assert samples.dtype == np.float32
    assert np.abs(samples - WAVE).max() <= 2 * tolerance


def test_the_command_prints_the_string_of_the_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_wave(tmp_path / "a.wav", WAVE)
    arguments = [str(path), "--checkpoint", str(TINY_CHECKPOINT)]
    checkpoint = Checkpoint.open(TINY_CHECKPOINT)
    layers = checkpoint.dvae.encoder.num_layers
    prompt = encode_prompt(encode(read_wave(path), checkpoint.load("DVAE"), layers))
    assert main(arguments) == 0
    assert capsys.readouterr().out == prompt + "\n"
    assert main([*arguments, "--transcript", "这是参考音频"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record == {"audio_prompt": prompt, "transcript": "这是参考音频"}


def check_error(path: Path, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(path), "--checkpoint", str(TINY_CHECKPOINT)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_another_rate_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_wave(tmp_path / "a.wav", WAVE, rate=16_000)
    check_error(path, "16000 Hz, 1 channels; 24000 Hz mono is needed", capsys)


def test_stereo_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_wave(tmp_path / "a.wav", WAVE, channels=2)
    check_error(path, "2 channels", capsys)


def test_a_file_that_is_no_wav_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(b"not a wave")
    check_error(path, "not a PCM WAV file", capsys)
    check_error(tmp_path / "missing.wav", "missing.wav", capsys)


def test_a_recording_shorter_than_the_window_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_wave(tmp_path / "a.wav", WAVE[:512])
    check_error(path, "512 samples, at least 513", capsys)
    assert main([str(write_wave(path, WAVE[:513])), "--checkpoint", str(TINY_CHECKPOINT)]) == 0
