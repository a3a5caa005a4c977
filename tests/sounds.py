"""Synthetic speech sounds, and that cuts of its input change nothing about a filter's output."""

from __future__ import annotations

import wave
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

RATE = 24000

Array = np.ndarray[Any, Any]
Push = Callable[[Array, bool], Array]


def run(push: Push, samples: Array, cuts: Sequence[int] = ()) -> Array:
    """Push samples cut at some positions, the end with the last piece."""
    edges = [0, *sorted(cuts), len(samples)]
    pieces = [samples[first:last] for first, last in zip(edges, edges[1:], strict=False)]
    return np.concatenate([push(piece, index == len(cuts)) for index, piece in enumerate(pieces)])


def assert_cuts_change_nothing(make: Callable[[], Push], samples: Array) -> None:
    """Compare random cuts with none, bit for bit; each push must leave its input as it is."""
    expected, original = run(make(), samples), samples.copy()

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(st.lists(st.integers(0, len(samples)), max_size=40))
    def check(cuts: list[int]) -> None:
        assert run(make(), samples, cuts).tobytes() == expected.tobytes()
        assert np.array_equal(samples, original)

    check()


def write_wave(path: Path, samples: Array, rate: int = RATE) -> None:
    """Write samples (S,) in -1 ... 1 as 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())


def noise(seconds: float, rms: float, seed: int = 0) -> Array:
    """White noise (S,)."""
    random = np.random.default_rng(seed)
    return (random.standard_normal(round(seconds * RATE)) * rms).astype(np.float32)


def silence(seconds: float) -> Array:
    """Zeros (S,)."""
    return np.zeros(round(seconds * RATE), np.float32)


def tone(frequency: float, seconds: float, amplitude: float = 0.5) -> Array:
    """A sine (S,)."""
    time = np.arange(round(seconds * RATE)) / RATE
    return (amplitude * np.sin(2 * np.pi * frequency * time)).astype(np.float32)


def vowel(seconds: float, pitch: float = 120.0, rms: float = 0.1) -> Array:
    """A voiced sound (S,) with two formants and a pitch that falls by a fifth."""
    time = np.arange(round(seconds * RATE)) / RATE
    phase = 2 * np.pi * pitch * (time - 0.1 * time**2 / max(seconds, 1e-9))
    wave = np.zeros(len(time))
    for harmonic in range(1, 30):
        formants = sum(np.exp(-(((harmonic * pitch - f) / 250.0) ** 2)) for f in (600.0, 1700.0))
        wave += (0.02 + formants) * np.sin(harmonic * phase)
    return (wave * rms / np.sqrt(np.mean(wave**2))).astype(np.float32)


def hiss(seconds: float, rms: float = 0.03, seed: int = 1) -> Array:
    """A fricative such as that of "this" (S,): noise above 3 kHz, swelling and fading."""
    wave = noise(seconds, 1.0, seed)
    spectrum = np.fft.rfft(wave)
    spectrum[np.fft.rfftfreq(len(wave), 1 / RATE) < 3000] *= 0.03
    wave = np.fft.irfft(spectrum, len(wave)) * np.sqrt(np.hanning(len(wave)))
    return (wave * rms / np.sqrt(np.mean(wave**2))).astype(np.float32)


def breath(seconds: float, rms: float = 0.01, seed: int = 2) -> Array:
    """Breathing (S,): noise below 2 kHz, strongest at 1 kHz."""
    wave = noise(seconds, 1.0, seed)
    frequencies = np.fft.rfftfreq(len(wave), 1 / RATE)
    spectrum = np.fft.rfft(wave) * np.exp(-(((frequencies - 1000.0) / 600.0) ** 2))
    wave = np.fft.irfft(spectrum, len(wave)).astype(np.float32)
    return (wave * rms / np.sqrt(np.mean(wave**2))).astype(np.float32)


def creak(seconds: float, rms: float = 0.03, seed: int = 3) -> Array:
    """A creaking voice (S,): single pulses of the throat, 15 ... 45 ms apart."""
    random = np.random.default_rng(seed)
    pulses = np.zeros(round(seconds * RATE))
    position = 0
    while position < len(pulses):
        pulses[position] = random.uniform(0.5, 1.0)
        position += round(random.uniform(0.015, 0.045) * RATE)
    time = np.arange(round(0.02 * RATE)) / RATE
    ringing = np.exp(-300 * time) * (
        np.sin(2 * np.pi * 600 * time) + np.sin(2 * np.pi * 1400 * time)
    )
    wave = np.convolve(pulses, ringing)[: len(pulses)]
    return (wave * rms / np.sqrt(np.mean(wave**2))).astype(np.float32)
