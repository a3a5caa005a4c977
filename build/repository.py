"""A model repository on disk: where a version's files are, and which versions are served.

A release N is the folder N of every model, its code and its weights. Which ones are served is one
line in each config.pbtxt: a server that starts reads it, and one that runs when it is told to load
the model.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from files import write_bytes

FRONT, UNARY, TOKEN_MODEL, VOCODER = "chattts", "chattts_unary", "chattts_gpt", "chattts_vocoder"
MODELS = (FRONT, UNARY, TOKEN_MODEL, VOCODER)
PYTHON_MODELS = (FRONT, UNARY, TOKEN_MODEL)
CONFIG_FILE = "config.pbtxt"
OWN_REPOSITORY = Path(__file__).resolve().parent.parent / "model_repository"
SOURCE_VERSION = 1
"""The folder of this checkout's models that has the code."""

_POLICY = re.compile(
    rb"^version_policy \{ specific \{ versions: \[([0-9, ]*)\] \} \}$", re.MULTILINE
)


class RepositoryError(RuntimeError):
    """A repository is not as it must be; the message says where and why."""


def gpt_weights(version: int) -> str:
    """Return the token model's folder of weights."""
    return f"{TOKEN_MODEL}/{version}/weights"


def front_weights(version: int) -> str:
    """Return the front model's folder of weights."""
    return f"{FRONT}/{version}/weights"


def front_voices(version: int) -> str:
    """Return the folder of the front's voices, which may change while a server runs."""
    return f"{front_weights(version)}/voices"


def voice_names(repository: Path, version: int) -> set[str]:
    """Return the names of the voices in a version."""
    folder = repository / front_voices(version)
    return {path.name.removesuffix(".json") for path in folder.glob("[!.]*.json")}


def vocoder_file(version: int) -> str:
    """Return the vocoder's graph."""
    return f"{VOCODER}/{version}/model.onnx"


def stamp_file(version: int) -> str:
    """Return the file that says what a version was built from, and that it is complete."""
    return f"{front_weights(version)}/stamp.json"


def built_versions(repository: Path) -> list[int]:
    """Return the versions whose build was finished, in order."""
    names = [path.name for path in (repository / FRONT).glob("[0-9]*")]
    versions = sorted(int(name) for name in names if name.isdecimal())
    return [version for version in versions if (repository / stamp_file(version)).is_file()]


def served_in(config: bytes) -> list[int] | None:
    """Return the versions that a configuration serves, None if they are not in one plain line."""
    match = _POLICY.search(config)
    return [int(version) for version in match[1].split(b",")] if match else None


def with_served(config: bytes, versions: Collection[int]) -> bytes:
    """Return a configuration that serves `versions`; it must have the line."""
    numbers = ", ".join(str(version) for version in sorted(versions)).encode()
    return _POLICY.sub(
        b"version_policy { specific { versions: [ " + numbers + b" ] } }", config, count=1
    )


def served(repository: Path, model: str) -> list[int]:
    """Return the versions of a model that are served.

    Raises:
        RepositoryError: its configuration does not say so in the line that we edit.
    """
    path = repository / model / CONFIG_FILE
    try:
        versions = served_in(path.read_bytes())
    except OSError as error:
        raise RepositoryError(f"{path}: {error.strerror}") from error
    if versions is None:
        line = "version_policy { specific { versions: [ 1 ] } }"
        raise RepositoryError(f"{path}: needs a line such as {line}")
    return versions


def serve(repository: Path, model: str, versions: Collection[int]) -> None:
    """Write which versions of a model are served; nothing is written if it says so already."""
    path = repository / model / CONFIG_FILE
    if served(repository, model) != sorted(versions):
        write_bytes(path, with_served(path.read_bytes(), versions))


@contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Hold a lock on a folder.

    Args:
        folder: must exist.
        what: the sentence if somebody else holds it.

    Raises:
        RepositoryError: somebody else holds it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RepositoryError(what) from error
        yield
    finally:
        os.close(descriptor)
