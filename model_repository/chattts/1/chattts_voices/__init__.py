"""Voices: the strings that hold one, the file that describes one, and the registry of a folder.

Needs NumPy and nothing of the server, so that the tools that make voices use the same code.
"""

from .registry import VoiceRegistry
from .voice_file import (
    AUDIO_PROMPT,
    FORMAT,
    GENDERS,
    LANGUAGES,
    SPEAKER,
    SUFFIX,
    Voice,
    VoiceFile,
    check_name,
    digest,
    parse_voice,
)

__all__ = [
    "AUDIO_PROMPT",
    "FORMAT",
    "GENDERS",
    "LANGUAGES",
    "SPEAKER",
    "SUFFIX",
    "Voice",
    "VoiceFile",
    "VoiceRegistry",
    "check_name",
    "digest",
    "parse_voice",
]
