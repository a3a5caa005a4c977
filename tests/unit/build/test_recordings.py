"""Recordings for audio prompts: formats, conversion, and what makes a bad voice."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from checkpoint import Array
from recordings import check_recording, read_recording

RATE = 24_000


def tone(seconds: float = 1.5, rate: int = RATE, level: float = 0.3) -> Array:
    times = np.arange(round(seconds * rate)) / rate
    return (level * np.sin(2 * np.pi * 220 * times)).astype(np.float32)


def wave_bytes(
    samples: Array, rate: int = RATE, channels: int = 1, form: str = "i2", extensible: bool = False
) -> bytes:
    """A WAV file; form: i2, i3, i4, f4 or f8, as samples are stored."""
    width = int(form[1])
    if form[0] == "f":
        data = samples.astype(f"<{form}").tobytes()
    else:
        integers = np.round(samples.astype(np.float64) * (2.0 ** (8 * width - 1) - 1))
        wide = integers.astype("<i4").tobytes() if width > 2 else integers.astype("<i2").tobytes()
        stride = 4 if width > 2 else 2
        data = b"".join(wide[i : i + width] for i in range(0, len(wide), stride))
    code = 3 if form[0] == "f" else 1
    frame = channels * width
    header = struct.pack("<HHIIHH", 0xFFFE if extensible else code, channels, rate, rate * frame,
                         frame, 8 * width)  # fmt: skip
    if extensible:
        header += struct.pack("<HHIH", 22, 8 * width, 0, code) + bytes(14)
    chunks = [(b"fmt ", header), (b"LIST", b"odd"), (b"data", data)]
    body = b"".join(
        name + struct.pack("<I", len(part)) + part + bytes(len(part) % 2) for name, part in chunks
    )
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def read(tmp_path: Path, content: bytes) -> Array:
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    return read_recording(path)


@pytest.mark.parametrize("extensible", [False, True])
@pytest.mark.parametrize(
    ("form", "tolerance"), [("i2", 2**-14), ("i3", 2**-22), ("i4", 1e-6), ("f4", 0), ("f8", 0)]
)
def test_common_formats_give_the_samples(
    tmp_path: Path, form: str, tolerance: float, extensible: bool
) -> None:
    samples = read(tmp_path, wave_bytes(tone(), form=form, extensible=extensible))
    assert samples.dtype == np.float32
    assert np.abs(samples - tone()).max() <= tolerance


@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100, 48_000])
def test_another_rate_becomes_24_khz(tmp_path: Path, rate: int) -> None:
    samples = read(tmp_path, wave_bytes(tone(rate=rate), rate))
    assert abs(len(samples) - 1.5 * RATE) <= 1
    inner = slice(RATE // 4, RATE)  # away from the ends, where the filter rings
    assert np.abs(samples[inner] - tone()[inner]).max() < 1e-3


def test_channels_are_averaged(tmp_path: Path) -> None:
    stereo = np.stack([tone(), 0 * tone()], axis=1).reshape(-1)
    samples = read(tmp_path, wave_bytes(stereo, channels=2, form="f4"))
    np.testing.assert_allclose(samples, tone() / 2, atol=1e-7)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a WAV file"),
        (b"not a wave", "not a WAV file"),
        (b"RIFF\x00\x00\x00\x00WAVE", "no format, or no samples"),
        (wave_bytes(tone())[:40], "no format, or no samples"),
        (wave_bytes(tone(), rate=4_000), "4000 Hz; at least 8000"),
        (wave_bytes(tone()).replace(struct.pack("<HH", 2, 16), struct.pack("<HH", 1, 8), 1),
         "format 1 of 8 bits; allowed: PCM of 16"),
        (wave_bytes(tone()).replace(struct.pack("<HH", 2, 16), struct.pack("<HH", 7, 16), 1),
         "1 channels of 16 bits"),
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (tone(0.9), r"recording: 0.90 s; allowed: 1 \.\.\. 30 s"),
        (tone(30.1), r"recording: 30.10 s; allowed"),
        (tone(level=0.0), "its level is -inf dBFS; allowed: -45 and more"),
        (tone(level=0.005), "its level is -49 dBFS"),
        (np.clip(tone(level=3.0), -1, 1), "of the samples are clipped; allowed: at most 0.1%"),
        (np.full(RATE * 2, np.nan, np.float32), "not finite"),
    ],
)
def test_a_bad_recording_is_refused_with_what_would_do(samples: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_recording(samples)


def test_a_good_recording_passes() -> None:
    check_recording(tone())
