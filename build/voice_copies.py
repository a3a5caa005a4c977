"""Which voices a build puts into a version, and what becomes of those that lie there already.

Sources, later ones before earlier ones of the same name: the voices that ship with this project, as
far as they fit the checkpoint; the checkpoint's own; the folders that the caller names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checkpoint import CheckpointError
from files import sha256
from repository import front_voices

SHIPPED = Path(__file__).resolve().parent.parent / "voices"
CHECKPOINT_FOLDER = "voices"
"""Beside asset/."""
OLD_FILE = "voices.json"
"""Where a checkpoint had its voices before each was a file."""

NO_VOICE = "none"
"""As a default: a request without a voice gets no speaker, the model chooses for each segment."""

_PATTERN = "[!.]*.json"


@dataclass(frozen=True, slots=True)
class VoiceSources:
    """Files of voices by name, not yet read."""

    files: Mapping[str, Path]
    default: str
    """Name of the voice for requests that give none, NO_VOICE for none, empty: the usual one."""


@dataclass(frozen=True, slots=True)
class VoicePlan:
    """What a build does with the voices of a version, all of which fit and are whole."""

    write: Mapping[str, bytes]
    """Contents by file name."""
    remove: Sequence[str]
    """Names of files that an earlier build put there, this one does not, and nobody changed."""
    default: str
    """Name of one of them, or empty."""


def find_voices(checkpoint_root: Path, folders: Sequence[Path], default: str) -> VoiceSources:
    """Return the voices for a checkpoint.

    Args:
        checkpoint_root: its folder.
        folders: of the caller's own voices.
        default: see `VoiceSources`.

    Raises:
        CheckpointError: the checkpoint has an old voices.json, or a folder does not exist.
    """
    old = checkpoint_root / OLD_FILE
    if old.exists():
        raise CheckpointError(
            f"{old}: each voice is a file of its own now, in {old.with_suffix('')}; "
            "`build/make_voice.py import` makes one of each string"
        )
    for folder in folders:
        if not folder.is_dir():
            raise CheckpointError(f"{folder}: no such folder of voices")
    files: dict[str, Path] = {}
    for folder in (SHIPPED, checkpoint_root / CHECKPOINT_FOLDER, *folders):
        files |= {path.name: path for path in sorted(folder.glob(_PATTERN))}
    return VoiceSources(files, default)


def describe_voices(sources: VoiceSources) -> dict[str, dict[str, str]]:
    """Return the SHA-256 of each file, as a stamp has it."""
    return {file: {"sha256": sha256(path)} for file, path in sources.files.items()}


def plan_voices(
    sources: VoiceSources,
    repository: Path,
    version: int,
    known: Mapping[str, Any],
    hidden_size: int,
) -> VoicePlan:
    """Say what to do with the voices of a version.

    Args:
        sources: the voices for it.
        repository: of models.
        version: whose front has the voices.
        known: what `describe_voices` said to the build before.
        hidden_size: H of the checkpoint.

    Raises:
        CheckpointError: a source is broken, does not fit or has a name of another; the default is
            none of them; or somebody put a file into the version with which no server would start.
    """
    write = _read(sources, hidden_size)
    folder = repository / front_voices(version)
    remove = [
        file
        for file in sorted(known.keys() - write.keys())
        if (folder / file).exists() and sha256(folder / file) == known[file]["sha256"]
    ]
    _check_others(folder, {*write, *remove}, hidden_size)
    return VoicePlan(write, remove, _default(sources, write))


def _read(sources: VoiceSources, hidden_size: int) -> dict[str, bytes]:
    """Return the contents of the voices by file name, without shipped ones of another size."""
    # imported late: a build that finds nothing to do does not need the front's code
    from voice_format import SUFFIX, parse_voice

    contents: dict[str, bytes] = {}
    owners: dict[str, Path] = {}
    for file, path in sources.files.items():
        content, name = path.read_bytes(), file.removesuffix(SUFFIX)
        try:
            speaker = parse_voice(content, name, None).voice.speaker_embedding
            if path.parent == SHIPPED and speaker is not None and len(speaker) != hidden_size:
                continue
            aliases = parse_voice(content, name, hidden_size).aliases
        except ValueError as error:
            raise CheckpointError(f"{path}: {error}") from error
        for known in (name, *aliases):
            if owners.setdefault(known, path) != path:
                raise CheckpointError(f"{path}: {known!r} already names the one in {owners[known]}")
        contents[file] = content
    if sources.default not in ("", NO_VOICE) and sources.default + SUFFIX not in contents:
        names = ", ".join(file.removesuffix(SUFFIX) for file in contents) or "there is none"
        raise CheckpointError(f"default voice: {sources.default!r}; allowed: {names}")
    return contents


def _default(sources: VoiceSources, write: Mapping[str, bytes]) -> str:
    """Return the name of the default voice, or empty.

    Usually the first one that ships: without a speaker each segment would have a voice of its own.
    """
    if sources.default:
        return sources.default if sources.default != NO_VOICE else ""
    shipped = sorted(file for file in write if sources.files[file].parent == SHIPPED)
    return Path(shipped[0]).stem if shipped else ""


def _check_others(folder: Path, built: Collection[str], hidden_size: int) -> None:
    from voice_format import SUFFIX, parse_voice

    for path in sorted(folder.glob(_PATTERN)):
        if path.name in built:
            continue
        try:
            parse_voice(path.read_bytes(), path.name.removesuffix(SUFFIX), hidden_size)
        except ValueError as error:
            raise CheckpointError(f"{path}: {error}; move it away") from error
