"""Turn a checkpoint in the published layout into a model repository that Triton loads.

    python build/build_repository.py --checkpoint checkpoints/demo --precision int8
    python build/build_repository.py --checkpoint checkpoints/new --output models --version 2
    python build/build_repository.py --checkpoint checkpoints/published --voices DIR

Every graph is compared with a NumPy reference before anything is moved into place. A second run
with the same checkpoint and options finds its stamp and does nothing. A version is a copy of the
code with its own weights: other versions stay as they are, and so does what is served, which
build/release.py decides. A version after the first keeps the code that it was built with. Do not
rebuild a version that a server runs; build the next one.
"""

from __future__ import annotations

import argparse
import compileall
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import stamp
from checkpoint import Checkpoint, CheckpointError, required_files
from files import INTERRUPTED, move_into_place, write_bytes
from repository import (
    CONFIG_FILE,
    FRONT,
    MODELS,
    OWN_REPOSITORY,
    PYTHON_MODELS,
    SOURCE_VERSION,
    RepositoryError,
    front_voices,
    front_weights,
    locked,
    served_in,
    with_served,
)
from voice_copies import VoicePlan, describe_voices, find_voices, plan_voices

if TYPE_CHECKING:
    from artifacts import Runner, Written
    from gpt_graph import Precision

STAGING = ".building"
"""Folder in the front's weights where files lie until all are finished: git ignores it, Triton does
not look there, and it is on the repository's own file system."""
PRECISIONS: tuple[Precision, ...] = ("fp32", "int8", "int8-weights")
GENERATED = ("weights", "model.onnx", "__pycache__")
"""Names that a copy of the source leaves out."""
OPTIONAL_INPUTS = ("domain_words.txt", "UNTRAINED")


class BuildError(RuntimeError):
    """The repository cannot be built; the message says why."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with one sentence on standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", type=Path, required=True, help="directory with asset/")
    parser.add_argument("--output", type=Path, default=OWN_REPOSITORY, help="model repository")
    parser.add_argument("--version", type=int, default=1, help="folder of each model (1)")
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="fp32",
        help="int8: linear layers and KV cache; int8-weights: linear layers alone",
    )
    parser.add_argument("--runner", choices=("onnx", "torch"), default="onnx")
    parser.add_argument(
        "--voices",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="of your own, beside those of the checkpoint and of this project; repeatable",
    )
    parser.add_argument(
        "--default-voice",
        default="",
        metavar="NAME",
        help="for requests that name none (the first that ships, if any fits); none: no speaker",
    )
    options = parser.parse_args(argv)
    if options.runner == "torch" and options.precision != "fp32":
        parser.error("--runner torch needs --precision fp32")
    if options.version < 1:
        parser.error(f"--version {options.version}: versions begin at 1")
    try:
        build(
            options.checkpoint,
            options.output,
            options.precision,
            options.runner,
            options.version,
            options.voices,
            options.default_voice,
        )
    except KeyboardInterrupt:
        print("build_repository: interrupted; run it again", file=sys.stderr)
        return INTERRUPTED
    except (BuildError, CheckpointError, RepositoryError, OSError, ValueError) as error:
        print(f"build_repository: {error}", file=sys.stderr)
        return 1
    return 0


def build(
    checkpoint_root: Path,
    repository: Path,
    precision: Precision,
    runner: Runner = "onnx",
    version: int = 1,
    voice_folders: Sequence[Path] = (),
    default_voice: str = "",
) -> None:
    """Bring a version in `repository` to what the checkpoint and options ask for, and say so.

    Raises:
        CheckpointError: the checkpoint or a voice cannot be used.
        BuildError: a graph fails its check, or a folder in the repository is no model.
        RepositoryError: another build writes the same version.
    """
    started = time.monotonic()
    checkpoint = Checkpoint.open(checkpoint_root)
    sources = find_voices(checkpoint_root, voice_folders, default_voice)
    known = stamp.read_stamp(repository, version)
    inputs = _inputs(checkpoint, precision, runner, known) | {
        "voices": describe_voices(sources),
        "default_voice": default_voice,
    }
    what = f"{repository}: version {version}"
    is_current = stamp.is_current(repository, inputs, known)
    # the first version is the checkout's own code; a later one stays as it was tried and published
    if not (is_current and version != SOURCE_VERSION and _has_source(repository, version)):
        copy_source(repository, version)
        compile_source(repository, version)
    check_root(repository)
    if is_current:
        print(f"{what} is up to date ({checkpoint.name}, {precision}, {runner})")
        return
    if known and version in (served_in((repository / FRONT / CONFIG_FILE).read_bytes()) or []):
        print(
            f"build_repository: warning: version {version} is served: a server that runs keeps the "
            "old one until its next start, also after a crash; build with --version N and "
            "release.py publish N instead",
            file=sys.stderr,
        )
    built_before = known.get("inputs", {}).get("voices", {})
    voices = plan_voices(sources, repository, version, built_before, checkpoint.gpt.hidden_size)
    with staging(repository, version) as folder:
        written = _write(checkpoint, folder, version, precision, runner, voices)
        _move(folder, repository, version, [file.path for file in written], inputs, voices.remove)
    elapsed_s = time.monotonic() - started
    print(f"{what} built from {checkpoint.name} ({precision}, {runner}), {elapsed_s:.1f} s")


def _inputs(
    checkpoint: Checkpoint, precision: Precision, runner: Runner, known: stamp.Record
) -> stamp.Record:
    names = [*required_files()]
    names += [name for name in OPTIONAL_INPUTS if (checkpoint.root / name).exists()]
    old = known.get("inputs", {}).get("checkpoint", {})
    return {
        "checkpoint": stamp.describe(checkpoint.root, names, old),
        "name": checkpoint.name,
        "precision": precision,
        "runner": runner,
        "code": stamp.code_version(),
    }


def _write(
    checkpoint: Checkpoint,
    folder: Path,
    version: int,
    precision: Precision,
    runner: Runner,
    voices: VoicePlan,
) -> list[Written]:
    # imported late: onnx and onnxruntime take longer to import than an up-to-date run needs
    from artifacts import RepositoryWriter
    from selfcheck import CheckError

    written = []
    try:
        writer = RepositoryWriter(checkpoint, folder, version, precision, runner, voices)
        for file in writer.write():
            size_mb = (folder / file.path).stat().st_size / 1e6
            print(f"  {file.path}  {size_mb:.2f} MB  {file.note}".rstrip(), flush=True)
            written.append(file)
    except CheckError as error:
        raise BuildError(str(error)) from error
    return written


def _move(
    folder: Path,
    repository: Path,
    version: int,
    names: list[str],
    inputs: stamp.Record,
    old_voices: Sequence[str],
) -> None:
    """Replace the version's files; without its stamp it counts as incomplete meanwhile.

    The stamp does not watch over the voices: whoever runs the server may change them.
    """
    from artifacts import optional_files

    stamp.remove_stamp(repository, version)
    for name in set(optional_files(version)) - set(names):
        (repository / name).unlink(missing_ok=True)
    voices = repository / front_voices(version)
    voices.mkdir(parents=True, exist_ok=True)
    for name in old_voices:
        (voices / name).unlink(missing_ok=True)
    for name in names:
        move_into_place(folder / name, repository / name)
    watched = [name for name in names if (repository / name).parent != voices]
    stamp.write_stamp(repository, version, inputs, watched)


@contextmanager
def staging(repository: Path, version: int) -> Iterator[Path]:
    """Yield an empty, locked folder on the repository's file system and remove it afterwards.

    What a killed run left there is removed first.
    """
    folder = repository / front_weights(version) / STAGING
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, f"{repository}: another build is writing version {version}"):
        for leftover in folder.iterdir():
            shutil.rmtree(leftover)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def copy_source(repository: Path, version: int) -> None:
    """Copy code and configurations of this checkout's models into a version of a repository.

    Python files of that version that no longer exist here are removed; unchanged files are not
    touched. All versions share a configuration: only the first one's build changes it, but never
    the versions that it serves.
    """
    is_own = repository.resolve() == OWN_REPOSITORY
    if is_own and version == SOURCE_VERSION:
        return
    source = {name: _in_version(name, version) for name in _source_files(OWN_REPOSITORY)}
    for model in {name.parts[0] for name in source}:
        for old in (repository / model / str(version)).rglob("*.py"):
            if old.relative_to(repository) not in source.values():
                old.unlink()
    for name, copied in source.items():
        target = repository / copied
        is_shared = name == copied and version != SOURCE_VERSION
        if target.exists() and is_shared:
            continue
        data = (OWN_REPOSITORY / name).read_bytes()
        if name.name == CONFIG_FILE and target.exists():
            data = with_served(data, served_in(target.read_bytes()) or [version])
        if not target.exists() or target.read_bytes() != data:
            write_bytes(target, data)


def _has_source(repository: Path, version: int) -> bool:
    """Whether a version has what `copy_source` wrote when it was built."""
    code = [f"{model}/{version}/model.py" for model in PYTHON_MODELS]
    configurations = [f"{model}/{CONFIG_FILE}" for model in MODELS]
    return all((repository / name).is_file() for name in code + configurations)


def _in_version(name: Path, version: int) -> Path:
    """Return a source file's name in a version; configurations are in none."""
    model, folder, *rest = name.parts
    return Path(model, str(version), *rest) if folder == str(SOURCE_VERSION) else name


def compile_source(repository: Path, version: int) -> None:
    """Write the byte code that a server would write when it starts.

    Triton takes a version with a file newer than its start for a changed one: it would load it anew
    beside the next release, and end what it is doing.
    """
    for model in PYTHON_MODELS:
        folder = repository / model / str(version)
        if not compileall.compile_dir(folder, quiet=1):
            raise BuildError(f"{folder}: the code does not compile")


def check_root(repository: Path) -> None:
    """Check that every folder in the repository is a model; another one stops the server.

    Raises:
        BuildError: a folder has no configuration.
    """
    for folder in sorted(repository.iterdir()):
        if folder.is_dir() and not (folder / "config.pbtxt").exists():
            raise BuildError(f"{folder}: not a model, and Triton loads nothing beside it; move it")


def _source_files(repository: Path) -> set[Path]:
    """Return the files of the models that are source, relative to the repository."""
    names = {path.relative_to(repository) for path in repository.glob("*/**/*") if path.is_file()}
    return {
        name
        for name in names
        if name.parts[1] in (CONFIG_FILE, str(SOURCE_VERSION))
        and not set(GENERATED) & set(name.parts)
    }


if __name__ == "__main__":
    sys.exit(main())
