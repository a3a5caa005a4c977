"""Voice registry, speaker strings and audio-prompt strings."""

from __future__ import annotations

import json
import lzma
import struct
from pathlib import Path
from typing import Any

import golden
import numpy as np
import pytest
from chattts_pipeline.speakers import VoiceRegistry, decode_audio_prompt, decode_speaker
from hypothesis import given
from hypothesis import strategies as st

HIDDEN = 64
SPEAKER: str = golden.TINY_CASES["spk_string"]
PROMPT: str = golden.TINY_CASES["prompt_string"]


def base16384(content: bytes) -> str:
    tail = len(content) % 7
    bits = int.from_bytes(content.ljust(-(-len(content) // 7) * 7, b"\0"), "big")
    count = -(-len(content) // 7) * 4
    values = [bits >> 14 * (count - 1 - index) & 0x3FFF for index in range(count)]
    kept = count if not tail else count - 4 + -(-8 * tail // 14)
    return "".join(chr(0x4E00 + v) for v in values[:kept]) + (chr(0x3D00 + tail) if tail else "")


def compress(content: bytes) -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]
    return lzma.compress(content, lzma.FORMAT_RAW, filters=filters)


def speaker_string(vector: np.ndarray[Any, Any]) -> str:
    return base16384(compress(vector.astype("<f2").tobytes()))


def registry(path: Path, *voices: dict[str, str], default: str = "") -> VoiceRegistry:
    file = path / "voices.json"
    file.write_text(json.dumps({"voices": voices}), encoding="utf-8")
    return VoiceRegistry(file, HIDDEN, default)


def test_a_published_speaker_string_decodes_to_the_same_values() -> None:
    assert np.array_equal(decode_speaker(SPEAKER, HIDDEN), golden.TINY_ARRAYS["spk_vector"])


def test_the_vector_of_published_size_decodes_to_the_same_values() -> None:
    string = golden.VECTOR_CASES["spk_string"]
    assert np.array_equal(decode_speaker(string, 768), golden.VECTOR_ARRAYS["spk_f16"])


def test_a_published_audio_prompt_string_decodes_to_the_same_codes() -> None:
    assert np.array_equal(decode_audio_prompt(PROMPT).T, golden.TINY_ARRAYS["prompt_codes"])


@given(st.integers(1, 80), st.integers(0, 2**32 - 1))
def test_speaker_strings_of_any_length_come_back(size: int, seed: int) -> None:
    vector = np.random.default_rng(seed).normal(size=size).astype(np.float16) + np.float16(0.1)
    assert np.array_equal(decode_speaker(speaker_string(vector), size), vector)


@pytest.mark.parametrize(
    "string",
    [
        SPEAKER[:-10],
        SPEAKER[4:],
        SPEAKER[:20] + "@" + SPEAKER[21:],
        SPEAKER + "一",
        speaker_string(np.ones(HIDDEN - 1)),
        speaker_string(np.ones(HIDDEN + 1)),
        speaker_string(np.ones(768)),
        speaker_string(np.zeros(HIDDEN)),
        speaker_string(np.full(HIDDEN, np.nan)),
        speaker_string(np.full(HIDDEN, np.inf)),
        "一" * 400,
        PROMPT,
        "㴁" * 30,
        "",
    ],
)
def test_a_broken_speaker_string_says_what_is_expected(string: str) -> None:
    with pytest.raises(ValueError, match=r"^voice: .+expected a speaker string of 64 float16"):
        decode_speaker(string, HIDDEN)


def test_a_string_that_unpacks_to_a_huge_vector_is_refused_without_unpacking_it() -> None:
    bomb = base16384(compress(bytes(50_000_000)))
    assert len(bomb) < 20_000
    with pytest.raises(ValueError, match="129 bytes"):
        decode_speaker(bomb, HIDDEN)


@pytest.mark.parametrize(("rows", "steps", "code"), [(3, 5, 1), (4, 0, 1), (4, 5, 625), (4, 6, 1)])
def test_a_broken_audio_prompt_says_what_is_expected(rows: int, steps: int, code: int) -> None:
    codes = np.full((4, 5), code, "<u2")
    string = base16384(struct.pack("<HH", rows, steps) + compress(codes.tobytes()))
    with pytest.raises(ValueError, match=r"expected an audio-prompt string of 4 x T codes"):
        decode_audio_prompt(string)


def test_voices_are_found_by_name_string_or_default(tmp_path: Path) -> None:
    entry = {"name": "anna", "speaker": SPEAKER, "language": "en", "description": "calm"}
    voices = registry(tmp_path, entry, default="anna")
    assert voices.find("anna").name == voices.find("").name == "anna"
    custom = voices.find(SPEAKER)
    assert custom.name == "custom"
    assert np.array_equal(custom.speaker_embedding, golden.TINY_ARRAYS["spk_vector"])
    assert voices.listing() == [{"name": "anna", "language": "en", "description": "calm"}]


def test_without_a_default_an_empty_voice_has_no_speaker(tmp_path: Path) -> None:
    voice = registry(tmp_path).find("")
    assert (voice.name, voice.speaker_embedding) == ("", None)


def test_a_voice_may_carry_an_audio_prompt_and_its_transcript(tmp_path: Path) -> None:
    entry = {"name": "bo", "audio_prompt": PROMPT, "transcript": "这是参考音频"}
    voice = registry(tmp_path, entry).find("bo")
    assert voice.speaker_embedding is None
    assert voice.transcript == "这是参考音频"
    assert voice.audio_prompt_codes is not None
    assert voice.audio_prompt_codes.dtype == np.int32


@pytest.mark.parametrize("name", ["alloy", "小美", "Anna", "x" * 500, "@@@"])
def test_an_unknown_voice_says_how_to_list_them(tmp_path: Path, name: str) -> None:
    voices = registry(tmp_path, {"name": "anna", "speaker": SPEAKER})
    with pytest.raises(ValueError, match=r'^voice: .+unknown.+options=\{"list_voices": true\}'):
        voices.find(name)


@pytest.mark.parametrize(
    "voices",
    [
        [{"name": "", "speaker": SPEAKER}],
        [{"name": "a", "speaker": SPEAKER}, {"name": "a", "speaker": SPEAKER}],
        [{"name": "a", "speaker": "broken"}],
        ["a"],
        {"a": 1},
    ],
)
def test_a_broken_registry_file_is_refused_by_name(tmp_path: Path, voices: object) -> None:
    file = tmp_path / "voices.json"
    file.write_text(json.dumps({"voices": voices}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"voices\.json"):
        VoiceRegistry(file, HIDDEN, "")


def test_a_default_voice_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="default_voice: 'bob'"):
        registry(tmp_path, default="bob")
