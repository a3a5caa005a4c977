"""Voices as the front reads them, and how to write one: there is a single implementation.

It lies in the model's version folder, because a model repository must work without this checkout;
this is the only file here that knows it. docs/voices.md describes the fields.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from repository import FRONT, OWN_REPOSITORY, SOURCE_VERSION

sys.path.append(str(OWN_REPOSITORY / FRONT / str(SOURCE_VERSION)))

from chattts_voices import (
    AUDIO_PROMPT,
    FORMAT,
    GENDERS,
    LANGUAGES,
    SPEAKER,
    SUFFIX,
    VoiceFile,
    check_name,
    digest,
    parse_voice,
)
from chattts_voices.strings import (
    decode_audio_prompt,
    decode_base16384,
    decode_speaker,
    encode_audio_prompt,
    encode_base16384,
    encode_speaker,
    is_audio_prompt,
)

__all__ = [
    "AUDIO_PROMPT",
    "FORMAT",
    "GENDERS",
    "LANGUAGES",
    "SPEAKER",
    "SUFFIX",
    "VoiceFile",
    "check_name",
    "decode_audio_prompt",
    "decode_base16384",
    "decode_speaker",
    "digest",
    "encode_audio_prompt",
    "encode_base16384",
    "encode_speaker",
    "is_audio_prompt",
    "parse_voice",
    "voice_content",
]

Speaker = npt.NDArray[np.float16]
Codes = npt.NDArray[np.int32]


def voice_content(
    name: str,
    facts: Mapping[str, Any],
    speaker: Speaker | None = None,
    codes: Codes | None = None,
    transcript: str = "",
) -> bytes:
    """Return the file of a voice: of a speaker (H,), or of an audio prompt (T, 4) with or without.

    Args:
        name: of the voice and, with SUFFIX, of the file.
        facts: the file's other fields but format, kind, checksum and data.
        speaker: float16.
        codes: in 0 ... 624.
        transcript: what the audio prompt says.

    Raises:
        ValueError: the front would refuse the file; the message begins with the field.
    """
    check_name(name)
    voice: dict[str, Any] = {
        "format": FORMAT,
        "name": name,
        "kind": SPEAKER if codes is None else AUDIO_PROMPT,
        **facts,
        "sha256": digest(speaker, codes),
    }
    if speaker is not None:
        voice[SPEAKER] = encode_speaker(speaker)
    if codes is not None:
        voice |= {AUDIO_PROMPT: encode_audio_prompt(codes), "transcript": transcript}
    content = (json.dumps(voice, ensure_ascii=False, indent=1) + "\n").encode()
    parse_voice(content, name, None if speaker is None else len(speaker))
    return content
