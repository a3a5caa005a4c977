"""Files of voices for tests: the golden speaker and the golden audio prompt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden
from chattts_voices import digest
from chattts_voices.strings import decode_audio_prompt, decode_speaker

HIDDEN = 64
SPEAKER: str = golden.TINY_CASES["spk_string"]
PROMPT: str = golden.TINY_CASES["prompt_string"]
TRANSCRIPT = "这是参考音频"
PROVENANCE = {
    "method": "imported",
    "tool": "a test",
    "date": "2026-11-29",
    "source": "golden values",
    "consent": "synthetic",
}


def voice(name: str, **changes: Any) -> dict[str, Any]:
    """The fields of a good file of a speaker; a change to None leaves a field out."""
    fields = {
        "format": 1,
        "name": name,
        "kind": "speaker",
        "languages": ["en"],
        "description": "calm",
        "license": "CC0-1.0",
        "provenance": PROVENANCE,
        "sha256": digest(decode_speaker(SPEAKER)),
        "speaker": SPEAKER,
        **changes,
    }
    return {field: value for field, value in fields.items() if value is not None}


def prompt_voice(name: str, **changes: Any) -> dict[str, Any]:
    """The fields of a good file of an audio prompt."""
    codes = decode_audio_prompt(PROMPT)
    data = {"audio_prompt": PROMPT, "transcript": TRANSCRIPT, "sha256": digest(codes=codes)}
    return voice(name, **{"kind": "audio_prompt", "speaker": None, **data, **changes})


def write(folder: Path, fields: dict[str, Any], name: str | None = None) -> Path:
    """Write a voice's file in place, as an editor or a copy would; return its path."""
    path = folder / f"{name or fields['name']}.json"
    path.write_text(json.dumps(fields), encoding="utf-8")
    return path
