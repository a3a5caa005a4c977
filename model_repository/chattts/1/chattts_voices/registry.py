"""The voices of a checkpoint by name: a folder of files, read again when they change.

Invariant: what `find` returns fits the checkpoint and is exactly who was asked for; a wrong name or
string is an error, never another voice.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .strings import decode_speaker, is_audio_prompt, is_character
from .voice_file import CUSTOM, DEFAULT, SUFFIX, Voice, VoiceFile, parse_voice

LIST_VOICES_HINT = 'options={"list_voices": true} or the client command `voices` lists them'

# A name is shorter; a speaker string of any real checkpoint is longer.
_MIN_SPEAKER_STRING = 24

# A file that was changed so shortly before it was read may change again without a newer time.
_SETTLED_NS = 100_000_000

# In the listing's errors: not a file, the folder itself.
_WHOLE_FOLDER = ""

_State = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of one file."""

    state: _State | None
    """What tells that it has changed; None: look again at once."""
    content: VoiceFile | None
    """The last good one; None: there never was one."""
    error: str
    """What is wrong with the file as it is now; "" if nothing is."""


@dataclass(frozen=True, slots=True)
class _Index:
    """All voices at one moment."""

    voices: Mapping[str, VoiceFile]
    aliases: Mapping[str, str]
    """Alias to name."""
    errors: Mapping[str, str]
    """File name to what is wrong with it."""


class VoiceRegistry:
    """The voices of a checkpoint by name.

    A file that appears, changes or vanishes is seen by the next call; calls in many threads read it
    once. A broken file leaves the voice as it was, or out, and is in the listing's errors and in
    the log: a server that has to start again must not fail at what it bore before. A Voice that
    was handed out never changes.

    Args:
        folder: One JSON file per voice; names that begin with a dot are left alone.
        hidden_size: H.
        default_voice: Name for requests that give none; empty: they get no speaker.
        log: Is told once what is wrong with a file, or with the default.
    """

    def __init__(
        self,
        folder: Path,
        hidden_size: int,
        default_voice: str,
        log: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._folder = folder
        self._hidden_size = hidden_size
        self._default = default_voice
        self._log = log
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._index = _Index({}, {}, {})
        index = self._current()
        if default_voice and default_voice not in index.voices:
            self._log(f"voices: the default voice {default_voice!r} is not in {folder}")

    def listing(self) -> dict[str, Any]:
        """Return "voices": what is known of each, without its data; "errors": file and message."""
        index = self._current()
        return {
            "voices": [dict(index.voices[name].facts) for name in sorted(index.voices)],
            "errors": [
                {"file": file, "message": message} for file, message in sorted(index.errors.items())
            ],
        }

    def find(self, voice: str) -> Voice:
        """Return the voice of a name, an alias or a speaker string.

        Args:
            voice: Empty or "default" for the default voice.

        Raises:
            ValueError: Unknown name, or a string that is no speaker of this checkpoint.
        """
        index = self._current()
        name = index.aliases.get(voice, voice) or self._default
        if name == DEFAULT:
            name = self._default or name
        if name in index.voices:
            return index.voices[name].voice
        if not name:
            return Voice("")
        if _looks_like_string(voice):
            return self._from_string(voice)
        if voice in ("", DEFAULT):
            voice = name
        shown = voice if len(voice) <= _MIN_SPEAKER_STRING else voice[:_MIN_SPEAKER_STRING] + "..."
        why = index.errors.get(voice + SUFFIX)
        broken = f" (its file is broken: {why})" if why else ""
        raise ValueError(
            f"voice: {shown!r} is unknown{broken}; allowed: a registry name ({LIST_VOICES_HINT}), "
            "a speaker string, or empty"
        )

    def _from_string(self, string: str) -> Voice:
        if is_audio_prompt(string):
            raise ValueError(
                "voice: an audio-prompt string; allowed: a speaker string, or the name of a voice "
                "(`build/make_voice.py import` makes one of an audio prompt)"
            )
        try:
            return Voice(CUSTOM, decode_speaker(string, self._hidden_size))
        except ValueError as error:
            raise ValueError(f"voice: {error}") from error

    def _current(self) -> _Index:
        with self._lock:
            try:
                states = self._states()
            except OSError as error:
                errors = {**self._index.errors, _WHOLE_FOLDER: error.strerror or "?"}
                self._replace(_Index(self._index.voices, self._index.aliases, errors))
                return self._index
            known = {stem: file.state for stem, file in self._known.items()}
            if states != known or _WHOLE_FOLDER in self._index.errors:
                self._read(states)
            return self._index

    def _states(self) -> dict[str, _State]:
        """Return what tells that a file has changed, by name without suffix.

        Raises:
            OSError: the folder cannot be read, or is gone although it had voices.
        """
        if not self._known and not self._folder.exists():
            return {}
        states = {}
        with os.scandir(self._folder) as entries:
            for entry in entries:
                stem = entry.name.removesuffix(SUFFIX)
                if stem != entry.name and not stem.startswith("."):
                    # one that vanishes in this moment was not there
                    with suppress(FileNotFoundError):
                        states[stem] = _state(entry.stat())
        return states

    def _read(self, states: Mapping[str, _State]) -> None:
        """Read the files that changed and replace the index."""
        known = {stem: self._load(stem, states[stem]) for stem in sorted(states)}
        if self._default and self._default not in known and self._default in self._known:
            content = self._known[self._default].content
            error = "removed, and it is the default voice: the last good one is kept"
            known[self._default] = _Known(None, content, error)
        self._known = known
        voices = {stem: file.content for stem, file in known.items() if file.content}
        errors = {_shown(stem): file.error for stem, file in known.items() if file.error}
        # who has an alias keeps it: a newcomer takes none away
        aliases = {
            alias: name
            for alias, name in self._index.aliases.items()
            if name in voices and alias in voices[name].aliases and alias not in voices
        }
        for name, file in voices.items():
            for alias in file.aliases:
                owner = alias if alias in voices else aliases.setdefault(alias, name)
                if owner != name:
                    message = f"aliases: {alias!r} already names the voice {owner!r}"
                    errors.setdefault(_shown(name), message)
        self._replace(_Index(voices, aliases, errors))

    def _load(self, stem: str, state: _State) -> _Known:
        known = self._known.get(stem)
        if known and known.state == state:
            return known
        is_settled = time.time_ns() - max(state[2:]) > _SETTLED_NS
        path = self._folder / (stem + SUFFIX)
        try:
            content = parse_voice(path.read_bytes(), stem, self._hidden_size)
        except (OSError, ValueError) as error:
            message = error.strerror or "?" if isinstance(error, OSError) else str(error)
            return _Known(state if is_settled else None, known.content if known else None, message)
        return _Known(state if is_settled else None, content, "")

    def _replace(self, index: _Index) -> None:
        for file, message in index.errors.items():
            if self._index.errors.get(file) != message:
                self._log(f"voices: {self._folder / file}: {message}")
        self._index = index


def _shown(stem: str) -> str:
    """Return a file's name as text that can be sent, whatever bytes it has on the disk."""
    return (stem + SUFFIX).encode(errors="backslashreplace").decode()


def _state(found: os.stat_result) -> _State:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _looks_like_string(voice: str) -> bool:
    start = voice[: _MIN_SPEAKER_STRING // 2]
    return len(voice) >= _MIN_SPEAKER_STRING and all(map(is_character, start))
